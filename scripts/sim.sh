# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
# The parts that run in the simulation, lib/sim. Sourced by scripts/part.
#
#	SEED=N		the first seed of part sim-seeds (1)
#	SEEDS=N		how many (10000)
# shellcheck shell=bash

# sim_run VARIABLE=VALUE... PROGRAM...: two at a time.
sim_run() {
	local settings=(SIM_SEED=1 SIM_SEEDS=1 TEST_TIMEOUT_FACTOR=10)

	while [[ $1 == *=* ]]; do
		settings+=("$1")
		shift
	done
	env "${settings[@]}" scripts/run-tests -j 2 "$@"
}

# In virtual time, the timed ones too: all of them with one seed, the small ones
# with many.
part_sim() {
	local small=$O/sim/selftests/lib_small

	mk sim VARIANT=sim lib-tests
	# shellcheck disable=SC2046 # words are meant
	sim_run LIB_TEST_SCALE=5 \
		$(but_for lib_small -- $(programs sim lib))
	sim_run SIM_SEEDS=300 "$small"
}
