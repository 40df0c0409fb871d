# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# nm -A DIR/*/*.o ... | awk -v under=DIR/ [-v flat=1] -f symbols.awk \
#	lib/LAYERS -
# What the objects of a room leave undefined is defined in the same room or in
# one that stands above it in LAYERS, if it is defined in any.  Within a room,
# files call each other in one circle at most.  With flat=1 a room is one
# object, DIR/x.o.

function bad(what) { print what; failed = 1 }

function room_of(file)
{
	sub(flat ? "[.]o$" : "/.*", "", file)
	return file
}

FILENAME ~ /LAYERS$/ {
	sub(/[ \t]*#.*/, "")
	if ($0 != "")
		place[$0] = ++nr_rooms
	next
}
index($0, under) == 1 {
	file = substr($1, length(under) + 1)
	sub(/:.*/, "", file)
	kind = $(NF - 1)
	if (kind == "U") {
		user[++nr_uses] = file
		used[nr_uses] = $NF
	} else if (kind ~ /^[A-Z]$/) {
		home[$NF] = file
	}
}

function check_use(from, symbol,	to)
{
	to = home[symbol]
	if (!(room_of(from) in place) || !(room_of(to) in place))
		bad(from " or " to " is in no room of LAYERS")
	else if (place[room_of(to)] > place[room_of(from)])
		bad(from " uses " symbol " of " to ", upward")
	else if (room_of(to) == room_of(from) && to != from)
		reaches[from, to] = is_caller[from] = is_caller[to] = 1
}

# The files that each file reaches by calls within its room, in any number of
# steps.
function close_reaches(	a, b, c)
{
	for (b in is_caller)
		for (a in is_caller)
			if ((a, b) in reaches)
				for (c in is_caller)
					if ((b, c) in reaches)
						reaches[a, c] = 1
}

# A circle is told by those of its files that no other of them precedes.
function count_circles(	a, b, first, names, circles, list)
{
	for (a in is_caller) {
		if (!((a, a) in reaches))
			continue
		first = a
		names = ""
		for (b in is_caller)
			if ((a, b) in reaches && (b, a) in reaches) {
				names = names " " b
				if (b < first)
					first = b
			}
		if (first != a)
			continue
		circles[room_of(a)]++
		list[room_of(a)] = list[room_of(a)] "\n\t" names
	}
	for (a in circles)
		if (circles[a] > 1)
			bad(a ": " circles[a] " circles of calls:" list[a])
}

END {
	for (i = 1; i <= nr_uses; i++)
		if (used[i] in home) {
			check_use(user[i], used[i])
			nr++
		}
	if (!nr)
		bad("no calls between files were found")
	close_reaches()
	count_circles()
	print nr + 0 " uses between files"
	exit failed
}
