#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: stacks.sh [SESSION]
# In the guest: where each thread of each process sleeps in the kernel. Of
# one session, if it is named. Starts no process, as time may be short.

session=${1-}

for process in /proc/[0-9]*; do
	# Kernel threads have no command line.
	text=
	read -r text <"$process/cmdline"
	[ -n "$text" ] || continue
	# The fields of stat, counted from behind the command's name.
	read -r stat <"$process/stat" || continue
	# shellcheck disable=SC2086 # words are meant
	set -- ${stat##*) }
	[ -z "$session" ] || [ "$session" = "$4" ] || continue
	for thread in "$process"/task/*; do
		read -r comm <"$thread/comm" || continue
		echo "thread ${thread##*/} of ${process##*/} $comm: state $1"
		while read -r text; do
			echo "  $text"
		done <"$thread/stack"
	done
done 2>/dev/null
