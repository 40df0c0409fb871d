# SPDX-License-Identifier: GPL-2.0-only
# For the tests beside: results, a server of examples/, its clients. They run by
# busybox in the guest, on the device (PARKLOT_BACKEND=module).
# shellcheck shell=dash

: "${APP_SECONDS:?}"

echo 'TAP version 13'
echo 1..1

# passed RESULT: the only one; without it the test has failed.
passed() {
	echo "ok 1 $1"
}

fail() {
	echo "# $*"
	echo 'not ok 1 programs_end_well'
	exit 1
}

must() {
	"$@" || fail "$* failed"
}

# eventually COMMAND...: the limit is that of the suite.
eventually() {
	until "$@"; do
		usleep 20000
	done
}

# alphabet BYTES: the letters again and again.
alphabet() {
	yes abcdefghijklmnopqrstuvwxyz | tr -d '\n' | head -c "$1"
}

# Its listener, and connections.
nr_sockets() {
	# shellcheck disable=SC2010 # names are the kernel's
	ls -l "/proc/$pid/fd" | grep -c socket:
}

has_no_connections() {
	[ "$(nr_sockets)" = 1 ]
}

port=''

# server_start NAME OPTION...: its $port.
server_start() {
	name=$1
	shift
	# Before the child does: what the last server said is not this one's.
	: >/tmp/server.out
	"/test/bin/$name" "$@" >/tmp/server.out 2>&1 &
	pid=$!
	eventually grep -q '^listening' /tmp/server.out
	# shellcheck disable=SC2034 # for the test
	port=$(sed -n 's/^listening.*://p' /tmp/server.out)
	# shellcheck disable=SC2010 # names are the kernel's
	ls -l "/proc/$pid/fd" | grep -q /dev/parklot ||
		fail "it does not use the device"
}

# It has what it had at first, drains, and ends well.
server_stop() {
	eventually has_no_connections
	kill -TERM "$pid"
	wait "$pid" || fail "the server: $?; $(cat /tmp/server.out)"
}

# at_a_time NUMBER COMMAND...: as children.
at_a_time() {
	pids=''
	left=$1
	shift
	while [ "$left" -gt 0 ]; do
		"$@" &
		pids="$pids $!"
		left=$((left - 1))
	done
	for child in $pids; do
		wait "$child" || fail "$*: $?"
	done
}
