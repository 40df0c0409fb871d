# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -v peers="parklot pthread go" -f crowd.awk crowd.tsv: a line for each
# case and peer, beside it how many times the figure of threads that is; then
# each target beside the worst of the cases that it is about.  crowd.tsv: "name
# crowd metric/case median min max unit [swings]" by tabs, as bench/crowd/crowd
# writes it.  -v us=NAME: our own among the peers, "parklot" if not said.

BEGIN {
	FS = "\t"
	nr_peers = split(peers, peer, " ")
	if (us == "")
		us = "parklot"
	line = "%-16s %-8s %8s %8s %9s %6s %9s %6s\n"
	printf line, "", "", "p50 ms", "p99 ms", "worst ms", "x", "calls/s", "x"
	goal = "%-50s %9s %8s  %-16s %s\n"
}

function of(name, metric, point)
{
	return median[name, metric, point]
}

function shown(name, metric, point, unit, digits,	v)
{
	v = of(name, metric, point)
	return v == "" ? "-" : sprintf("%.*f", digits, v / unit)
}

function times(name, metric, point,	one, v)
{
	one = of("pthread", metric, point)
	v = of(name, metric, point)
	return one > 0 && v != "" ? sprintf("%.2f", v / one) : "-"
}

# The worst of those that were added since the last target.
function add(v, point, wants_more)
{
	if (worst == "" || (wants_more ? v < worst : v > worst)) {
		worst = v
		where = point
	}
}

function target(what, bound, wants_more,	is_met)
{
	if (worst != "") {
		if (!nr_targets++)
			printf goal, "target", "worst", "bound", "in", ""
		is_met = wants_more ? worst >= bound : worst <= bound
		printf goal, what, sprintf("%.2f", worst),
		       (wants_more ? ">= " : "<= ") bound, where,
		       is_met ? "met" : "not met"
	}
	worst = ""
}

# Our median in parts of @unit, in the cases that match.
function alone(metric, matches, unit,	i)
{
	for (i = 1; i <= nr_points; i++)
		if (points[i] ~ matches &&
		    of(us, metric, points[i]) != "")
			add(of(us, metric, points[i]) / unit, points[i])
}

# Our median as so many times the best of @others.
function beside(others, metric, matches, wants_more,	i, k, v, best, nr, name)
{
	nr = split(others, name, " ")
	for (i = 1; i <= nr_points; i++) {
		best = ""
		for (k = 1; k <= nr; k++) {
			v = of(name[k], metric, points[i])
			if (v != "" && (best == "" ||
					(wants_more ? v > best : v < best)))
				best = v
		}
		v = of(us, metric, points[i])
		if (points[i] ~ matches && best > 0 && v != "")
			add(v / best, points[i], wants_more)
	}
}

# Our calls in one case as so many times those in another.
function kept(without, with,	one, v)
{
	one = of(us, "calls", without)
	v = of(us, "calls", with)
	if (one > 0 && v != "")
		add(v / one, with, 1)
}

# Our time in a case as so many times that without what the case is about.
function without(point,	one, v)
{
	one = of(us, "without", point)
	v = of(us, "worst", point)
	if (one > 0 && v != "")
		add(v / one, point)
}

$2 == "crowd" {
	split($3, part, "/")
	median[$1, part[1], part[2]] = $4
	if (!(part[2] in seen))
		points[++nr_points] = part[2]
	seen[part[2]] = 1
}
END {
	for (i = 1; i <= nr_points; i++) {
		for (k = 1; k <= nr_peers; k++) {
			if (of(peer[k], "worst", points[i]) == "")
				continue
			printf line, points[i], peer[k],
			       shown(peer[k], "p50", points[i], 1000, 2),
			       shown(peer[k], "p99", points[i], 1000, 2),
			       shown(peer[k], "worst", points[i], 1000, 2),
			       times(peer[k], "worst", points[i]),
			       shown(peer[k], "calls", points[i], 1, 0),
			       times(peer[k], "calls", points[i])
		}
		print ""
	}
	alone("worst", "^between", 1000)
	target("a quick task between them runs after, ms", 5)
	alone("p99", "^usleep:(250|1000)$", 1000)
	target("ticker among usleep(), p99, ms", 2)
	beside("pthread go", "worst", "^usleep:(250|1000)$")
	target("ticker among usleep(), worst, x the better peer", 1)
	beside("pthread", "worst", "^pq_")
	target("ticker among PQexec(), worst, x threads", 1)
	beside("pthread", "calls", "^usleep:100$", 1)
	target("calls of usleep(20 ms), x threads", 0.95, 1)
	kept("server:0", "server:100")
	target("requests of others at a server, x without a crowd", 0.5, 1)
	alone("p99", "^compute:2$", 1000)
	target("ticker beside 2 that compute, p99, ms", 15)
	alone("p99", "^compute:8$", 1000)
	target("ticker beside 8 that compute, p99, ms", 40)
	alone("p99", "^compute:64$", 1000)
	target("ticker beside 64 that compute, p99, ms", 60)
	beside("go", "p99", "^compute:2$")
	target("ticker beside 2 that compute, p99, x Go", 1)
	without("pool:200")
	target("a pool that computes, time x without reliefs", 1.03)
	kept("echo:0", "echo:2")
	target("requests beside 2 that compute, x without", 0.3, 1)
}
