# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -v floor=PERCENT [-v VAR=VALUE]... -f coverage.awk WHY GCOV...
#
# From what "gcov -t" says of the library's files: how many of the lines that
# have code were run, a file a line, and in all; fewer than PERCENT fail. Runs
# of the same build may follow each other: a line that one of them ran is run.
#
#	under=DIR/	of the files of this directory (lib/)
#	root=DIR/	taken from the beginning of each file's name
#	skip=REGEX	of FILE:TEXT: lines that do not count
#	strict=1	a line that is neither run nor listed fails
#	errors=1	"gcov -t -b -c" said how often each branch was taken: for
#			the conditions that decide on an error, each branch has
#			to be taken or listed, as if it were a line
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

BEGIN { why = ARGV[1] }
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

# A branch of the line just seen. In a line that never ran none was taken.
function see_branch(is_taken)
{
	if (!((file, nr, $2) in taken)) {
		taken[file, nr, $2] = 0
		branches[file, nr] = branches[file, nr] " " $2
	}
	if (is_taken)
		taken[file, nr, $2] = 1
}

errors && /^branch +[0-9]+ / {
	if (is_ours && nr)
		see_branch($3 == "taken" && $4 > 0)
	next
}
errors && /^(call +[0-9]+|function [^:]*called|unconditional +[0-9]+) / { next }
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
	if (root != "" && index(file, root) == 1)
		file = substr(file, length(root) + 1)
	is_ours = index(file, under == "" ? "lib/" : under) == 1
	current = ""
	next
}
!is_ours || nr == 0 { next }
skip != "" && file ":" text ~ skip { next }
{ source[file, nr] = text }

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

# ---- conditions that decide on an error ----

function is_error(text)
{
	return text ~ /(^|[^A-Za-z0-9_])-E[A-Z][A-Z0-9]+[^A-Za-z]/ ||
	       text ~ /return (ERR_PTR|NULL|err)|goto (err|fault|out)/
}

# The line where the condition before line nr begins, 0 if there is none: what
# is between is the rest of it, or statements of its block.
function begins_at(file, nr,	i)
{
	for (i = nr - 1; i > nr - 8; i--) {
		if (source[file, i] ~ /(^|[^a-z_])(if|switch) [(]/)
			return i
		if (source[file, i] ~ /^$|^[\t ]*([}]|case|default|return)/)
			return 0
	}
	return 0
}

function depth(text,	open)
{
	open = gsub(/[(]/, "", text)
	return open - gsub(/[)]/, "", text)
}

# mark FILE NR: the branches of the condition that leads to an error there,
# and those of the line, if it has a condition of its own.
function mark(file, nr,	i, open)
{
	decides[file, nr] = 1
	i = begins_at(file, nr)
	if (!i)
		return
	do {
		decides[file, i] = 1
		open += depth(source[file, i])
	} while (open > 0 && ++i < nr)
}

# Of a line that was not run nothing more is to be said.
function judge_branches(file, nr,	i, n, id)
{
	if (!decides[file, nr] || !is_run[file, nr])
		return
	n = split(branches[file, nr], id, " ")
	for (i = 1; i <= n; i++) {
		nr_decisions++
		if (taken[file, nr, id[i]])
			continue
		if (is_explained(file, nr))
			nr_explained++
		else
			not_taken[++nr_not_taken] = file ":" nr ":" \
				code[file, nr] "  (branch " id[i] ")"
	}
}

function judge_errors(file,	nr)
{
	for (nr = 1; nr <= last[file]; nr++) {
		if ((file, nr) in is_run && is_error(source[file, nr]))
			mark(file, nr)
	}
	for (nr = 1; nr <= last[file]; nr++)
		judge_branches(file, nr)
}

function report_errors(	i)
{
	for (i = 1; i <= nr_files; i++)
		judge_errors(files[i])
	printf "%d branches of conditions that decide on an error: " \
		"%d explained, %d not taken\n",
		nr_decisions, nr_explained, nr_not_taken
	for (i = 1; i <= nr_not_taken; i++)
		print "not taken: " not_taken[i]
	if (!nr_decisions)
		fault("no branches were counted")
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
	if (errors)
		report_errors()
	if (strict && nr_unlisted + nr_not_taken)
		fault(nr_unlisted + nr_not_taken " without a reason")
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
