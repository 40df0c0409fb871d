# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f server.awk server.tsv: each target of a server beside the worst of the
# fields that it is about.  server.tsv: "name subject metric/field median min
# max unit [swings]" by tabs, as bench/server/server writes it.

BEGIN {
	FS = "\t"
	line = "%-50s %9s %8s  %-22s %s\n"
	printf line, "target", "worst", "bound", "in", ""
}

function of(name, metric, field)
{
	return median[name, metric "/" field]
}

# The worst of those that were added since the last row.
function add(ratio, field, wants_more)
{
	if (worst == "" || (wants_more ? ratio < worst : ratio > worst)) {
		worst = ratio
		where = field
	}
}

function row(what, bound, wants_more,	is_met)
{
	if (worst != "") {
		is_met = wants_more ? worst >= bound : worst <= bound
		printf line, what, sprintf("%.2f", worst),
		       (wants_more ? ">= " : "<= ") bound, where,
		       is_met ? "met" : "not met"
	}
	worst = ""
}

# Our median as so many times that of @peer.
function beside(name, peer, metric, field, wants_more,	one, ours)
{
	one = of(peer, metric, field)
	ours = of(name, metric, field)
	if (one > 0 && ours != "")
		add(ours / one, field, wants_more)
}

# beside() in the fields of a closed loop from one number of connections on, but
# for one of them.
function closed(metric, from, to, wants_more, but,	i, at)
{
	for (i = 1; i <= nr_fields; i++) {
		split(fields[i], at, ":")
		if (fields[i] != but && at[1] + 0 && at[2] >= from && \
		    at[2] <= to)
			beside("parklot", "epoll-2", metric, fields[i],
			       wants_more)
	}
}

function open_p99(	i, k, best)
{
	for (i = 1; i <= nr_fields; i++) {
		if (fields[i] !~ /^open/)
			continue
		best = ""
		for (k = 1; k <= nr_peers; k++)
			if (of(peers[k], "p99", fields[i]) && (best == "" || \
			    of(peers[k], "p99", fields[i]) < best))
				best = of(peers[k], "p99", fields[i])
		if (best > 0)
			add(of("parklot", "p99", fields[i]) / best, fields[i])
	}
}

# How far each number of workers is from the best of them.
function workers(metric, wants_more,	i, best, nr, name)
{
	nr = split("2 8 64", name, " ")
	best = ""
	for (i = 1; i <= nr; i++) {
		v = of("parklot-" name[i], metric, "64:64")
		if (v && (best == "" || (wants_more ? v > best : v < best)))
			best = v
	}
	for (i = 1; i <= nr; i++) {
		v = of("parklot-" name[i], metric, "64:64")
		if (v)
			add(v / best, "parklot-" name[i], wants_more)
	}
}

{
	median[$1, $2 == "echo" ? $3 : $2 "/" $3] = $4
	split($3, part, "/")
	if ($2 == "echo" && !(part[2] in seen)) {
		seen[part[2]] = 1
		fields[++nr_fields] = part[2]
	}
	if ($1 !~ /^parklot/ && !($1 in is_peer)) {
		is_peer[$1] = 1
		peers[++nr_peers] = $1
	}
}
END {
	beside("parklot", "epoll-2", "rps", "64:64", 1)
	row("requests/s, 64 connections, 64 B, x epoll-2", 1.2, 1)
	closed("rps", 1, 1e9, 1, "64:64")
	row("requests/s, other fields, x epoll-2", 1.0, 1)
	closed("server_cpu", 1, 64)
	row("CPU, up to 64 connections, x epoll-2", 0.9)
	closed("server_cpu", 65, 1e9)
	row("CPU, more connections, x epoll-2", 1.0)
	closed("p99", 1, 1e9)
	row("p99, x epoll-2", 1.0)
	for (i = 10; i <= 50; i++)
		beside("parklot", "epoll-1", "server_cpu", "open:" i)
	row("open loop up to 50 %, CPU, x epoll-1", 1.05)
	open_p99()
	row("open loop, p99, x the best peer", 1.0)
	workers("rps", 1)
	row("2, 8, 64 workers, requests/s, x the best", 0.9, 1)
	workers("p99")
	row("2, 8, 64 workers, p99, x the best", 1.1)
	workers("server_cpu")
	row("2, 8, 64 workers, CPU, x the best", 1.1)
	beside("parklot", "parklot-fixed", "rps", "compute:20", 1)
	beside("parklot", "parklot-fixed", "rps", "compute:100", 1)
	row("handlers that compute, requests/s, x fixed", 0.98, 1)
	beside("parklot", "go", "trickle", "round_cpu")
	beside("parklot", "go", "trickle", "round_switches")
	row("trickle, x Go", 0.7)
	beside("parklot", "loop", "trickle", "round_cpu")
	beside("parklot", "loop", "trickle", "round_switches")
	row("trickle, x one thread with epoll", 1.0)
}
