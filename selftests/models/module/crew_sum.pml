/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew_sum: the number of running workers is summed over lines, one for each
 * processor, while workers change their states (parklot_pool_count() and
 * parklot_pool_running() in module/pool.h and pool.c; pl__crew_sum_blocked() in
 * lib/park/lot_dev.c sums `blocked' in the same way, with the signs turned).
 *
 * Two workers, which joined on the first processor, block for good, on any
 * processor, and then sum; one of them blocks and goes on elsewhere before
 * that. A third thread sums at any time. At least one of the two workers sees
 * that none runs, and no sum counts a worker twice. A processor gets a line
 * when a state changes there first, and only lines in use are read.
 *
 * MUTANT 1: [crew-a] is left out: running.out++ is seen late
 * MUTANT 2: [crew-b] is left out: `out' is read before `in'
 * MUTANT 3: a line is seen to be in use only behind the barrier
 * MUTANT 4: `out' is read only of the lines that were in use for `in'
 * MUTANT 5: a worker that blocks sums before it has counted
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_CPUS		2
#define NR_WORKERS	2
#define NONE		NR_CPUS

byte in[NR_CPUS], out[NR_CPUS];		/* of lines */
byte own[NR_CPUS];			/* the line of a processor, or NONE */
byte nr_given = 1, nr_lines = 1;	/* lines in use; seen in use */
byte nr_looked;				/* workers that have summed */
bool is_seen;				/* a worker's sum was 0 */

/* The line of this processor: preemption is off until it has counted. */
inline use_line(cpu)
{
	if
	:: own[cpu] == NONE ->
		own[cpu] = nr_given;
		nr_given++
	:: else
	fi
}

inline count_in(cpu)
{
	d_step {
		use_line(cpu);
		nr_lines = nr_given;
		in[own[cpu]]++
	}
}

inline count_out(cpu)
{
	d_step {
		use_line(cpu);
		nr_lines = nr_given;
		out[own[cpu]]++
	}
}

/* parklot_pool_running() */
inline sum_lines()
{
	sum = 0;
#if MUTANT == 2
	i = 0;
	do
	:: i < nr_lines -> sum = sum - out[i]; i++
	:: else -> break
	od;
#endif
	i = 0;
	nr = nr_lines;
	do
#if MUTANT == 4
	:: i < nr -> sum = sum + in[i]; i++
#else
	:: i < nr_lines -> sum = sum + in[i]; i++
#endif
	:: else -> break
	od;
#if MUTANT != 2
	i = 0;					/* [crew-b] */
	do
#if MUTANT == 4
	:: i < nr -> sum = sum - out[i]; i++
#else
	:: i < nr_lines -> sum = sum - out[i]; i++
#endif
	:: else -> break
	od;
#endif
	assert(sum <= NR_WORKERS)
}

inline any_cpu()
{
	if
	:: cpu = 0
	:: cpu = 1
	fi
}

proctype worker(bool moves)
{
	short sum;
	byte i, nr, cpu;

	if
	:: moves ->
		any_cpu();
		count_out(cpu);
		any_cpu();
		count_in(cpu)
	:: else
	fi;
	any_cpu();
#if MUTANT == 5
	sum_lines();
	count_out(cpu);
#elif MUTANT == 1
	sum_lines();
	sum--;					/* its own store */
	count_out(cpu);
#elif MUTANT == 3
	d_step { use_line(cpu); out[own[cpu]]++ };
	sum_lines();
	nr_lines = nr_given;
#else
	count_out(cpu);				/* [crew-a] */
	sum_lines();
#endif
	atomic {
		is_seen = is_seen || sum <= 0;
		nr_looked++;
		assert(nr_looked < NR_WORKERS || is_seen)
	}
}

proctype raiser()
{
	short sum;
	byte i, nr;

	sum_lines()
}

init {
	atomic {
		own[1] = NONE;
		in[0] = NR_WORKERS;
		run worker(true);
		run worker(false);
		run raiser()
	}
}
