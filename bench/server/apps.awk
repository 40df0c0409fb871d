# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f apps.awk apps.tsv: a line for each load and server, and one for each
# target.  apps.tsv: "name subject metric/size:connections median min max unit
# [swings]" by tabs.

BEGIN {
	FS = "\t"
	line = "%-5s %6s %6s  %-8s %10s %9s %9s %9s %7s %9s\n"
	printf line, "", "size", "conns", "server", "requests/s", "p50 us",
	       "p99 us", "p99.9 us", "CPU us", "B idle"
}

function of(metric, point)
{
	return (metric, point) in median ? median[metric, point] : "-"
}

{
	split($3, part, "/")
	load = $2 ":" part[2]
	point = load ":" $1
	median[part[1], point] = $4
	if (!(point in seen))
		points[++nr_points] = point
	if (!(load in is_load))
		loads[++nr_loads] = load
	seen[point] = is_load[load] = 1
}

# The better one of two servers, or the one that was measured.
function best_of(metric, load, one, other, a, b)
{
	a = median[metric, load ":" one]
	b = other ? median[metric, load ":" other] : ""
	if (a == "" || b == "")
		return a == "" ? b : a
	return a + 0 < b + 0 ? a : b
}

# judge(LOAD, METRIC, SENSE, LIMIT, PEER, [PEER]): parklot, times the peer.
function judge(load, metric, sense, limit, one, other, peer, ratio, is_met)
{
	peer = best_of(metric, load, one, other)
	if (!((metric, load ":parklot") in median) || peer + 0 <= 0)
		return
	ratio = median[metric, load ":parklot"] / peer
	is_met = sense == "<=" ? ratio <= limit : ratio >= limit
	split(load, at, ":")
	printf "%-5s %6s %6s  %-12s %6.2f x %-12s %2s %-5s %s\n", at[1],
	       at[2], at[3], said[metric], ratio,
	       other ? one " or " other : one, sense, limit,
	       is_met ? "met" : "missed"
}

function judge_load(load, at)
{
	split(load, at, ":")
	if (at[1] == "kv") {
		judge(load, "rps", ">=", at[2] == 1 ? 1.5 : 2, "redis")
		judge(load, "p99", "<=", 1, "redis")
	} else if (at[1] == "http") {
		if (at[2] == 200 && at[3] == 64)
			judge(load, "server_cpu", "<=", 1, "nginx")
		if (at[2] == 65536)
			judge(load, "server_cpu", "<=", 1.1, "nginx")
		judge(load, "p99", "<=", 1, "nginx", "go")
		judge(load, "memory", "<=", 1, "nginx")
	} else {
		judge(load, "rps", ">=", at[1] == "tls" ? 1.05 : 1.2, "nginx")
	}
}

END {
	for (i = 1; i <= nr_points; i++) {
		split(points[i], at, ":")
		printf line, at[1], at[2], at[3], at[4], of("rps", points[i]),
		       of("p50", points[i]), of("p99", points[i]),
		       of("p999", points[i]), of("server_cpu", points[i]),
		       of("memory", points[i])
	}
	said["rps"] = "requests/s"
	said["p99"] = "p99"
	said["server_cpu"] = "CPU"
	said["memory"] = "memory"
	printf "\ntargets\n"
	for (i = 1; i <= nr_loads; i++)
		judge_load(loads[i])
}
