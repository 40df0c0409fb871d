# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f median.awk: joins lines of single runs, "[PEER] subject case value
# value value unit" by tabs, to one for each case: the median, min and max.
# -v peer=1 if lines begin with the peer that ran it.

function number(v)
{
	return sprintf("%.*f", v >= 1000 ? 0 : v >= 100 ? 1 : v >= 1 ? 2 : 4, v)
}

function sort(k,	i, j, v)
{
	for (i = 2; i <= nr[k]; i++) {
		v = value[k, i]
		for (j = i - 1; j && value[k, j] > v; j--)
			value[k, j + 1] = value[k, j]
		value[k, j + 1] = v
	}
}

BEGIN { FS = OFS = "\t" }
{
	key = peer ? $1 FS $2 FS $3 : $1 FS $2
	if (!(key in nr))
		keys[++nr_keys] = key
	value[key, ++nr[key]] = $(peer ? 4 : 3) + 0
	unit[key] = $(peer ? 7 : 6)
}
END {
	for (i = 1; i <= nr_keys; i++) {
		k = keys[i]
		sort(k)
		n = nr[k]
		median = (value[k, int((n + 1) / 2)] + \
			  value[k, int(n / 2) + 1]) / 2
		min = value[k, 1]
		max = value[k, n]
		line = k FS number(median) FS number(min) FS number(max) FS \
		       unit[k]
		if (max - min > 0.15 * median && n > 1)
			line = line FS sprintf("swings %.0f %%", median > 0 ? \
				100 * (max - min) / median : 100)
		print line
	}
}
