# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f compare.awk targets.tsv peers.tsv: ours beside the best peer, and
# whether the target was met.  peers.tsv: "peer subject case median min max
# unit [swings]" by tabs.

# More is better only where the target says so.
function is_better(key, a, b)
{
	return (key in bound) && bound[key] ~ /^>=/ ? a > b : a < b
}

# Of the peer that the target names, or of the best.
function best_of(key,	i, peer, found)
{
	for (i = 1; i <= nr_peers; i++) {
		peer = peers[i]
		if (!((peer, key) in median))
			continue
		if ((key in name) && name[key] && name[key] != "best" &&
		    name[key] != peer)
			continue
		if (!found || is_better(key, median[peer, key],
					median[found, key]))
			found = peer
	}
	return found
}

function verdict(key, ours, peer,	want)
{
	if (!(key in bound))
		return "-"
	want = value[key]
	if (name[key]) {
		if (!peer)
			return "no peer"
		want *= median[peer, key]
	}
	if (bound[key] ~ /^>=/)
		return ours >= want ? "met" : "not met"
	return ours <= want ? "met" : "not met"
}

BEGIN {
	FS = "\t"
	line = "%-9s %-23s %10s %21s  %-5s %-20s %6s  %-18s %s\n"
	printf line, "subject", "case", "parklot", "min - max", "unit",
	       "best peer", "ratio", "target", ""
}
/^#/ || NF < 3 { next }
FNR == NR {
	key = $1 FS $2
	bound[key] = $3
	split($3, part, " ")
	value[key] = part[2]
	name[key] = part[4]
	next
}
{
	key = $2 FS $3
	median[$1, key] = $4
	if ($1 == "parklot") {
		keys[++nr_keys] = key
		range[key] = $5 " - " $6
		unit[key] = $7
		swings[key] = $8
	} else if (!($1 in is_peer)) {
		is_peer[$1] = 1
		peers[++nr_peers] = $1
	}
}
END {
	for (i = 1; i <= nr_keys; i++) {
		key = keys[i]
		split(key, part, FS)
		ours = median["parklot", key]
		peer = best_of(key)
		ratio = "-"
		if (peer && median[peer, key] > 0)
			ratio = sprintf("%.2f", ours / median[peer, key])
		says = verdict(key, ours, peer)
		failed += says == "not met"
		printf line, part[1], part[2], ours, range[key], unit[key],
		       (peer ? peer " " median[peer, key] : "-"), ratio,
		       (key in bound ? bound[key] : "-"),
		       says (swings[key] ? "; " swings[key] : "")
	}
}
