# SPDX-License-Identifier: GPL-2.0-only
# Messages of the harness, all of them on stderr: stdout belongs to the guest.
# shellcheck shell=bash

# The harness itself failed; this says nothing about the guest.
SAY_CANNOT=125

say() {
	echo "vm: $*" >&2
}

die() {
	say "$*"
	exit "$SAY_CANNOT"
}

# usage FILE: the block of comments that opens FILE, less SPDX and hashes.
usage() {
	awk 'NR < 3 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$1"
}

# need COMMAND PACKAGE: stop if COMMAND is missing, naming its PACKAGE.
need() {
	command -v "$1" >/dev/null ||
		die "$1 is missing: apt-get install $2"
}
