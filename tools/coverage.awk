# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -v floor=PERCENT -f coverage.awk WHY GCOV...
#
# From what "gcov -t" says of the library's files: how many of the lines that
# have code were run, a file a line, and in all; fewer than PERCENT fail.
#
# WHY lists what is not run, with its reason:
#
#	FILE WHAT
#		reason
#
# FILE may be *. WHAT is * for the whole file, name() for a function, or else a pattern for
# the text of the line. "~" before it says that the line may be run all the
# same, as where a race decides. Lines not run and not listed are printed. An
# entry of which no line is left is a failure, and so is one without a reason.

function fault(what)
{
	print what
	failed = 1
}

# ---- the list ----

function end_entry()
{
	if (nr_why && reason[nr_why] == "")
		fault(place[nr_why] ": no reason")
}

FILENAME != why && !why { why = FILENAME }
FILENAME == why && /^#|^$/ { next }
FILENAME == why && /^[ \t]/ {
	reason[nr_why] = $0
	next
}
FILENAME == why {
	end_entry()
	place[++nr_why] = FILENAME ":" FNR
	why_file[nr_why] = $1
	sub(/^[^ ]+ +/, "")
	maybe[nr_why] = sub(/^~ */, "")
	what[nr_why] = $0
	next
}

# ---- what gcov says ----

# gcov repeats the lines of an inline function for each of its copies.
function see(file, nr, count, text)
{
	if (!((file, nr) in is_run)) {
		if (!(file in last))
			files[++nr_files] = file
		is_run[file, nr] = 0
	}
	if (nr > last[file])
		last[file] = nr
	code[file, nr] = text
	func_of[file, nr] = current
	if (count !~ /^[#=]/)
		is_run[file, nr] = 1
}

{
	count = $0
	sub(/:.*/, "", count)
	gsub(/ /, "", count)
	rest = substr($0, index($0, ":") + 1)
	nr = rest + 0
	text = substr(rest, index(rest, ":") + 1)
}
count == "-" && nr == 0 && text ~ /^Source:/ {
	file = substr(text, 8)
	current = ""
	next
}
file !~ /^lib\// || nr == 0 { next }

# Where a definition begins, which need not have code.
text ~ /^[a-z].*[(]/ && text !~ /;$/ {
	current = text
	sub(/[(].*/, "", current)
	sub(/.*[ *]/, "", current)
}
count != "-" { see(file, nr, count, text) }

# ---- the verdict ----

function explains(i, file, nr)
{
	if (why_file[i] != "*" && why_file[i] != file)
		return 0
	if (what[i] == "*" || what[i] == func_of[file, nr] "()")
		return 1
	return what[i] !~ /^\*$|\(\)$/ && code[file, nr] ~ what[i]
}

# Every entry that fits is used: one may be for a line, one for its function.
function is_explained(file, nr,		i, is)
{
	for (i = 1; i <= nr_why; i++) {
		if (explains(i, file, nr))
			is = used[i] = 1
	}
	return is
}

function judge(file,	nr, lines, run, listed)
{
	for (nr = 1; nr <= last[file]; nr++) {
		if (!((file, nr) in is_run))
			continue
		lines++
		if (is_run[file, nr])
			run++
		else if (is_explained(file, nr))
			listed++
		else
			unlisted[++nr_unlisted] = file ":" nr ":" code[file, nr]
	}
	row(file, lines, run, listed)
	all_lines += lines
	all_run += run
	all_listed += listed
}

function row(name, lines, run, listed)
{
	printf "%-24s %6d %6d %6.1f %9d %9d\n", name, lines, run,
		lines ? 100 * run / lines : 100, listed, lines - run - listed
}

function sort(	i, j, f)
{
	for (i = 2; i <= nr_files; i++) {
		f = files[i]
		for (j = i - 1; j && files[j] > f; j--)
			files[j + 1] = files[j]
		files[j + 1] = f
	}
}

END {
	end_entry()
	printf "%-24s %6s %6s %6s %9s %9s\n", "file", "lines", "run", "%",
		"explained", "not"
	sort()
	for (i = 1; i <= nr_files; i++)
		judge(files[i])
	row("all", all_lines, all_run, all_listed)
	for (i = 1; i <= nr_unlisted; i++)
		print "not run: " unlisted[i]
	for (i = 1; i <= nr_why; i++) {
		if (!used[i] && !maybe[i])
			fault(place[i] ": all is run of " why_file[i] " " what[i])
	}
	if (!all_lines)
		fault("nothing was measured")
	else if (100 * all_run < floor * all_lines)
		fault("fewer than " floor " % of the lines were run")
	exit failed
}
