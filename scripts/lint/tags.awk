# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -v built="NAME..." -f tags.awk selftests/models/TAGS LIST
# LIST is what "pairs.awk -v list=1" found.  TAGS has one row for each tag, and
# none for others: the tag, the model that has it, and the test that runs into
# the race.  A "-" says that there is none; a comment above the row, or above
# its group of rows, says why.  Each model lies beside TAGS and names the tag
# in brackets; each test is a program that is built.

function bad(what) { print what; failed = 1 }

BEGIN {
	nr_programs = split(built, name, " ")
	for (i = 1; i <= nr_programs; i++)
		is_built[name[i]] = 1
}

FNR == 1 && FILENAME == ARGV[1] {
	dir = FILENAME
	sub(/[^\/]*$/, "", dir)
}
FILENAME != ARGV[1] {
	nr_tags++
	if (!($1 in row))
		bad($2 ": [" $1 "] has no row in " ARGV[1])
	is_tag[$1] = 1
	next
}
/^[ \t]*$/ { has_reason = 0; next }
/^#/ {
	has_reason = 1
	next
}
{
	where = FILENAME ":" FNR ": "
	if (NF != 3) {
		bad(where "not \"tag model test\"")
		next
	}
	if ($1 in row)
		bad(where $1 " has a second row")
	row[$1] = where
	if (($2 == "-" || $3 == "-") && !has_reason)
		bad(where "no comment says why " $1 " has no " \
		    ($2 == "-" ? "model" : "test"))
	if ($2 != "-")
		check_model($1, $2)
	if ($3 != "-")
		check_test($3)
}

function check_model(tag, model,	file, line, nr_lines, is_named)
{
	file = dir model (model ~ /\.pml$/ ? "" : ".pml")
	while ((getline line <file) > 0) {
		nr_lines++
		if (index(line, "[" tag "]"))
			is_named = 1
	}
	close(file)
	if (!nr_lines)
		bad(where "there is no model " file)
	else if (!is_named)
		bad(where file " does not name [" tag "]")
}

function check_test(program)
{
	if (!(program in is_built))
		bad(where program " is no test program")
}

END {
	for (tag in row)
		if (!(tag in is_tag))
			bad(row[tag] "no ordered access has the tag " tag)
	if (!nr_tags)
		bad("there are no tags")
	print nr_tags + 0 " tags"
	exit failed
}
