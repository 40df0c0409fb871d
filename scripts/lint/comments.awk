# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f comments.awk -f PROGRAM FILE...
# split_c(line) puts what of a line of C is comment into text, what is code
# into code.  begins_comment says whether a comment of several lines may begin
# here, nr_comments numbers those.  At the first line of a file in_comment has
# to be set to 0.

function split_c(rest,	start, end)
{
	text = code = ""
	begins_comment = 0
	while (rest != "") {
		if (in_comment) {
			end = index(rest, "*/")
			text = text (end ? substr(rest, 1, end - 1) : rest)
			rest = end ? substr(rest, end + 2) : ""
			in_comment = !end
			continue
		}
		start = match(rest, /\/\*|\/\//)
		code = code (start ? substr(rest, 1, start - 1) : rest)
		if (start && substr(rest, start, 2) == "//") {
			text = text substr(rest, start + 2)
			rest = ""
		} else {
			rest = start ? substr(rest, start + 2) : ""
			in_comment = begins_comment = start > 0
			nr_comments += in_comment
		}
	}
}
