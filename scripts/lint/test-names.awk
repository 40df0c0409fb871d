# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk [-v todo=N] -f test-names.awk FILE...
# The name of a test is condition_result, and parses without its fixture: two
# words at least, of which the first is no pronoun.  (retired.awk looks for words
# that are not used at all.)  N names that are not may be left, neither more nor
# fewer.

function bad(what) { print what; failed = 1 }

BEGIN { PRONOUN = "^wh[ao][a-z]*_|^(he|it|that)_|^one_(is|that|too)_" }

# TEST(name), TEST_F(fixture, name), TEST_F_TIMEOUT(fixture, name, seconds) ...
/^TEST(_[A-Z]+)*\([a-z]/ {
	split($0, part, /[(,) \t]+/)
	name = /^TEST_F/ ? part[3] : part[2]
	nr_names++
	if (name !~ /_/)
		found[++nr] = FILENAME ":" FNR ": " name \
			" is one word, not condition_result"
	else if (name ~ PRONOUN)
		found[++nr] = FILENAME ":" FNR ": " name \
			" begins with a pronoun"
}

END {
	if (nr + 0 > todo + 0) {
		for (i = 1; i <= nr; i++)
			bad(found[i])
		bad(nr " names of tests are wrong, " todo + 0 " are allowed")
	} else if (nr + 0 < todo + 0) {
		bad(nr + 0 " names of tests are wrong: make that the number" \
		    " in scripts/source.sh, which is " todo)
	}
	if (!nr_names)
		bad("there are no tests")
	print nr_names + 0 " tests"
	exit failed
}
