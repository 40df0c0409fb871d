# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f apps.awk apps.tsv: a line for each load and server.  apps.tsv: "name
# subject metric/size:connections median min max unit [swings]" by tabs.

BEGIN {
	FS = "\t"
	line = "%-5s %6s %6s  %-8s %10s %9s %9s %7s %9s\n"
	printf line, "", "size", "conns", "server", "requests/s", "p50 us",
	       "p99 us", "CPU us", "B idle"
}

function of(metric, point)
{
	return (metric, point) in median ? median[metric, point] : "-"
}

{
	split($3, part, "/")
	point = $2 ":" part[2] ":" $1
	median[part[1], point] = $4
	if (!(point in seen))
		points[++nr_points] = point
	seen[point] = 1
}
END {
	for (i = 1; i <= nr_points; i++) {
		split(points[i], at, ":")
		printf line, at[1], at[2], at[3], at[4], of("rps", points[i]),
		       of("p50", points[i]), of("p99", points[i]),
		       of("server_cpu", points[i]), of("memory", points[i])
	}
}
