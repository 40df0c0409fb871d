# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f scale.awk bench/scale/scale.tsv docs/results/sharing.md COSTS: what
# contend.c reads, of the counts of a round, of what was measured with one
# worker, and of what scale.tsv adds to them.

function fail(words)
{
	print "bench/scale/scale: " words | "cat >&2"
	has_failed = 1
	exit 2
}

function line_named(name,	i)
{
	for (i = 1; i <= nr_patterns; i++)
		if (name ~ "^(" pattern[i] ")$")
			return is[i]
	fail("bench/scale/scale.tsv has no line for '" name "'")
}

# add PATH HOW LIST ROUNDS: "NAME TIMES, NAME TIMES" of one round.
function add(path, how, list, rounds,	i, nr, part, name, times, line)
{
	nr = split(list, part, ", ")
	for (i = 1; i <= nr; i++) {
		times = part[i]
		sub(/.* /, "", times)
		name = substr(part[i], 1, length(part[i]) - length(times) - 1)
		if (times == "-" || how == "read" && name !~ /^rt\.nr_/)
			continue
		line = line_named(name)
		if (line == "-")
			continue
		if (!((path, line, how) in sum))
			order[++nr_sums] = path SUBSEP line SUBSEP how
		if (how == "write")
			sum[path, line, how] += times / writes[line]
		else if (sum[path, line, how] + 0 < times)
			sum[path, line, how] = times > 2 ? 2 : times
	}
	for (line in moves)
		if ((path, line, how) in sum) {
			times = sum[path, line, how]
			if (how == "write" && times > moves[line])
				times = moves[line]
			sum[path, line, how] = times * rounds
		}
}

BEGIN { FS = "\t" }
FILENAME == ARGV[1] && !/^#/ {
	if ($1 == "line") {
		print "line", $2, $3, $4, $5
		moves[$2] = $6
		writes[$2] = $7
	} else if ($1 == "is") {
		pattern[++nr_patterns] = $2
		is[nr_patterns] = $3
	} else if ($1 == "path") {
		paths[++nr_paths] = $2
		counted[nr_paths] = $3
		rounds[nr_paths] = $4
	} else if ($1 == "visit") {
		visits = visits "visit " $2 " " $3 " " $4 " " $5 "\n"
	} else if ($1 == "cost") {
		costs = costs "cost " $2 " " $3 "\n"
	} else if ($1 == "way") {
		ways = ways "way " $2 "\n"
	}
}
FILENAME == ARGV[2] && /^\| (busy|idle)-/ {
	split($0, column, " *\\| *")
	written[column[2]] = column[7]
	reads[column[2]] = column[8]
}
# The least of all runs: what else the machine does only adds to it.  One worker
# never has to wait for others, so parks are those beside a second one, and until
# a woken worker runs it takes what a ramp of two does.
FILENAME == ARGV[3] {
	split($2, part, ":")
	if ($1 == "workers" && part[2] == 1)
		least[part[1]] = $4
	else if ($1 == "workers" && $2 == "echo_parks:2")
		parks = $3
	else if ($1 == "workers" && $2 == "ramp:2")
		ramp = $3 * 1000
	else if ($1 == "wake")
		least[$1 "_" part[1]] = $3
}
function cost(name, from, factor)
{
	if (!(from in least))
		fail("no '" from "' in the costs: bench/scale/scale --costs")
	print "cost", name, least[from] * factor
}
END {
	if (has_failed)
		exit 2
	for (i = 1; i <= nr_paths; i++) {
		if (!(counted[i] in written))
			fail("no path '" counted[i] "' was counted")
		add(paths[i], "read", reads[counted[i]], rounds[i])
		add(paths[i], "write", written[counted[i]], rounds[i])
	}
	for (i = 1; i <= nr_sums; i++) {
		split(order[i], part, SUBSEP)
		print "visit", part[1], part[2], part[3], sum[order[i]]
	}
	cost("tree", "tree_work", 1)
	cost("yield", "yield_work", 1)
	cost("timer", "timer_work", 1)
	cost("echo", "echo_work", 1)
	if (parks == "")
		fail("no 'echo_parks:2' in the costs: bench/scale/scale --costs")
	print "cost echo_parks", parks
	cost("foreign_work", "foreign_run", 1)
	cost("foreign_spawn", "foreign_spawn", 1)
	cost("sleep", "sleep_work", 1)
	cost("sleep_fire", "sleep_fire", 1)
	cost("wake_call", "wake_call_p50", 1000)
	if (ramp == "")
		fail("no 'ramp:2' in the costs: bench/scale/scale --costs")
	wake = least["wake_call_p50"] * 1000
	print "cost wake_run", (ramp > wake ? ramp - wake : 0)
	printf "%s%s%s", visits, costs, ways
}
