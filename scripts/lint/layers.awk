# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk [-v flat=1] -f layers.awk lib/LAYERS lib/*/*.[ch] lib/ctx/arch/*/*
# Each file lies in a room that LAYERS lists, and each room has files.  A file
# includes headers with their room, "room/x.h", of its own room and of those
# that stand above it in LAYERS, and never in a circle.
# With flat=1 there are no directories: a room is x.c and x.h, its name x.

function bad(what) { print what; failed = 1 }

# Returns the room of a path below the directory, or "".
function room_of(path)
{
	return sub(flat ? "[.][ch]$" : "/.*", "", path) ? path : ""
}

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
FNR == 1 {
	name = substr(FILENAME, length(dir) + 1)
	room = room_of(name)
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	split($0, part, "\"")
	header = part[2]
	if (header ~ /^parklot(\/.*)?\.h$/)	# public ones
		next
	of = room_of(header)
	if (!(of in place))
		bad(FILENAME ":" FNR ": " header " is in no room")
	else if (room in place && place[of] > place[room])
		bad(FILENAME ":" FNR ": " of " stands below " room)
	includes[name] = includes[name] " " header
}

# What includes nothing, then what includes only that, until no more is found:
# what is left is in a circle, or includes such a header.
function look_for_circles(	file, i, n, list, more, is_open)
{
	do {
		more = 0
		for (file in includes) {
			n = split(includes[file], list, " ")
			is_open = 0
			for (i = 1; i <= n; i++)
				if (list[i] in includes)
					is_open = 1
			if (!is_open) {
				delete includes[file]
				more = 1
				break
			}
		}
	} while (more)
	for (file in includes)
		if (file ~ /\.h$/)
			bad(file " is included in a circle")
}

END {
	for (i = 1; i < ARGC; i++) {
		name = substr(ARGV[i], length(dir) + 1)
		if (name == "LAYERS")
			continue
		room = room_of(name)
		if (!(room in place))
			bad(ARGV[i] " is in no room of LAYERS")
		has_files[room] = 1
	}
	for (i = 1; i <= nr; i++)
		if (!(at[i] in has_files))
			bad("LAYERS: there is nothing in " at[i])
	look_for_circles()
	exit failed
}
