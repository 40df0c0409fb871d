# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -v built="NAME..." -f tests.awk lib/LAYERS FILE...
# Of FILEs, each lib_*.c lies in selftests/lib/ROOM, of a room that LAYERS
# lists, and each mod_*.c in selftests/device or selftests/manual.  No two have
# the same name, and each is a program that is built.  A test's name has three
# words at least, for a condition and a result, no pronoun for a thread, and none
# to begin with, so that it parses without its fixture.

function bad(what) { print what; failed = 1 }

BEGIN {
	PRONOUN = "_(wh(o|om|ose|oever)|he|his|(no|some|any)body)_"
	FIRST_PRONOUN = "^(what|whatever|it|that|one_(is|that|too))_"
	n = split(built, list, " ")
	for (i = 1; i <= n; i++)
		is_built[list[i]] = 1
	while ((getline line <ARGV[1]) > 0) {
		sub(/[ \t]*#.*/, "", line)
		if (line != "")
			dir["selftests/lib/" line] = "lib"
	}
	dir["selftests/device"] = dir["selftests/manual"] = "mod"
	for (i = 2; i < ARGC; i++)
		check(ARGV[i])
	if (!nr)
		bad("there are no tests")
	exit failed
}

function check(path,	name, where)
{
	name = where = path
	sub(/.*\//, "", name)
	sub(/\/[^\/]*$/, "", where)
	if (name !~ /^(lib|mod)_.*\.c$/)
		return
	nr++
	sub(/\.c$/, "", name)
	if (dir[where] != substr(name, 1, 3))
		bad(path " is in no room for it")
	if (name in seen)
		bad(path " and " seen[name] " have the same name")
	seen[name] = path
	if (!(name in is_built))
		bad(path " is not built")
	check_names(path)
}

function check_names(path,	line, text, macro, arg, test, words)
{
	while ((getline line <path) > 0)
		text = text "\n" line
	close(path)
	while (match(text, /\nTEST[A-Z_]*\([^)]*\)/)) {
		macro = substr(text, RSTART + 1, RLENGTH - 1)
		text = substr(text, RSTART + RLENGTH)
		if (macro ~ /^TEST_(TIMED|REAL)/)
			continue
		split(macro, arg, /[(),][ \t\n]*/)
		test = macro ~ /^TEST(_SIGNAL)?\(/ ? arg[2] : arg[3]
		if (split(test, words, "_") < 3)
			bad(path ": " test " is no condition_result")
		if (("_" test "_") ~ PRONOUN || test ~ FIRST_PRONOUN)
			bad(path ": " test " has a pronoun for a subject")
	}
}
