# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# The parts that run in the simulation, lib/sim. Sourced by scripts/part.
#
#	SEED=N		the first seed of part sim-seeds (1)
#	SEEDS=N		how many (10000)
# shellcheck shell=bash

# A run of one of their tests takes some milliseconds.
SHORT=(lib_small lib_meetings lib_idlers lib_long lib_spares)

# sim_run VARIABLE=VALUE... [OPTION]... PROGRAM...: two at a time.
sim_run() {
	local settings=(SIM_SEED=1 SIM_SEEDS=1 TEST_TIMEOUT_FACTOR=100)

	while [[ $1 == *=* ]]; do
		settings+=("$1")
		shift
	done
	env "${settings[@]}" scripts/run-tests -j 2 "$@"
}

# In virtual time, the timed ones too: all of them with one seed, but for those
# that are short and those that race, with many; then some on the device.  Of
# the 90 faults that docs/results/mutants.md has found, 60 seeds find 86.
part_sim() {
	mk plain/sim VARIANT=sim lib-tests
	# shellcheck disable=SC2046 # words are meant
	sim_run LIB_TEST_SCALE=5 \
		$(but_for "${SHORT[@]}" lib_race lib_stress \
			-- $(programs plain/sim lib))
	sim_run LIB_TEST_SCALE=5 SIM_SEEDS=6 "$O/plain/sim/selftests/lib_race"
	sim_run SIM_SEEDS=60 "${SHORT[@]/#/$O/plain/sim/selftests/}"
	sim_run SIM_SEEDS=25 "$O/plain/sim/selftests/lib_stress"
	sim_run SIM_DEVICE=1 SIM_SEEDS=25 "${SHORT[@]/#/$O/plain/sim/selftests/}"
	# shellcheck disable=SC2046 # words are meant
	sim_run SIM_DEVICE=1 LIB_TEST_SCALE=5 \
		$(lib_programs plain/sim park ring watch pace)
}

# Ten times as many.
part_sim-more() {
	mk plain/sim VARIANT=sim lib-tests
	sim_run LIB_TEST_SCALE=5 SIM_SEEDS=100 "$O/plain/sim/selftests/lib_race"
	sim_run SIM_SEEDS=1000 "${SHORT[@]/#/$O/plain/sim/selftests/}"
	sim_run SIM_SEEDS=250 "$O/plain/sim/selftests/lib_stress"
	sim_run SIM_DEVICE=1 SIM_SEEDS=250 "${SHORT[@]/#/$O/plain/sim/selftests/}"
}

# hashes DIR CPUS: one for 1000 runs, of five tests of lib_small, on these
# processors.  Leaks are looked for in all that is static, for seconds.
hashes() {
	local test

	for test in mutex_admits_one_and_wakes_the_next selects_pair_up \
		timers_fire_or_are_deleted_once each_byte_ends_one_read \
		tasks_behind_blocked_ones_run; do
		ASAN_OPTIONS=detect_leaks=0 SIM_TRACE=1 SIM_SEED=1 \
			SIM_SEEDS=200 taskset -c "$2" \
			"$O/$1/selftests/lib_small" -t "$test" 2>&1 |
			grep ' hash '
	done | sha256sum | cut -c1-16
}

# same_hashes DIR: twice, on one processor and on all.
same_hashes() {
	local first again

	first=$(hashes "$1" 0)
	again=$(hashes "$1" "0-$(($(nproc) - 1))")
	echo "$first $again"
	[[ $first == "$again" ]]
}

# A seed repeats its run: 1000 of them, twice, as they are and with ASan.
part_sim-same() {
	local dir

	tap_begin
	for dir in plain/sim sim-asan; do
		mk "$dir" VARIANT="${dir##*/}" "$O/$dir/selftests/lib_small"
		try "seeds_repeat_in_${dir##*/}" same_hashes "$dir"
	done
	tap_end
}

# What mixes everything at random, and the small tests, with many seeds.
part_sim-seeds() {
	local nr=${SEEDS:-10000}

	mk plain/sim VARIANT=sim lib-tests
	sim_run SIM_SEED="${SEED:-1}" SIM_SEEDS="$nr" \
		-t "$((900 + nr))" "$O/plain/sim/selftests/lib_stress" \
		"${SHORT[@]/#/$O/plain/sim/selftests/}"
}
