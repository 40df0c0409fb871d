#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: module/wake-flags.sh SRCTREE VERSION PATCHLEVEL
#
# For Kbuild: prints the scheduler's own flags that default_wake_function() lets
# pass, as -D options, or nothing if they are not known for sure: then HANDOFF
# is not offered. They are defined in kernel/sched/sched.h, which the packages
# of headers do not have. If that file is there, its values are printed;
# otherwise those of the kernels that were read: from 6.6, where the commit
# "sched: add WF_CURRENT_CPU and externise ttwu" brought the flags, to the
# newest one below. A later kernel is added once its source was read.

set -eu
newest='7 2'

# value FILE NAME: of a macro, a number in hexadecimal.
value() {
	sed -n "s/^#define[[:space:]]*$2[[:space:]]*\(0x[0-9a-f]*\)\([[:space:]].*\)*\$/\1/p" \
		"$1"
}

# is_known VERSION PATCHLEVEL
is_known() {
	# shellcheck disable=SC2086 # two words
	set -- "$1" "$2" $newest
	[ $(($1 * 1000 + $2)) -ge 6006 ] &&
		[ $(($1 * 1000 + $2)) -le $(($3 * 1000 + $4)) ]
}

flags=$1/kernel/sched/sched.h
if [ -f "$flags" ]; then
	sync=$(value "$flags" WF_SYNC)
	here=$(value "$flags" WF_CURRENT_CPU)
elif is_known "$2" "$3"; then
	sync=0x10 here=0x40
fi
if [ -n "${sync-}" ] && [ -n "${here-}" ]; then
	echo "-DPARKLOT_HAS_HANDOFF -DPARKLOT_WF_SYNC=$sync" \
		"-DPARKLOT_WF_CURRENT_CPU=$here"
fi
