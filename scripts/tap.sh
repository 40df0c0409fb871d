# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# For checks that are scripts: results as TAP, to be counted by ktap.awk.
# shellcheck shell=bash

tap_nr=0
tap_failed=0

tap_begin() {
	tap_nr=0
	echo "TAP version 13"
}

ok() {
	echo "ok $((++tap_nr)) $*"
}

not_ok() {
	tap_failed=1
	echo "not ok $((++tap_nr)) $*"
}

skip() {
	local name=$1
	shift

	echo "ok $((++tap_nr)) $name # SKIP $*"
}

# strict COMMAND...: its output, with errexit in force; status in $status.
# (It is not where a status is looked at, not even in a function called
# there; so this is to be called plainly.)
strict() {
	set +e
	(set -e; "$@") 2>&1 </dev/null | sed 's/^/# /'
	status=${PIPESTATUS[0]}
	set -e
}

# try NAME COMMAND...: one result, the command's output as its diagnostics.
try() {
	local name=$1 status
	shift

	strict "$@"
	if ((status)); then
		not_ok "$name"
	else
		ok "$name"
	fi
}

# must_fail NAME WORDS COMMAND...: it has to fail, and to say WORDS.
must_fail() {
	local name=$1 words=$2 output
	shift 2

	if output=$("$@" 2>&1 </dev/null); then
		echo "# it did not fail: $*"
		not_ok "$name"
	elif [[ $output != *"$words"* ]]; then
		echo "# '$words' was not said, but: ${output//$'\n'/ | }"
		not_ok "$name"
	else
		ok "$name"
	fi
}

tap_end() {
	echo "1..$tap_nr"
	return "$tap_failed"
}
