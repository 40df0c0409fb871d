# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f sizes.awk FILE...
# House rules that can be counted: an SPDX line at the top, 600 lines a file that
# is no drawing, 60 a function, 80 columns in C (a string that is printed may be
# longer, so that it can be searched for), no space before a line's end.

function bad(line, what) { print FILENAME ":" line ": " what; failed = 1 }

function columns(s,	i, n)
{
	for (i = 1; i <= length(s); i++)
		n += substr(s, i, 1) == "\t" ? 8 - n % 8 : 1
	return n
}

function end_file()
{
	if (last != "" && !has_spdx) {
		print last ": no SPDX-License-Identifier in its first lines"
		failed = 1
	}
	if (last != "" && last_line > 600 && last !~ /\.svg$/) {
		print last ": " last_line " lines, 600 are allowed"
		failed = 1
	}
}

FNR == 1 {
	end_file()
	last = FILENAME
	is_c = FILENAME ~ /\.([chS]|[ch]pp)$/
	has_spdx = FILENAME ~ /\.md$/
	start = 0
}
{ last_line = FNR }
FNR <= 3 && /SPDX-License-Identifier: / { has_spdx = 1 }
/[ \t]$/ { bad(FNR, "space before the line's end") }
is_c && length($0) > 10 && !/"/ && columns($0) > 80 {
	bad(FNR, columns($0) " columns, 80 are allowed")
}
# A function opens and closes in the first column: C's {, a shell's name() {.
(is_c && /^\{/) || (!is_c && /^[a-z_0-9]+\(\) \{$/) { start = FNR }
/^\}/ {
	if (start && FNR - start - 1 > 60)
		bad(start, FNR - start - 1 " lines in a function, 60 are allowed")
	start = 0
}
END {
	end_file()
	exit failed
}
