# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk [-v list=1] -f comments.awk -f pairs.awk FILE...
# Memory ordering takes two: a [tag] names an ordered access, and the comment
# at each end names its own tag and the one it pairs with.  So each tag has to
# be named by comments at two places of the code at least.  The drawing of a
# race, where tags stand after a tab, does not count.  A delay's point with a
# name like a tag's, PL_INJECT("x-y"), is that tag's, which has to be known.
# With list=1 the output is "tag file:line" for each tag, and nothing else.

function bad(what) { print what; failed = 1 }

FNR == 1 { in_comment = 0 }

{ split_c($0) }

{
	while (match(text, /\[[a-z][a-z0-9]*(-[a-z0-9]+)+\]/)) {
		tag = substr(text, RSTART + 1, RLENGTH - 2)
		drawn = RSTART > 1 && substr(text, RSTART - 1, 1) == "\t"
		if (!(tag in first))
			first[tag] = FILENAME ":" FNR
		if (!drawn && !((tag, nr_comments) in counted)) {
			counted[tag, nr_comments] = 1
			ends[tag]++
		}
		text = substr(text, RSTART + RLENGTH)
	}
	if (match(code, /PL_INJECT\("[a-z0-9]+-[^"]*"\)/))
		point[substr(code, RSTART + 11, RLENGTH - 13)] = FILENAME ":" FNR
}

END {
	for (tag in first) {
		if (list)
			print tag, first[tag]
		nr++
		if (ends[tag] < 2)
			bad(first[tag] ": [" tag "] has " ends[tag] + 0 \
			    " end(s) in the code, not two")
	}
	for (tag in point)
		if (!(tag in first))
			bad(point[tag] ": PL_INJECT(\"" tag \
			    "\") is no tag of an ordered access")
	if (!list)
		print nr + 0 " tags"
	exit failed
}
