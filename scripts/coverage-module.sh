# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# The part "coverage-module": which lines of module/ run in a guest over all
# mod_* programs and mod_fuzz, on a module built for gcov, with delays in its
# races. Sourced by scripts/part.
#
#	KERNEL=NAME	debug or debug-7.2: only these have gcov (debug)
#	TIME=S		seconds of mod_fuzz (300; make coverage-module: 600)
#	SEED=N		of mod_fuzz, by default the time of day
#	SMP=N		processors of the guests (2, for mod_fuzz 8)
#
# The counters of a module outlive it in the kernel, so that mod_fuzz, which
# unloads the module after each round, and the module's exit are counted.
# shellcheck shell=bash

COVERAGE_FLOOR=95
COVERAGE_SLICE=7	# programs a boot: a guest that dies takes those with it
COVERAGE_GUEST=/sys/kernel/debug/gcov

# coverage_boots KERNEL KO DIR: a boot for each slice of mod_*, and one of
# mod_fuzz; each leaves its counters in DIR.
coverage_boots() {
	local kernel=$1 ko=$2 dir=$3 tests i status=0

	read -ra tests <<<"$(programs vm mod)"
	export BOOT_MODULE=$ko BOOT_TIMEOUT=7200 BOOT_PROGRAM_TIMEOUT=2400
	export BOOT_FACTOR=12
	for ((i = 0; i < ${#tests[@]}; i += COVERAGE_SLICE)); do
		progress "$kernel: $((i + 1)) of ${#tests[@]}"
		BOOT_SAVE=$dir/tests-$i.tgz boot_tests "$kernel" \
			"${tests[@]:i:COVERAGE_SLICE}" || status=$?
	done
	fuzz_boot "$kernel" "mod_fuzz_gcov_seed_$SEED" "$ko" "$TIME" \
		--save "$dir/fuzz.tgz" "$COVERAGE_GUEST"
	return "$status"
}

# coverage_lines KO TGZ...: what gcov says of the counters of each boot. It
# wants to find them beside the notes of the module's build.
coverage_lines() {
	local notes=${1%/*}/module tgz dir
	shift

	for tgz; do
		dir=${tgz%.tgz}
		rm -rf "$dir"
		mkdir -p "$dir/all"
		tar -C "$dir/all" -xzf "$tgz"
		find "$dir/all" -path '*/module/*.gcda' -exec mv -t "$dir" {} +
		cp "$notes"/*.gcno "$dir"
		gcov-12 -t -b -c "$dir"/*.gcda
	done
}

# coverage_table KO TGZ...: the table, as $O/check/coverage-module.txt too.
coverage_table() {
	local root=${1%/*}/

	coverage_lines "$@" |
		awk -v floor="$COVERAGE_FLOOR" -v under=module/ \
			-v root="$root" -v strict=1 -v errors=1 \
			-v skip='^module/inject[.]|PARKLOT_INJECT[(]' \
			-f scripts/coverage.awk scripts/coverage-module-why - |
		tee "$O/check/coverage-module.txt"
}

# coverage_kernel: stops unless KERNEL has gcov.
coverage_kernel() {
	case ${KERNEL:-debug} in
	debug | debug-7.2) echo "${KERNEL:-debug}" ;;
	*)
		echo "coverage-module: KERNEL=$KERNEL has no gcov;" \
			"debug and debug-7.2 have" >&2
		return 1 ;;
	esac
}

part_coverage-module() {
	local kernel ko dir=$O/check/coverage-boots status=0
	kernel=$(coverage_kernel)

	rm -rf "$O/check/coverage-module.txt" "$dir"
	can_build "$kernel"
	mk vm VARIANT=static mod-tests
	ko=$(selftests/vm/build "$kernel" "$O/check/coverage-module" \
		PARKLOT_GCOV=1 PARKLOT_INJECT=1)
	mkdir -p "$dir"
	coverage_boots "$kernel" "$ko" "$dir" || status=$?
	tap_begin
	try "coverage_of_module_in_$kernel" coverage_table "$ko" "$dir"/*.tgz
	tap_end
	return "$status"
}
