# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# The parts of "make check-long": what finds more the longer it runs. Sourced
# by scripts/part.
#
#	TIME=S		seconds of stress a build and number of workers, and of
#			the echo server a build (300)
#	SEEDS=N		into so many runs they are divided (3)
#	SEED=N		the first of the seeds, by default the time of day
#	REPEAT=N	so many times the whole suite (5)
#	KERNEL=NAME	which one is fuzzed (6.12), or those of a part's guests
#	SMP=N		processors of the guests (2; 8 of one that is fuzzed)
# shellcheck shell=bash

TIME=${TIME:-300}
SEEDS=${SEEDS:-3}
SEED=${SEED:-$(date +%s)}
REPEAT=${REPEAT:-5}

# progress WORDS: to the caller of scripts/check, and into the log.
progress() {
	echo "# $*"
	{ echo "     $*" >&3; } 2>/dev/null || true
}

# one_soak TEST DIR WRAPPER WORKERS SEED SECONDS: as run-tests has it, but for
# its name, which says which it was.
one_soak() {
	local name=$1_${2##*/}_$4_workers_seed_$5 status=0

	progress "$2: $1 --seconds $6 --seed $5 --workers $4"
	printf '# run: %s\n' "$name"
	# shellcheck disable=SC2086 # a wrapper may be several words
	PARKLOT_INJECT_SEED=$5 timeout --foreground -k 10 $(($6 * 2 + 300)) \
		$3 "$O/$2/selftests/$1" --seconds "$6" --seed "$5" \
		--workers "$4" </dev/null 2>&1 || status=$?
	printf '\n# exit: %s %s\n' "$name" "$status"
}

# stress DIR WRAPPER VAR=VALUE...: built so, on few workers, on many, and on as
# many as a large server has; and while limits come and go.
stress() {
	local dir=$1 wrapper=$2 workers nr
	shift 2

	mk "$dir" "$@" "$O/$dir/selftests/lib_stress" \
		"$O/$dir/selftests/lib_stress_limits"
	for workers in 2 8 64; do
		for ((nr = 0; nr < SEEDS; nr++)); do
			one_soak lib_stress "$dir" "$wrapper" "$workers" \
				$((SEED + nr)) $(((TIME + SEEDS - 1) / SEEDS))
		done
	done
	for workers in 2 8 64; do
		one_soak lib_stress_limits "$dir" "$wrapper" "$workers" \
			"$SEED" $(((TIME + SEEDS - 1) / SEEDS))
	done
}

part_stress-plain() {
	stress plain ''
}

part_stress-asan() {
	stress asan "$FIXED" VARIANT=asan
}

part_stress-tsan() {
	export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
	stress plain/tsan "$FIXED" VARIANT=tsan
}

part_stress-inject() {
	stress inject '' VARIANT=inject
}

# An echo server under load, while its tasks are cancelled.
soak_echo() {
	mk plain "$O/plain/selftests/lib_echo"
	mk asan VARIANT=asan "$O/asan/selftests/lib_echo"
	one_soak lib_echo plain '' 2 "$SEED" "$TIME"
	one_soak lib_echo asan "$FIXED" 2 "$SEED" "$TIME"
}

part_soak-echo() {
	soak_echo
}

part_soak-echo-poll() {
	PARKLOT_IO=poll soak_echo
}

# Libraries in tasks that are cancelled, a minute each.
part_soak-apps() {
	mk plain lib tools apps app-tests
	mk asan VARIANT=asan apps app-tests
	progress "plain and asan: ${APP_SECONDS:-60} s for each library"
	APP_SECONDS=${APP_SECONDS:-60} scripts/test/test-apps libraries
}

# On the device; its own steps are delayed as well.
part_stress-vm() {
	local ko workers name seconds=$(((TIME + 1) / 2)) status

	mk vm VARIANT=static "$O/vm/selftests/lib_stress"
	ko=$(selftests/vm/build 6.12 "$O/check/inject-6.12" PARKLOT_INJECT=1)
	for workers in 2 8; do
		name=lib_stress_vm_${workers}_workers_seed_$SEED status=0
		progress "6.12: --seconds $seconds --seed $SEED --workers $workers"
		printf '# run: %s\n' "$name"
		selftests/vm/run --timeout $((seconds * 2 + 300)) --module "$ko" \
			--copy "$O/vm/selftests/lib_stress" 6.12 -- \
			env PARKLOT_BACKEND=module TEST_TIMEOUT_FACTOR=4 \
			./lib_stress --seconds "$seconds" --seed "$SEED" \
			--workers "$workers" || status=$?
		printf '\n# exit: %s %s\n' "$name" "$status"
	done
}

# relay: stdin as it is; its lines of progress go to the caller, too.
relay() {
	local line

	while IFS= read -r line; do
		printf '%s\n' "$line"
		[[ $line != *':seed '*', up to round '* ]] ||
			{ echo "     ${line##*:}" >&3; } 2>/dev/null || true
	done
}

# can_build KERNEL: what it takes is installed, unless the cache has the kernel
# or Debian has built it.
can_build() {
	local cache=${XDG_CACHE_HOME:-$HOME/.cache}/parklot

	[[ $1 != debug* && $1 != kcsan || -d $cache/kernels/$1 ]] ||
		scripts/setup kernels
}

# fuzz_boot KERNEL NAME KO SECONDS [OPTION]...: mod_fuzz on this module, with
# these options of vm/run. Freed memory is poisoned, which Debian's kernels can
# do. More processors than this machine has: they are preempted anywhere.
fuzz_boot() {
	local kernel=$1 name=$2 ko=$3 seconds=$4 status=0
	shift 4

	progress "$kernel, ${SMP:-8} processors: --seconds $seconds --seed $SEED"
	printf '# run: %s\n' "$name"
	selftests/vm/run --timeout $((seconds * 2 + 600)) --module "$ko" \
		--smp "${SMP:-8}" --append slub_debug=FZPU "$@" \
		--copy "$O/vm/selftests/mod_fuzz" \
		"$kernel" -- env MOD_FUZZ_MODULE=/vm/parklot.ko \
		TEST_TIMEOUT_FACTOR=8 ./mod_fuzz --seconds "$seconds" \
		--seed "$SEED" | relay || status=$?
	printf '\n# exit: %s %s\n' "$name" "$status"
}

# fuzz_device KERNEL HOW [VAR=VALUE]...: half of the time, on the module built
# so.
fuzz_device() {
	local kernel=$1 how=$2 ko
	shift 2

	ko=$(selftests/vm/build "$kernel" "$O/check/fuzz-$how" "$@")
	fuzz_boot "$kernel" "mod_fuzz_${how}_seed_$SEED" "$ko" \
		$(((TIME + 1) / 2))
}

# As it is built for everybody, and with delays in its races.
part_fuzz() {
	can_build "${KERNEL:-6.12}"
	mk vm VARIANT=static "$O/vm/selftests/mod_fuzz"
	fuzz_device "${KERNEL:-6.12}" plain
	fuzz_device "${KERNEL:-6.12}" delayed PARKLOT_INJECT=1
}

part_fuzz-finds() {
	mk vm VARIANT=static "$O/vm/selftests/mod_fuzz"
	scripts/test/test-fuzz "$O/check/fuzz-finds"
}

# In the gate it is the tree of 6.12; the harness of 6.1 is an older one.
part_kselftest-6.1() {
	scripts/test/test-kselftest "$O/check/kselftest-6.1" 6.1 \
		mod_{fault,fuzz,handoff,input,latency,map,park,query,setup,wake}
}

part_secure-boot() {
	mk vm VARIANT=static "$O"/vm/selftests/mod_{query,wake}
	scripts/test/test-secure-boot "$O/check/secure-boot" \
		"$O"/vm/selftests/mod_{query,wake}
}

part_fuzz-7.2() {
	KERNEL=7.2
	part_fuzz
}

# The device as patches for the kernel: built there, as a module and built in,
# and booted.
part_series-built() {
	local test tests=()

	scripts/setup kernels
	for test in close crew crew_block fault handoff input map owner park \
		poll query setup uring wake wake_park; do
		tests+=("$O/vm/selftests/mod_$test")
	done
	mk vm VARIANT=static "${tests[@]}"
	scripts/test/test-series-built "$O/check/series-built" 6.12 \
		"${tests[@]}"
}

# The device's tests on few processors and on many; in the gate each kernel has
# one number. Eight share what the machine has: all takes longer.
part_vm-processors() {
	local kernel smp status=0

	mk vm VARIANT=static mod-tests
	export BOOT_MODULE BOOT_FACTOR=8 BOOT_TIMEOUT=2400
	for kernel in 6.12 7.2; do
		BOOT_MODULE=$(selftests/vm/build "$kernel" \
			"$O/check/processors-$kernel")
		for smp in ${SMP:-2 4 8}; do
			progress "$kernel: $smp processors"
			# shellcheck disable=SC2046 # words are meant
			SMP=$smp boot_tests "$kernel" $(programs vm mod) ||
				status=$?
		done
	done
	return "$status"
}

# The library's tests on many processors of two nodes, on the device: thieves
# tell near workers from far ones there. Sixteen share what the machine has too.
part_vm-processors-lib() {
	local kernel smp status=0

	mk vm VARIANT=static lib-tests
	export NUMA=${NUMA:-2} LIB_TEST_SCALE=${LIB_TEST_SCALE:-10}
	export BOOT_MODULE BOOT_FACTOR=16 BOOT_TIMEOUT=10800
	for kernel in ${KERNEL:-6.12 7.2}; do
		BOOT_MODULE=$(selftests/vm/build "$kernel" \
			"$O/check/processors-lib-$kernel")
		for smp in ${SMP:-8 16}; do
			progress "$kernel: $smp processors"
			# shellcheck disable=SC2046 # words are meant
			SMP=$smp boot_lib "$kernel" $(programs vm lib) ||
				status=$?
		done
	done
	return "$status"
}

part_repeat-native() {
	local nr

	for ((nr = 1; nr <= REPEAT; nr++)); do
		progress "native: $nr of $REPEAT"
		part_native
	done
}

part_repeat-inject() {
	local nr

	for ((nr = 0; nr < REPEAT; nr++)); do
		progress "inject: $((nr + 1)) of $REPEAT," \
			"PARKLOT_INJECT_SEED=$((SEED + nr))"
		PARKLOT_INJECT_SEED=$((SEED + nr)) part_inject
	done
}

# Every test in several guests at a time, so that two processors are short: what
# a thread has done between two steps of another is then much more.
part_vm-beside() {
	local nr kernel log status=0
	local kernels=${KERNEL:-6.1 6.12 $(! fetched 7.2 || echo 7.2)}

	mk vm VARIANT=static selftests
	mkdir -p "$O/check"
	export BOOT_FACTOR=8 BOOT_TIMEOUT=7200
	for ((nr = 1; nr <= REPEAT; nr++)); do
		progress "guests beside each other: $nr of $REPEAT"
		log=$O/check/vm-beside-$nr
		rm -f "$log"-*
		for kernel in $kernels; do
			in_machine "$kernel" >"$log-$kernel" 2>&1 &
		done
		for kernel in $kernels; do
			wait -n || status=$?
		done
		cat "$log"-*
	done
	return "$status"
}

part_model-larger() {
	selftests/models/run --larger
}

# Every test, where "make check" has those of some rooms.
part_vm-6.1-all() {
	in_machine 6.1
}

part_vm-6.12-all() {
	SMP=${SMP:-4} in_machine 6.12
}

part_vm-7.2-all() {
	is_missing_72 || SMP=${SMP:-4} in_machine 7.2
}

part_vm-6.1-rt() {
	LIB_TEST_SCALE=100 in_machine 6.1-rt
}

part_vm-6.12-rt() {
	LIB_TEST_SCALE=100 in_machine 6.12-rt
}

# Kernels that are built here, which takes a quarter of an hour each at first,
# and slow: with few rounds, a boot for every ten programs, so that one that the
# kernel complains of, and so ends, takes no more than those with it. Each test
# has its own time limit against hangs; those of mod_nomem, in debug, took nine
# minutes together on a busy machine.
# in_slices KERNEL [VAR=VALUE]...: on the module built so.
in_slices() {
	local kernel=$1 tests i status=0
	shift

	mk vm VARIANT=static selftests
	read -ra tests <<<"$(programs vm mod) $(programs vm lib)"
	BOOT_MODULE=$(selftests/vm/build "$kernel" "$O/check/$kernel" "$@")
	export BOOT_MODULE BOOT_TIMEOUT=7200 BOOT_PROGRAM_TIMEOUT=2400
	export BOOT_FACTOR=12 LIB_TEST_SCALE=10
	for ((i = 0; i < ${#tests[@]}; i += 10)); do
		progress "$kernel: $((i + 1)) of ${#tests[@]}"
		boot_all "$kernel" "${tests[@]:i:10}" || status=$?
	done
	return "$status"
}

part_vm-debug() {
	can_build debug
	selftests/vm/selftest-built debug
	in_slices debug PARKLOT_INJECT=1
}

part_vm-debug-7.2() {
	can_build debug-7.2
	selftests/vm/selftest-built debug-7.2
	in_slices debug-7.2 PARKLOT_INJECT=1
}

part_vm-kcsan() {
	can_build kcsan
	selftests/vm/selftest-built kcsan
	in_slices kcsan
}

part_vm-6.1-arm64-all() {
	in_arm64 6.1-arm64
}

part_vm-6.12-arm64-all() {
	in_arm64 6.12-arm64
}
