# SPDX-License-Identifier: GPL-2.0-only
# Lines of the kernel log that blame the module. log.bad and log.ignore are
# lists of extended regular expressions; suite.sh reads the same two.
# shellcheck shell=bash

# The taints of a module built out of the tree (12) and not signed (13).
LOG_TAINT_EXPECTED=$(((1 << 12) | (1 << 13)))

# log_patterns NAME: one of the two lists, without its comments.
log_patterns() {
	sed '/^#/d' "$VM_DIR/$1"
}

# log_bad FILE...: the lines that should not be there, each once. Succeeds
# whether there are any or not.
log_bad() {
	cat "$@" | tr -d '\r' | grep -a -E -f <(log_patterns log.bad) |
		grep -a -v -E -f <(log_patterns log.ignore) |
		awk '!seen[$0]++' || :
}

# log_taint VALUE: the bits beyond the expected, as a list; or nothing.
log_taint() {
	local left=$(($1 & ~LOG_TAINT_EXPECTED)) bit bits=()

	for ((bit = 0; left >> bit; bit++)); do
		(((left >> bit & 1) == 0)) || bits+=("$bit")
	done
	printf '%s\n' "${bits[*]}"
}

# log_has_stale_breakpoint FILE: a processor hit a breakpoint where its memory
# has none: no cc stands before the instruction in < >. Linux writes one while it
# changes code that another processor may run, and QEMU 10 with a thread for each
# of them may keep what it translated meanwhile: docs/testing.md.
log_has_stale_breakpoint() {
	tr -d '\r' <"$1" | awk '
		/Oops: int3/ { is_hit = 1 }
		is_hit && /Code: .* <[0-9a-f][0-9a-f]> / {
			is_stale = !/ cc </
			exit
		}
		END { exit !is_stale }'
}
