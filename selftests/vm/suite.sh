#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: suite.sh [--timeout S] [--dir DIR] [NAME=VALUE]...
#
# In the guest: runs each executable file of DIR (/test/t) in the order of
# its name, with NAME=VALUE in its environment and a time limit, and prints
# KTAP with each test's own output nested. A test passes with status 0, is
# skipped with 4, and fails with any other, when its time is over, or when
# the kernel log has a warning after it.
#
# The limit is S seconds, or timeout=S in DIR/settings, or 45.
# Status: 0; 1 if a test failed or there is none; 4 if all were skipped.

dir=/test/t
limit=
scratch=$(mktemp -d /tmp/suite.XXXXXX)

while [ $# -gt 0 ]; do
	case $1 in
	--timeout) limit=$2; shift ;;
	--dir) dir=$2; shift ;;
	*=*) export "${1?}" ;;
	*) echo "# suite.sh: what is '$1'?"; exit 1 ;;
	esac
	shift
done
if [ -z "$limit" ] && [ -r "$dir/settings" ]; then
	limit=$(sed -n 's/^timeout=//p' "$dir/settings")
fi
: "${limit:=45}"

# The names of the tests.
list() {
	for file in "$dir"/*; do
		[ -f "$file" ] && [ -x "$file" ] && basename "$file"
	done
}

# watch SESSION: when the time is over, say where the test sleeps, and end
# it with all its children, which are its process group. In a session of its
# own, so that it can be ended in the same way.
watch() {
	# shellcheck disable=SC2016 # for the shell inside
	setsid sh -c '
		sleep "$1"
		: >"$3/late"
		/vm/stacks.sh "$2" >"$3/stacks" 2>&1
		kill -KILL -"$2"
	' sh "$limit" "$1" "$scratch" &
}

# end_reader: it ends by itself unless the test left a daemon behind.
end_reader() {
	tries=0
	while kill -0 $reader && [ $tries -lt 20 ]; do
		usleep 100000
		tries=$((tries + 1))
	done
	kill $reader
	wait $reader
}

# run_one FILE: its output goes to stdout, "# " before each line; its status
# is left in $status. The test leads a session and a process group; whatever
# is left of it is killed, so that the reader of the pipe comes to an end.
run_one() {
	rm -f "$scratch"/*
	mkfifo "$scratch/pipe"
	sed 's/^/# /' <"$scratch/pipe" &
	reader=$!
	setsid "$1" </dev/null >"$scratch/pipe" 2>&1 &
	session=$!
	watch $session
	guard=$!
	wait $session
	status=$?
	kill -KILL $guard
	kill -KILL -$guard
	kill -KILL -$session
	end_reader
	wait $guard
} 2>/dev/null

# bad_log MARK: what the kernel logged after the line MARK, and should not
# have.
bad_log() {
	dmesg | sed "1,/$1\$/d" | grep -E -f /vm/log.bad |
		grep -v -E -f /vm/log.ignore
}

# verdict NUMBER NAME: the line of the test just run.
verdict() {
	line="$1 $2"
	bad=$(bad_log "parklot-suite: test $1 $2")
	if [ -n "$bad" ]; then
		echo "$bad" | sed 's/^/# kernel: /'
		line="not ok $line # kernel log"
	elif [ -e "$scratch/late" ]; then
		sed 's/^/# /' "$scratch/stacks"
		line="not ok $line # TIMEOUT $limit seconds"
	elif [ $status = 0 ]; then
		line="ok $line"
	elif [ $status = 4 ]; then
		line="ok $line # SKIP"
	else
		line="not ok $line # exit=$status"
	fi
	echo "$line"
}

# count LINE: into the totals.
count() {
	case $1 in
	*"# SKIP") skip=$((skip + 1)) ;;
	ok*) pass=$((pass + 1)) ;;
	*) fail=$((fail + 1)) ;;
	esac
}

pass=0 fail=0 skip=0 number=0
total=$(list | wc -l)
echo "TAP version 13"
echo "1..$total"
for name in $(list); do
	number=$((number + 1))
	echo "# timeout set to $limit"
	echo "# selftests: parklot: $name"
	echo "parklot-suite: test $number $name" >/dev/kmsg
	run_one "$dir/$name"
	verdict $number "$name" >"$scratch/verdict"
	cat "$scratch/verdict"
	count "$(tail -n 1 "$scratch/verdict")"
done
echo "# Totals: pass:$pass fail:$fail xfail:0 xpass:0 skip:$skip error:0"
rm -rf "$scratch"

[ $fail = 0 ] && [ "$total" -gt 0 ] || exit 1
[ $pass -gt 0 ] || exit 4
