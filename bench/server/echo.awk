# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -v servers="parklot ..." -v base=epoll -f echo.awk echo.tsv: a line for
# each size, number of connections and server, and beside it how many times the
# requests, p99 and CPU time of the server "base" that is.  echo.tsv: "name echo
# metric/size:connections median min max unit [swings]" by tabs.  For
# "open:percent" base is open_base.

BEGIN {
	FS = "\t"
	if (!open_base)
		open_base = base
	nr_servers = split(servers, server, " ")
	line = "%7s %5s  %-13s %10s %6s %9s %9s %6s %9s %7s %6s %8s %6s\n"
	printf line, "bytes", "conns", "server", "requests/s", "x", "p50 us",
	       "p99 us", "x", "p99.9 us", "CPU us", "x", "switches", "calls"
}

function of(metric, name, point)
{
	return (name, metric, point) in median ? median[name, metric, point] : "-"
}

function ratio(metric, name, point,	one)
{
	one = median[point ~ /^open/ ? open_base : base, metric, point]
	return one > 0 ? sprintf("%.2f", of(metric, name, point) / one) : "-"
}

$2 == "echo" {
	split($3, part, "/")
	median[$1, part[1], part[2]] = $4
	if (!(part[2] in seen))
		points[++nr_points] = part[2]
	seen[part[2]] = 1
}
END {
	for (i = 1; i <= nr_points; i++) {
		point = points[i]
		split(point, at, ":")
		for (k = 1; k <= nr_servers; k++) {
			name = server[k]
			if (of("rps", name, point) == "-")
				continue
			printf line, at[1], at[2], name, of("rps", name, point),
			       ratio("rps", name, point), of("p50", name, point),
			       of("p99", name, point), ratio("p99", name, point),
			       of("p999", name, point),
			       of("server_cpu", name, point),
			       ratio("server_cpu", name, point),
			       of("server_switches", name, point),
			       of("server_calls", name, point)
		}
		print ""
	}
}
