# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f cliff.awk targets.tsv results.tsv: prints results.tsv.  A line of a case
# "case:number" that costs more than FACTOR times as much as the number before,
# by the medians, and always more, gets "cliff" behind it, and how many times.
# Where more is better, as targets.tsv says by ">=", so many times less is one.
# What is below the unit's FLOOR cannot be told from nothing.

BEGIN {
	FS = OFS = "\t"
	FACTOR = 2
	floor["ns"] = 1
	floor["us"] = 1
	floor["ms"] = 0.1
	floor["B"] = 16
	floor["calls"] = 0.01
	floor["%"] = 1
	floor["1/s"] = 1
	floor["tasks"] = 1
}

function above_floor(v, unit)
{
	return v > floor[unit] ? v : floor[unit]
}

FNR == NR {
	row = $1 FS $2
	sub(/:[0-9]+$/, "", row)
	if ($3 ~ /^>=/)
		is_more_better[row] = 1
	next
}
# Sums are no cost of one: their units are not in the list.
$2 ~ /:[0-9]+$/ && $6 in floor {
	row = $1 FS $2
	sub(/:[0-9]+$/, "", row)
	now = above_floor($3, $6)
	if (row in is_more_better) {
		times = before[row] / now
		is_always = $5 < least[row]
	} else {
		times = row in before ? now / before[row] : 0
		is_always = $4 > most[row]
	}
	if (times > FACTOR && is_always)
		$0 = $0 FS sprintf("cliff %.1f x", times)
	before[row] = now
	least[row] = $4
	most[row] = $5
}
{ print }
