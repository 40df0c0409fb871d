# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f scale-table.awk FILE: of "NAME subject:workers median min max unit" by
# tabs a table, with a row for each subject of each NAME, a column for each
# number of workers, "chosen" as the last, and below a rate how many times that of
# one worker it is.

function si(v)
{
	return v >= 999.5e6 ? digits(v / 1e9) "G" : \
	       v >= 999.5e3 ? digits(v / 1e6) "M" : \
	       v >= 999.5 ? digits(v / 1e3) "k" : digits(v)
}

function digits(v)
{
	return sprintf("%.*f", v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, v)
}

function place(column)
{
	return column == "chosen" ? 1e9 : column + 0
}

function row(name, unit, values)
{
	printf "%-16s %-5s%s\n", name, unit, values
}

BEGIN { FS = "\t" }
{
	split($2, part, ":")
	if (first == "")
		first = $1
	key = $1 == first ? part[1] : part[1] " " $1
	if (!(key in unit))
		keys[++nr_keys] = key
	unit[key] = $6
	value[key, part[2]] = $3
	if (!(part[2] in seen)) {
		seen[part[2]] = 1
		for (i = ++nr; i > 1 && place(workers[i - 1]) > place(part[2]);
		     i--)
			workers[i] = workers[i - 1]
		workers[i] = part[2]
	}
}
END {
	for (i = 1; i <= nr; i++)
		head = head sprintf(" %9s", workers[i])
	row("workers", "", head)
	for (k = 1; k <= nr_keys; k++) {
		key = keys[k]
		line = times = ""
		for (i = 1; i <= nr; i++) {
			v = value[key, workers[i]]
			line = line sprintf(" %9s", v == "" ? "" : si(v))
			one = value[key, 1]
			times = times sprintf(" %9s", v == "" || !one ? "" : \
					      sprintf("%.2f", v / one))
		}
		row(key, unit[key], line)
		if (unit[key] == "1/s" && one && nr > 1)
			row("", "times", times)
	}
}
