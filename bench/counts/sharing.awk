# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# Which memory a path of lines.c wrote, from three files: its symbols by
# "nm -S", the owners that it printed, the trace of valgrind's lackey.  Prints by
# tabs
#
#	lines BESIDE PATH WORKER TASKS OBJECTS SHARED	cache lines written
#	write BESIDE PATH NAME PER-ROUND FUNCTIONS	of what is shared
#	read BESIDE PATH NAME PER-ROUND FUNCTIONS	likewise
#	often BESIDE PATH NAME	what is in lines that threads wrote meanwhile
#
# Shared is what belongs to the process, another worker, or another thread, and
# what has part of its line there.  Addresses are strings of 16 digits behind an
# x, so that they are compared as such.

function pad(a)
{
	return "x" substr("0000000000000000", 1, 16 - length(a)) a
}

# The first and the last byte of the line of an address.
function line_of(a)
{
	return substr(a, 1, 15) FIRST[substr(a, 16, 1)] "0"
}

function line_end(line)
{
	return substr(line, 1, 15) LAST[substr(line, 16, 1)] "f"
}

function hex(s,	i, n)
{
	for (i = 1; i <= length(s); i++)
		n = n * 16 + VALUE[substr(s, i, 1)]
	return n
}

# An address of a number; mawk's %x has 32 bits.
function digits(n,	high)
{
	high = int(n / 16777216)
	return sprintf("x%010x%06x", high, n - high * 16777216)
}

# Functions, and variables, which belong to the process, @base further on.
function place_symbols(base,	i, part, low, high)
{
	for (i = 1; i <= nr_symbols; i++) {
		split(symbol[i], part, " ")
		low = base + hex(part[1])
		high = low + hex(part[2]) - 1
		low = digits(low)
		high = digits(high)
		if (part[3] ~ /[tTwW]/) {
			code_first[++nr_code] = low
			code_last[nr_code] = high
			code[nr_code] = part[4]
		} else {
			first[++nr] = low
			last[nr] = high
			owner[nr] = "process"
			name[nr] = part[4]
		}
	}
}

# The smallest range, or the function, around an address; 0: none.
function range_at(a,	i, best)
{
	for (i = 1; i <= nr; i++)
		if (first[i] <= a && a <= last[i] &&
		    (!best || (first[best] <= first[i] && last[i] <= last[best])))
			best = i
	return best
}

function code_at(a,	i)
{
	for (i = 1; i <= nr_code; i++)
		if (code_first[i] <= a && a <= code_last[i])
			return code[i]
	return "?"
}

# What kind of memory: worker, task, object, or shared.
function kind_of(owner)
{
	if (owner == worker)
		return "worker"
	return owner == "task" || owner == "object" ? owner : "shared"
}

# One range lies in the other.
function is_part(i, k)
{
	return first[i] >= first[k] && last[i] <= last[k]
}

# What of others is in a line of the path's own range, or "".
function neighbour_of(line, own,	i, end)
{
	end = line_end(line)
	for (i = 1; i <= nr; i++)
		if (first[i] <= end && last[i] >= line &&
		    kind_of(owner[i]) == "shared" &&
		    !is_part(own, i) && !is_part(i, own))
			return "beside " full_name(i)
	return ""
}

function full_name(i)
{
	return owner[i] ~ /^[0-9]+$/ ? "other " name[i] : \
	       owner[i] == "other" ? "foreign " name[i] : name[i]
}

# Sets kind[a] and what[a] of an address, once.
function classify(a,	i, beside)
{
	if (a in kind)
		return
	i = range_at(a)
	kind[a] = i ? kind_of(owner[i]) : "shared"
	what[a] = i ? full_name(i) : "unknown"
	if (kind[a] == "shared")
		return
	beside = neighbour_of(line_of(a), i)
	if (beside != "") {
		kind[a] = "shared"
		what[a] = beside
	}
}

function add(rw, a, pc, n,	key, fn)
{
	key = rw SUBSEP what[a]
	count[key] += n
	fn = code_at(pc)
	if (index(" " by[key] " ", " " fn " ") == 0)
		by[key] = by[key] (by[key] == "" ? "" : " ") fn
}

BEGIN {
	OFS = "\t"
	split("0 1 2 3 4 5 6 7 8 9 a b c d e f", digit, " ")
	for (d = 1; d <= 16; d++) {
		group = d - 1 - (d - 1) % 4
		FIRST[digit[d]] = digit[group + 1]
		LAST[digit[d]] = digit[group + 4]
		VALUE[digit[d]] = d - 1
	}
}

FNR == 1 { file++ }

file == 1 {
	if ($4 == "main")
		main = hex($1)
	else if (NF == 4)
		symbol[++nr_symbols] = $0
	next
}
file == 2 && $1 == "at" {
	place_symbols(hex($2) - main)
}
file == 2 && $1 == "range" {
	first[++nr] = "x" $2
	last[nr] = "x" $3
	owner[nr] = $4
	name[nr] = $5
	for (f = 6; f <= NF; f++)
		name[nr] = name[nr] " " $f
}
file == 2 && $1 == "path" {
	path = $2 OFS $3
	worker = $5
	rounds = $7
}
file == 2 { next }

/^--/ {
	if (/acquired lock/) {
		tid = $0
		sub(/.*SCHED\[/, "", tid)
		sub(/\].*/, "", tid)
	}
	next
}
!on {
	if (/ 5a5a00000,8$/ && $1 == "S") {
		on = 1
		mine = tid
	}
	next
}
$1 == "I" {
	pc = $2
	next
}
$1 == "S" && $2 == "5a5a00008,8" {
	if (tid != mine)
		moved = 1
	on = 0
	marked = 1
	next
}
$1 == "S" || $1 == "M" || $1 == "L" {
	if (tid != mine && $1 != "L")
		theirs[$2]++
	else if (tid == mine)
		seen[$1 " " $2 " " pc]++
}

# A write to a shared line, by any thread.
function count_line(a, n)
{
	if (kind[a] == "shared")
		nr_writes[line_of(a)] += n
}

# What is in shared lines that are written often, but for whole structs.
function put_often(	line, i)
{
	for (line in nr_writes)
		for (i = 1; i <= nr; i++)
			if (nr_writes[line] / rounds >= 0.1 &&
			    first[i] >= line && last[i] <= line_end(line))
				print "often", path, full_name(i)
}

# Of one kind of access, at one address, by one instruction, @n times.
function count_access(rw, a, pc, n,	line)
{
	classify(a)
	if (kind[a] == "shared")
		add(rw, a, pc, n)
	if (rw == "read")
		return
	count_line(a, n)
	line = line_of(a)
	if (!((kind[a], line) in lines))
		nr_lines[kind[a]]++
	lines[kind[a], line] = 1
}

# The last byte of an access, if that is in another line; else "".
function far_end(a, size,	end)
{
	end = digits(hex(substr(a, 2)) + size - 1)
	return line_of(end) == line_of(a) ? "" : end
}

END {
	if (!marked || on || moved || !nr || path == "") {
		print "sharing: no marks, or marks of several threads" >"/dev/stderr"
		exit 1
	}
	for (key in seen) {
		split(key, part, /[ ,]/)
		rw = part[1] == "L" ? "read" : "write"
		a = pad(part[2])
		count_access(rw, a, pad(part[4]), seen[key])
		a = far_end(a, part[3])
		if (a != "")
			count_access(rw, a, pad(part[4]), seen[key])
	}
	for (key in theirs) {
		split(key, part, ",")
		classify(pad(part[1]))
		count_line(pad(part[1]), theirs[key])
	}
	put_often()
	print "lines", path, nr_lines["worker"] + 0, nr_lines["task"] + 0,
		nr_lines["object"] + 0, nr_lines["shared"] + 0
	for (key in count) {
		split(key, part, SUBSEP)
		printf "%s\t%s\t%s\t%.2f\t%s\n", part[1], path, part[2],
			count[key] / rounds, by[key]
	}
}
