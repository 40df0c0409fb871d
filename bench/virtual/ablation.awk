# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -F '\t' -v name=NAME -v about=TEXT -v loss=PERCENT: of rows NAME CPUS SEED
# LOAD REQUESTS P50 P99 WORST CPU THREADS, NAME "-" before, the line of
# bench/virtual/ablation.

$1 != "-" && $1 != name { next }

{
	key = $2 " " $4
	at = $1 SUBSEP key SUBSEP $3
	line[at] = $0
	sub(/^[^\t]*/, "", line[at])
	for (i = 5; i <= 9; i++)
		value[at, i] = $i
}

$1 == "-" && !(key in known) {
	known[key] = 1
	rows[++nr_rows] = key
}

$1 == name {
	if (line[at] != line["-", key, $3])
		changed[key] = 1
	if ($5 == "")
		lost[key] = 1
	seeds[key, ++nr_seeds[key]] = $3
}

# Percent, in the median, if it is worse with each seed; else 0.
function worse(key, column,	i, k, x, was, is, by)
{
	for (i = 1; i <= nr_seeds[key]; i++) {
		was = value["-", key, seeds[key, i], column]
		is = value[name, key, seeds[key, i], column]
		# Requests are the more the better.
		x = column == 5 ? was / (is ? is : 1) : is / (was ? was : 1)
		if (x <= 1)
			return 0
		for (k = i; k > 1 && by[k - 1] > x; k--)
			by[k] = by[k - 1]
		by[k] = x
	}
	x = by[int((nr_seeds[key] + 1) / 2)]
	x = 100 * (column == 5 ? 1 - 1 / x : x - 1)
	return x > loss ? x : 0
}

function what_of(key,	i, by, text)
{
	if (key in lost)
		return " does not end"
	text = ""
	for (i = 5; i <= 9; i += 2) {
		by = worse(key, i)
		if (by)
			text = text sprintf(" %s %.0f %%", titles[i], by)
	}
	return text
}

END {
	titles[5] = "requests"
	titles[7] = "p99"
	titles[9] = "cpu"
	for (i = 1; i <= nr_rows; i++) {
		key = rows[i]
		if (!(key in changed))
			continue
		nr_changed++
		text = what_of(key)
		if (text == "")
			continue
		split(key, words, " ")
		text_of[++nr_worse] = words[2] "@" words[1] ":" text
	}
	printf "%-18s %5d %5d  %s\n", name, nr_changed, nr_worse, about
	for (i = 1; i <= nr_worse; i++)
		printf "%33s%s\n", "", text_of[i]
}
