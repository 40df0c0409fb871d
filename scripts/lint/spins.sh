#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# Usage: scripts/lint/spins.sh OBJDUMP LIBPARKLOT.A
#
# Loops that spin on aarch64 wait a moment in each turn, by "isb": "yield" is a
# nop on most processors, and so 100 turns would be over in 0.2 us, and a lock
# would sleep that its owner is about to give back.  See pl__cpu_relax().

set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C

SPINNERS="pl__lock_slow mutex_spin rwlock_spin"

main() {
	local name status=0 list

	# Compilers may make several copies of a function.
	list=$("$1" -d --no-show-raw-insn "$2" | awk '
		/^[0-9a-f]+ <.*>:$/ {
			name = $2
			gsub(/[<>:]|\.(part|cold|constprop|isra).*/, "", name)
			print name
		}
		$2 == "isb" { print name, "waits" }' | sort -u)
	for name in $SPINNERS; do
		if ! grep -qx "$name" <<<"$list"; then
			echo "there is no $name()"
			status=1
		elif ! grep -qx "$name waits" <<<"$list"; then
			echo "$name() spins without an isb"
			status=1
		fi
	done
	return "$status"
}

main "$@"
