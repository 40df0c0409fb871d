# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f layers.awk lib/LAYERS lib/*/*.[ch] lib/ctx/arch/*/*
# A file includes only headers that stand above it in LAYERS, each file
# stands there once, and a header's .c on the line after it.

function bad(what) { print what; failed = 1 }

{ sub(/\r$/, "") }
FILENAME ~ /LAYERS$/ {
	dir = substr(FILENAME, 1, length(FILENAME) - 6)
	sub(/[ \t]*#.*/, "")
	if ($0 == "")
		next
	if ($0 in place)
		bad("LAYERS: " $0 " stands there twice")
	place[$0] = ++nr
	at[nr] = $0
	next
}
FNR == 1 { name = substr(FILENAME, length(dir) + 1) }
/^[ \t]*#[ \t]*include[ \t]*"/ {
	split($0, part, "\"")
	beside = name
	sub(/[^\/]*$/, part[2], beside)
	header = beside in place ? beside : part[2]
	if (header == "parklot.h")	# the public one
		next
	if (!(header in place))
		bad(FILENAME ":" FNR ": " header " is not in LAYERS")
	else if (name in place && place[header] >= place[name])
		bad(FILENAME ":" FNR ": " header " stands below " name)
}
END {
	for (i = 1; i < ARGC; i++) {
		name = substr(ARGV[i], length(dir) + 1)
		seen[name] = 1
		if (name != "LAYERS" && !(name in place))
			bad(ARGV[i] " is not in LAYERS")
	}
	for (i = 1; i <= nr; i++) {
		if (!(at[i] in seen))
			bad("LAYERS: there is no " at[i])
		header = at[i]
		if (sub(/\.c$/, ".h", header) && header in place && \
		    at[i - 1] != header)
			bad("LAYERS: " header " is not on the line before " \
			    at[i])
	}
	exit failed
}
