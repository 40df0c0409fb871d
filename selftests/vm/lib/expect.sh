# SPDX-License-Identifier: GPL-2.0-only
# A little test runner in KTAP for shell: a test is a function, run in a
# shell of its own with set -e, so that its first failing line fails it.
# shellcheck shell=bash

# Where the last command's output lies.
EXPECT_OUT='' EXPECT_ERR=''

# expect STATUS COMMAND ARG...: run it; it should end with STATUS.
expect() {
	local want=$1 status=0
	shift

	"$@" >"$EXPECT_OUT" 2>"$EXPECT_ERR" || status=$?
	[[ $status == "$want" ]] ||
		expect_fail "status $status instead of $want: $*"
}

# expect_out TEXT: the whole of its stdout, but for a newline at the end.
expect_out() {
	[[ $(<"$EXPECT_OUT") == "$1" ]] || expect_fail "other output: $1"
}

# expect_line REGEX: a whole line of its stdout.
expect_line() {
	grep -q -x -E -e "$1" "$EXPECT_OUT" || expect_fail "no line: $1"
}

# expect_err REGEX: somewhere in its stderr.
expect_err() {
	grep -q -E -e "$1" "$EXPECT_ERR" || expect_fail "not said: $1"
}

expect_fail() {
	echo "$*"
	sed 's/^/stdout: /' "$EXPECT_OUT" | tail -n 30
	sed 's/^/stderr: /' "$EXPECT_ERR" | tail -n 30
	exit 1
}

# expect_run DIR NAME...: run the tests; DIR is for scratch files. The end
# of the function is its status: 0 if all have passed.
expect_run() {
	local dir=$1 name status number=0 failed=0
	shift

	EXPECT_OUT=$dir/expect.out EXPECT_ERR=$dir/expect.err
	echo "TAP version 13"
	echo "1..$#"
	for name; do
		number=$((number + 1))
		true >"$EXPECT_OUT" 2>"$EXPECT_ERR"
		set +e
		(set -e; "$name") >"$dir/expect.said" 2>&1
		status=$?
		set -e
		if ((status == 0)); then
			echo "ok $number $name"
		else
			failed=$((failed + 1))
			sed 's/^/# /' "$dir/expect.said"
			echo "not ok $number $name"
		fi
	done
	echo "# Totals: pass:$((number - failed)) fail:$failed"
	((failed == 0))
}
