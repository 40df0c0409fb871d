# SPDX-License-Identifier: GPL-2.0-only
# The verdict on a boot, from the guest's report, its kernel log and QEMU's
# status.
# shellcheck shell=bash

VERDICT_FAILED=1
VERDICT_LATE=124

# How much of the console is shown.
VERDICT_LINES=40

# verdict_read DIR: take the report apart into DIR/facts, all before its line
# "log", and DIR/dmesg. Without that line it is not complete.
verdict_read() {
	tr -d '\r' <"$1/report" >"$1/report.text"
	sed '/^log$/,$d' "$1/report.text" >"$1/facts"
	sed '1,/^log$/d' "$1/report.text" >"$1/dmesg"
	grep -a -q -x log "$1/report.text"
}

# verdict_fact DIR NOUN: the value of NOUN in the report.
verdict_fact() {
	sed -n "s/^$2 //p" "$1/facts"
}

# verdict_save DIR FILE: the files saved by the guest, unless it died before.
verdict_save() {
	rm -f "$2"
	if verdict_read "$1" && [[ -n $(verdict_fact "$1" saved) ]]; then
		verdict_fact "$1" saved | base64 -d >"$2" ||
			die "cannot write $2"
	fi
}

# verdict_log DIR: the kernel log, as reported and as on the console; its bad
# lines go to stderr, with the lines after the first of them. Fails if there is
# any.
verdict_log() {
	local bad
	bad=$(log_bad "$1/console" "$1/dmesg")

	[[ -n $bad ]] || return 0
	say "the kernel log has:"
	printf '%s\n' "$bad" >&2
	say "in full, from the first of them:"
	tr -d '\r' <"$1/console" | grep -a -F -A "$VERDICT_LINES" -m 1 \
		-e "${bad%%$'\n'*}" >&2 || :
	return 1
}

# verdict_dead DIR STATUS LIMIT: there is no report. Never 0.
verdict_dead() {
	if verdict_log "$1"; then
		say "the end of the console:"
		tail -n "$VERDICT_LINES" "$1/console" | tr -d '\r' >&2
	fi
	case $2 in
	124 | 137)
		say "tasks that sleep in the guest:"
		cat "$1/facts" >&2
		say "time limit: no end after $3 s"
		return "$VERDICT_LATE" ;;
	0)
		! log_has_stale_breakpoint "$1/console" ||
			say "QEMU ran a breakpoint that was gone: docs/testing.md"
		say "the guest died without reporting" ;;
	*) say "QEMU failed with status $2" ;;
	esac
	return "$VERDICT_FAILED"
}

# verdict DIR STATUS LIMIT: the status to end with.
verdict() {
	local status noun said failed=0

	if ! verdict_read "$1" || [[ $2 != "$QEMU_LEFT" ]]; then
		verdict_dead "$@"
		return
	fi
	for noun in load unload save; do
		said=$(verdict_fact "$1" $noun)
		[[ -z $said ]] || { say "$noun: $said"; failed=1; }
	done
	said=$(log_taint "$(verdict_fact "$1" taint)")
	[[ -z $said ]] || { say "the kernel is tainted: bits $said"; failed=1; }
	verdict_log "$1" || failed=1
	((failed == 0)) || return "$VERDICT_FAILED"

	status=$(verdict_fact "$1" status)
	return "${status:-$VERDICT_FAILED}"
}
