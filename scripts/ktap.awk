# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# Counts the results in a log.  A log is any number of KTAP documents, each
# from one "TAP version" line to the next.  "# run: NAME" and "# exit: NAME
# STATUS" enclose what one program said; so do, in a document of the kernel's
# runner, "# selftests: COLLECTION: NAME" and the result that follows, and
# what the program said stands between them with "# " before each line.
#
# What was promised and did not come is a failure: a program without a
# result, a document without a plan or with fewer results than its plan,
# results out of turn, a status that nothing in the document explains.
#
# Out, one a line:	pass NAME	fail NAME	skip NAME: REASON
# Level 0 is the log's own documents, 1 those with "# " before each line.

function name_of(what)
{
	return (prog == "" ? what : prog (what == "" ? "" : "." what))
}

function fail(what)
{
	print "fail " name_of(what)
	nr_failed++
}

function open_doc(l)
{
	close_doc(l)
	in_doc[l] = 1
	nr_docs++
	nr_seen[l] = 0
	plan[l] = -1
}

function close_doc(l)
{
	if (!in_doc[l])
		return
	in_doc[l] = 0
	if (plan[l] < 0)
		fail("(no plan after " nr_seen[l] " results)")
	else if (plan[l] != nr_seen[l])
		fail("(" nr_seen[l] " results of " plan[l] " planned)")
	else if (!plan[l] && !skipped_all)
		fail("(nothing was run)")
}

function begin_prog(name, l)
{
	if (prog != "")
		end_prog("unknown", level)
	close_doc(l)
	prog = name
	level = l
	nr_docs = nr_failed = nr_not_ok = 0
}

function end_prog(status, l)
{
	close_doc(l)
	if (!nr_docs)
		fail("(no results, status " status ")")
	else if (status != "0" && status != "4" && !nr_failed)
		fail("(status " status ", though no test failed)")
	else if (status == "0" && nr_not_ok)
		fail("(status 0, though a test failed)")
	prog = ""
	level = 0
}

function set_plan(l, line,	nr)
{
	nr = substr(line, 4) + 0
	if (!in_doc[l] || plan[l] >= 0)
		fail("(a plan out of place: " line ")")
	plan[l] = nr
	skipped_all = 0
	if (!nr && match(line, /# *[Ss][Kk][Ii][Pp] */)) {
		skipped_all = 1
		print "skip " name_of("") ": " substr(line, RSTART + RLENGTH)
	}
}

# The result of one test, or in the runner's document of one program.
function result(l, is_ok, line,	nr, text, reason, is_skip)
{
	nr = line + 0
	text = line
	sub(/^[0-9]+ *(- )?/, "", text)
	if (!in_doc[l])
		return fail("(a result outside a document: " text ")")
	if (nr != ++nr_seen[l])
		fail("(result " nr " where " nr_seen[l] " was due)")
	if (match(text, /[ \t]*# *[Ss][Kk][Ii][Pp][ \t]*/)) {
		is_skip = 1
		reason = substr(text, RSTART + RLENGTH)
		text = substr(text, 1, RSTART - 1)
	}
	if (level > l) {
		sub(/^[^#]*# */, "", text)
		end_prog(is_skip ? 4 : is_ok ? 0 : text, level)
	} else if (!is_ok) {
		fail(text)
		nr_not_ok++
	} else if (is_skip)
		print "skip " name_of(text) ": " reason
	else
		print "pass " name_of(text)
}

function read_line(l, line)
{
	if (line ~ /^K?TAP version /)
		open_doc(l)
	else if (line ~ /^1\.\.[0-9]+/)
		set_plan(l, line)
	else if (sub(/^ok /, "", line))
		result(l, 1, line)
	else if (sub(/^not ok /, "", line))
		result(l, 0, line)
	else if (line ~ /^Bail out!/)
		fail(line)
}

{ sub(/\r$/, "") }
/^# run: / { begin_prog($3, 0); next }
/^# exit: / {
	if (prog == $3)
		end_prog($4, 0)
	else
		fail("(exit of " $3 ", which was not running)")
	next
}
/^# selftests: / { begin_prog($4, 1); next }
level && sub(/^# /, "") { read_line(1, $0); next }
{ read_line(0, $0) }

END {
	if (prog != "")
		end_prog("unknown", level)
	close_doc(1)
	close_doc(0)
}
