# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# Parts that boot virtual machines. Sourced by scripts/part.
# shellcheck shell=bash

part_vm-selftest() {
	selftests/vm/selftest
}

# boot_tests KERNEL TEST...: all of them in one boot.
boot_tests() {
	local kernel=$1 test copies=() factor=${BOOT_FACTOR:-4}
	local reload=/vm/parklot.ko
	local options=(${BOOT_MODULE:+--module "$BOOT_MODULE"}
		${SMP:+--smp "$SMP"} ${NUMA:+--numa "$NUMA"}
		${BOOT_SAVE:+--save "$BOOT_SAVE" "$COVERAGE_GUEST"})
	shift

	# KCSAN was told the functions by their addresses.
	[[ $kernel != kcsan ]] || reload=''
	for test; do
		copies+=(--copy-to test/t "$test")
	done
	selftests/vm/run --timeout "${BOOT_TIMEOUT:-2400}" \
		${ICOUNT:+--icount} "${options[@]}" "${copies[@]}" \
		"$kernel" -- /vm/suite.sh \
		--timeout "${BOOT_PROGRAM_TIMEOUT:-$((75 * factor))}" \
		TEST_TIMEOUT_FACTOR="$factor" MOD_FUZZ_MODULE="$reload" \
		MOD_WITHOUT_CREW="${MOD_WITHOUT_CREW:-}" \
		PARKLOT_INJECT_SEED="${PARKLOT_INJECT_SEED:-1}" \
		LIB_TEST_SCALE="${LIB_TEST_SCALE:-30}" \
		${TEST_TIMED:+"TEST_TIMED=$TEST_TIMED"} \
		${TEST_OPEN:+"TEST_OPEN=$TEST_OPEN"} \
		${TEST_ONLY:+"TEST_ONLY=$TEST_ONLY"}
}

# boot_lib KERNEL TEST...: the same of the library's.  What hangs on time is left to
# part_counted: here processors are emulated, by threads that wait for theirs.
boot_lib() {
	TEST_TIMED=without boot_tests "$@"
}

# boot_all KERNEL TEST...: the device's tests in one boot, the library's in another.
boot_all() {
	local kernel=$1 test mod=() lib=() status=0
	shift

	for test; do
		if [[ ${test##*/} == mod_* ]]; then
			mod+=("$test")
		else
			lib+=("$test")
		fi
	done
	((${#mod[@]} == 0)) || boot_tests "$kernel" "${mod[@]}" || status=$?
	((${#lib[@]} == 0)) || boot_lib "$kernel" "${lib[@]}" || status=$?
	return "$status"
}

# left PROGRAM...: those of which the environment leaves a test.
left() {
	local program

	for program; do
		[[ -z $("$program" -l) ]] || echo "$program"
	done
}

# in_machine KERNEL: every test.
in_machine() {
	mk vm VARIANT=static selftests
	# shellcheck disable=SC2046 # words are meant
	boot_all "$1" $(programs vm mod) $(programs vm lib)
}

# lib_programs DIR ROOM...: the library's tests that stand in these rooms; of one
# without tests a program that does not exist, which fails.
lib_programs() {
	local dir=$1 room test
	shift

	for room; do
		for test in "selftests/lib/$room"/lib_*.c; do
			[[ -e $test ]] || test=no_test_in_$room.c
			test=${test##*/}
			echo "$O/$dir/selftests/${test%.c}"
		done
	done
}

# in_kernel KERNEL ROOM...: the tests of the device, and the library's that stand
# in these rooms: those that ask most of a kernel.  "make check-long" has all.
in_kernel() {
	local kernel=$1
	shift

	mk vm VARIANT=static selftests
	# shellcheck disable=SC2046 # words are meant
	boot_all "$kernel" $(programs vm mod) $(lib_programs vm "$@")
}

# device_in KERNEL: the device's tests, but for what takes minutes: vm-* have it all.
device_in() {
	local tests

	# shellcheck disable=SC2046 # words are meant
	tests=$(but_for mod_fuzz mod_lost mod_crew_race mod_reclaim mod_limits \
		mod_worker_exit mod_owner mod_latency mod_nomem \
		-- $(programs plain static_mod))

	fetched "$1"
	# shellcheck disable=SC2086 # words are meant
	mk plain $tests
	export TEST_TIMED=without BOOT_FACTOR=10
	# shellcheck disable=SC2046,SC2086 # words are meant
	boot_tests "$1" $(left $tests)
}

part_device() {
	device_in 6.12
}

part_device-7.2() {
	is_missing_72 || device_in 7.2
}

# What hangs on time, where an instruction is a nanosecond, and sleep takes none:
# the same on any machine.  On the device, with one processor.
part_counted() {
	mk plain static-tests
	export TEST_TIMED=only ICOUNT=yes LIB_TEST_SCALE=${LIB_TEST_SCALE:-10}
	# shellcheck disable=SC2046 # words are meant
	boot_tests 6.12 $(left $(but_for mod_reclaim mod_lost mod_crew_race \
		mod_handoff lib_pin -- $(programs plain static_mod) \
		$(programs plain static_lib)))
}

# in_arm64 KERNEL [REGEX]: the device's tests and the library's, or those with
# names that REGEX matches.
in_arm64() {
	export LIB_TEST_SCALE=20
	mk_aarch64 selftests
	# shellcheck disable=SC2046 # words are meant
	boot_all "$1" $(programs aarch64 mod) \
		$(programs aarch64 lib | tr ' ' '\n' | grep -E "${2:-.}")
}

part_vm-6.1() {
	in_kernel 6.1 park ring io queue run pace watch
}

# Four processors; vm-6.1, vm-no-crew and vm-inject have two. See vm-processors.
part_vm-6.12() {
	SMP=${SMP:-4} in_kernel 6.12 park ring io queue run pace watch time wait
}

# libraries_of PROGRAM...: the files that these are loaded with.
libraries_of() {
	ldd "$@" | grep -o '/[^ :]* (' | tr -d ' (' | sort -u
}

# in_apps KERNEL: real programs and their clients, on the device.
in_apps() {
	local file programs tests copies=()

	mk plain lib apps app-tests
	programs=("$O/plain/examples/httpd/httpd" "$O/plain/examples/kv/kv"
		/usr/bin/redis-benchmark /usr/bin/redis-cli)
	tests=(selftests/apps/guest/*)
	for file in curl jobs names sqlite; do
		programs+=("$O/plain/selftests/apps/$file")
	done
	for file in "${programs[@]}" selftests/apps/guest/server.sh; do
		copies+=(--copy-to test/bin "$file")
	done
	for file in $(libraries_of "${programs[@]}"); do
		copies+=(--copy-to "$(dirname "${file#/}")" "$file")
	done
	for file in "${tests[@]}"; do
		[[ $file == *.sh ]] || copies+=(--copy-to test/t "$file")
	done
	selftests/vm/run --timeout 1200 ${SMP:+--smp "$SMP"} "${copies[@]}" \
		"$1" -- /vm/suite.sh --timeout 300 TEST_TIMEOUT_FACTOR=4 \
		PARKLOT_BACKEND=module APP_SECONDS="${APP_SECONDS:-4}"
}

part_vm-apps() {
	in_apps 6.12
}

part_vm-apps-7.2() {
	is_missing_72 || in_apps 7.2
}

# is_missing_72: with the skip as the whole result.
is_missing_72() {
	! fetched 7.2 || return 1
	tap_begin
	skip kernel "Linux 7.2 could not be fetched"
	tap_end
}

part_vm-7.2() {
	is_missing_72 || SMP=${SMP:-4} in_kernel 7.2 park ring io
}

# As a kernel without CONFIG_PREEMPT_NOTIFIERS has it. The library's sysmon does
# then what the crew would.
part_vm-no-crew() {
	local test tests=()

	mk vm VARIANT=static selftests
	for test in blocked lot sysmon; do
		tests+=("$O/vm/selftests/lib_$test")
	done
	BOOT_MODULE=$(selftests/vm/build 6.12 "$O/check/no-crew" \
		PARKLOT_NO_CREW=1)
	export BOOT_MODULE MOD_WITHOUT_CREW=1
	# shellcheck disable=SC2046 # words are meant
	boot_all 6.12 $(programs vm mod) "${tests[@]}"
}

# Programs of today on a module with structs that have grown.
part_vm-grown() {
	local test tests=()

	for test in query setup input crew_owner; do
		tests+=("$O/vm/selftests/mod_$test")
	done
	mk vm VARIANT=static "${tests[@]}"
	scripts/grow-abi "$O/check/grown-source"
	BOOT_MODULE=$(selftests/vm/build --from "$O/check/grown-source" 6.12 \
		"$O/check/grown")
	export BOOT_MODULE
	boot_tests 6.12 "${tests[@]}"
}

# Another seed each time, as above.  A worker that is delayed sleeps in the
# kernel, and so is blocked, as the crew sees it: what counts those cannot be
# tested so.
part_vm-inject() {
	local test tests=()

	for test in orphan_ring lot idle_timeout sysmon crowd hogs; do
		tests+=("$O/vm-inject/selftests/lib_$test")
	done
	mk vm-inject VARIANT=inject LDFLAGS=-static "${tests[@]}"
	BOOT_MODULE=$(selftests/vm/build 6.12 "$O/check/inject-6.12" \
		PARKLOT_INJECT=1)
	export BOOT_MODULE
	export PARKLOT_INJECT_SEED=${PARKLOT_INJECT_SEED:-$(date +%s%N)}
	echo "# PARKLOT_INJECT_SEED=$PARKLOT_INJECT_SEED"
	boot_lib 6.12 "${tests[@]}"
}

# On one processor with a clock that counts instructions, a nanosecond each: where
# locks alone keep a thread that is ready from running, and where a system call
# has to offer its processor.
part_vm-latency() {
	local mode

	mk vm VARIANT=static "$O/vm/selftests/mod_latency"
	for mode in full voluntary; do
		echo "# preempt=$mode"
		selftests/vm/run --icount --timeout 600 \
			--append "preempt=$mode" \
			--copy-to test/t "$O/vm/selftests/mod_latency" \
			6.12 -- /vm/suite.sh --timeout 300 MOD_LATENCY=1
	done
}

part_vm-6.1-arm64() {
	in_arm64 6.1-arm64 '/lib_(errno|io|lot|mutex|spawn|stop|switch|task|word)$'
}

# In the tree of 6.12, built by its lib.mk and run by its runner: all of them
# are built, and those that take a second are run.
part_kselftest() {
	scripts/test/test-kselftest "$O/check/kselftest" 6.12 \
		mod_{fault,input,map,park,query,setup,wake}
}

# The device as patches for the kernel, as far as no kernel is built.
part_series() {
	scripts/test/test-series "$O/check/series" 6.12
}

part_dkms() {
	mk vm VARIANT=static mod-tests
	scripts/test/test-dkms "$O/check/dkms" "$O"/vm/selftests/mod_{query,wake}
}
