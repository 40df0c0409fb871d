# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# awk -f clocks.awk FILE...
# In tests no check has an upper bound in time, or one in processor time or in
# switches of a thread, but in those that TEST_TIMED() names.  That something
# does not come before its deadline, each machine can hold.  In functions that
# are no tests such a check is for timed tests, or for none: it is refused too,
# unless all tests of its file are timed.  The simulation's own tests, which have
# virtual time, are not looked at.

function bad(what) { print FILENAME ":" FNR ": " what; failed = 1 }

# The name that a TEST() or TEST_F() gives.
function test_of(line,	arg, n)
{
	n = split(line, arg, /[(),][ \t]*/)
	return line ~ /^TEST(_SIGNAL)?\(/ ? arg[2] : arg[3]
}

FNR == 1 {
	delete timed
	name = ""
	skip = FILENAME ~ /selftests\/lib\/sim\//
}
skip { next }
/^TEST_TIMED\(/ {
	split($0, arg, /[(),]/)
	timed[arg[2]] = 1
	next
}
/^TEST_REAL\(/ { next }
/^TEST[A-Z_]*\(/ { name = test_of($0); next }
/^[a-z].*\(/ && !/;$/ { name = "" }
/(EXPECT|ASSERT)_[A-Z]+\(/ {
	check = $0
	while (check !~ /;|\{/ && (getline line) > 0)
		check = check " " line
	if (check ~ /UNTIL|_until\(/ || name in timed)
		next
	gsub(/[ \t]+/, " ", check)
	if (check ~ /_G(T|E)\(.*,.*(pl_now|now_ns)/ ||
	    check ~ /_L(T|E)\((pl_now|now)/ ||
	    check ~ /(rt_cpu_ns|nr_switches|thread_nr_switches)/ ||
	    (name != "" && check ~ /(cpu_ns|ru_n?v?csw)/))
		bad("looks at a clock, and no TEST_TIMED(): " check)
}
END { exit failed }
