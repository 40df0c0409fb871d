# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f scale-ways.awk -v name=NAME [-v other=NAME] FILE: of what contend.c
# printed, each line with a NAME before it: with how many workers at first less
# than half is left of as many times one, what 64 and the most workers keep, and
# what they lose their time to.  With another NAME, both side by side.

function efficiency(k,	one, part)
{
	split(k, part, SUBSEP)
	one = part[1] SUBSEP part[2] SUBSEP 1
	return rate[k] / rate[one] / nr[k]
}

function loss(k,	each, idle)
{
	each = nr[k] * 1e9 / rate[k]
	idle = each * (1 - busy[k])
	if (efficiency(k) > 0.9)
		return "nothing"
	if (lost[k] < each / 4 && idle > lost[k])
		return server[k] > 0.95 ? "timer thread" : "no task to run"
	return "line " line[k]
}

function half(n, s)
{
	return (n, s) in first ? first[n, s] : "-"
}

function part_kept(n, s, workers,	k)
{
	k = n SUBSEP s SUBSEP workers
	return k in nr ? sprintf("%.0f%%", 100 * efficiency(k)) : ""
}

function lost_to(n, s, workers,	k)
{
	k = n SUBSEP s SUBSEP workers
	return k in nr ? loss(k) : ""
}

function one_name(	i, s)
{
	printf "%-9s %13s %9s  %-20s %9s  %s\n", "", "below half at",
		"64 keep", "and lose most to", most " keep", "and lose most to"
	for (i = 1; i <= nr_subjects; i++) {
		s = subjects[i]
		printf "%-9s %13s", s, half(name, s)
		if ((name, s, 64) in nr)
			printf " %9s  %-20s", part_kept(name, s, 64),
				lost_to(name, s, 64)
		printf " %9s  %s\n", part_kept(name, s, most),
			lost_to(name, s, most)
	}
	printf "%-9s %13s %6.0f us %22s %6.0f us\n", "ramp", "",
		ramp[name, 64], "", ramp[name, most]
}

function row(title, a, b, c, d, e, f, g, h, i, j)
{
	printf "%-8s %6s %6s %9s %6s  %-14s %-14s %9s %6s  %-14s %s\n", title,
		a, b, c, d, g, h, e, f, i, j
}

function two_names(	i, s)
{
	row("", "below", "half", "64 keep", "", most " keep", "", "lose most to",
	    "", "lose most to", "")
	row("", name, other, name, other, name, other, name, other, name, other)
	for (i = 1; i <= nr_subjects; i++) {
		s = subjects[i]
		row(s, half(name, s), half(other, s),
		    part_kept(name, s, 64), part_kept(other, s, 64),
		    part_kept(name, s, most), part_kept(other, s, most),
		    lost_to(name, s, 64), lost_to(other, s, 64),
		    lost_to(name, s, most), lost_to(other, s, most))
	}
	row("ramp, us", "", "", sprintf("%.0f", ramp[name, 64]),
	    sprintf("%.0f", ramp[other, 64]), sprintf("%.0f", ramp[name, most]),
	    sprintf("%.0f", ramp[other, most]))
}

BEGIN { FS = "\t" }
$1 != name && $1 != other { next }
$3 > most { most = $3 + 0 }
$2 == "ramp" {
	ramp[$1, $3] = $4
	next
}
{
	k = $1 SUBSEP $2 SUBSEP $3
	if (!($2 in seen))
		subjects[++nr_subjects] = $2
	seen[$2] = 1
	nr[k] = $3
	rate[k] = $4
	busy[k] = $6
	line[k] = $7
	lost[k] = $8
	server[k] = $9
	if (efficiency(k) < 0.5 && !(($1, $2) in first))
		first[$1, $2] = $3
}
END {
	if (other == "")
		one_name()
	else
		two_names()
}
