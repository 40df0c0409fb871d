#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# Usage: scripts/lint/frames.sh LIBPARKLOT.SO
#
# A walk along frame pointers passes the library, see lib/base/frame.h: public
# functions that call others make a frame record, but those that are listed
# here, and no other function of ours writes the register.  And a frame larger
# than a page is touched page by page, by -fstack-clash-protection: so it meets
# the guard of a stack and does not step over it.

set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C

# They are short, never wait, and would take more than 1 % longer; pl_cond_wait()
# becomes pl_cond_wait_until(), which has one.
WITHOUT="pl_cond_broadcast pl_cond_signal pl_cond_wait pl_mutex_unlock pl_spawn
pl_timer_add pl_timer_del pl_word_wake"

# unprobed SO: functions that take a page of stack and do not touch it at once.
unprobed() {
	objdump -d --no-show-raw-insn "$1" | awk '
		taken {
			if (!/\tor[a-z]* +\$0x0,/)
				print name " takes a frame untouched"
			taken = 0
		}
		/^[0-9a-f]+ <.*>:$/ {
			name = $2
			gsub(/[<>:]/, "", name)
		}
		# To subtract -128 is shorter than to add 128.
		/\tsub +\$0x[0-9a-f][0-9a-f][0-9a-f][0-9a-f]+,%rsp/ &&
		!/\$0xffffffff/ { taken = 1 }
	' | sort -u
}

# listing SO: NAME has|writes|calls|to NAME, for what the functions do; the last
# is a jump in place of a call.
listing() {
	objdump -d --no-show-raw-insn "$1" | awk '
		function plain(name) {
			gsub(/[<>:]|[+]0x.*/, "", name)
			sub(/\.(part|cold|constprop|isra).*/, "", name)
			return name
		}
		/^[0-9a-f]+ <.*>:$/ { name = plain($2); next }
		/mov +%rsp,%rbp/ { print name, "has"; next }
		/[ ,]%rbp$/ && !/push|pop|cmp|test/ { print name, "writes" }
		/:\tcall/ { print name, "calls" }
		/:\tj[a-z]+ .*<.*>$/ {
			target = plain($NF)
			if (target != name)
				print name, "to", target
		}' | sort -u
}

main() {
	local so=$1 list api status=0 bad
	list=$(listing "$so")
	api=$(nm -D --defined-only "$so" |
		awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u)

	bad=$(awk -v api="$api" -v without="$WITHOUT" '
		BEGIN {
			nr = split(api, names, "\n")
			for (i = 1; i <= nr; i++)
				public[names[i]] = 1
			nr = split(without, names, " ")
			for (i = 1; i <= nr; i++)
				bare[names[i]] = 1
		}
		{ does[$1, $2] = 1; all[$1] = 1 }
		$2 == "to" && $1 in public && !($1 in bare) &&
		!($3 in public) && $3 != "pl__ctx_swap" { print $1 " jumps to " $3 }
		END {
			for (name in all) {
				# A switch loads what the other stack has.
				if (does[name, "writes"] &&
				    name !~ /^pl__ctx_(swap|boot)$/)
					print name " writes the register"
				if (does[name, "has"] && name in bare)
					print name " has a record and is listed"
				if (does[name, "calls"] && name in public &&
				    !(name in bare) && !does[name, "has"])
					print name " has no record"
			}
		}' <<<"$list")
	bad=$(echo "$bad" && unprobed "$so")
	bad=${bad#$'\n'}
	if [[ -n $bad ]]; then
		echo "$bad"
		status=1
	fi
	grep -c ' has$' <<<"$list" | sed 's/$/ functions have a record/'
	return "$status"
}

main "$@"
