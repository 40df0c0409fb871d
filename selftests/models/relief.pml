/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * relief: tasks that compute for long are set aside while too many workers are
 * stalled, and run once they are not (lib/pace/pace.h's drawing;
 * pl__relief_recheck(), relief_limit_raise() in pace.c; stalled_mark() in
 * stalled.c; pl__aside_take() in spare.c; pl__spare_lets_compute() in pace.c;
 * pl__worker_look_and_park() in worker.c).
 *
 * The limit is two at first. One worker is stalled, until the end or until its
 * next task. Two more are idle, and become spares for two tasks, each of which
 * may compute until both have begun. So a task that is left to parked workers
 * is a deadlock. sysmon raises the limit once, while tasks wait and it is
 * reached, or may try to mark a worker and fail.
 *
 * MUTANT 1: [relief-a] is left out: nr_stalled is seen to fall late
 * MUTANT 2: [relief-b] is left out: nr_idle is seen to rise late
 * MUTANT 3: a worker that takes its mark back does not notify
 * MUTANT 4: a worker looks whether a task may compute before it counts as idle
 * MUTANT 5: sysmon raises the limit and does not notify
 * MUTANT 6: sysmon fails to mark a worker and does not notify
 * MUTANT 7: a mark that fails stays counted
 * MUTANT 8: a spare looks for its next task before it computes no more
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_TASKS	2
#define NR_SPARES	2
#define LIMIT		2

byte compute, nr_begun;		/* tasks in the queue, and taken from it */
byte nr_stalled = 1, limit = LIMIT, nr_idle;
byte late_stalled, late_idle;	/* stores that are under way */
bool changed[NR_SPARES], listed[NR_SPARES], woken[NR_SPARES];	/* the lot */

#define all_begun	(nr_begun == NR_TASKS)
#define may_compute	(compute > 0 && nr_stalled < limit)

/* pl__aside_notify(), after a full barrier */
inline notify()
{
	if
	:: may_compute ->
		if
		:: nr_idle > 0 ->
			d_step {
				if
				:: listed[0] -> listed[0] = false;
					woken[0] = true
				:: !listed[0] && listed[1] ->
					listed[1] = false; woken[1] = true
				:: else -> changed[0] = true; changed[1] = true
				fi
			}
		:: else
		fi
	:: else
	fi
}

active proctype submitter()
{
	byte nr;

	do
	:: nr < NR_TASKS -> compute++; nr++; notify()
	:: else -> break
	od
}

/* Marked by sysmon, it takes that back at its next task. */
active proctype marked()
{
	if
	:: skip -> all_begun
	:: skip ->
#if MUTANT == 1
		late_stalled++;
#else
		nr_stalled--;			/* [relief-a] */
#endif
#if MUTANT != 3
		notify()
#endif
	fi
}

proctype worker(byte me)
{
	bool may, got;

	do
	:: all_begun -> break
	:: else ->
		changed[me] = false;
#if MUTANT == 8
		may = may_compute;
		nr_stalled = nr_stalled - got;
		got = false;
		atomic {
			got = may && may_compute;
#else
		nr_stalled = nr_stalled - got;	/* [relief-a] */
		atomic {
			got = may_compute;
#endif
			compute = compute - got;
			nr_stalled = nr_stalled + got;
			nr_begun = nr_begun + got
		};
		if
		:: got ->
			notify();
			if
			:: skip -> all_begun
			:: skip
			fi
		:: else ->
#if MUTANT == 4
			may = may_compute;
#endif
#if MUTANT == 2
			late_idle++;
#else
			nr_idle++;		/* [idle-a] */
#endif
#if MUTANT != 4 && MUTANT != 8
			may = may_compute;	/* [relief-b] */
#endif
			if
			:: may
			:: !may ->
				if
				:: atomic { !changed[me] -> listed[me] = true };
					if
					:: atomic { woken[me] ->
						    woken[me] = false }
					:: all_begun
					fi
				:: changed[me]
				fi
			fi;
			atomic {
				if
				:: late_idle > 0 -> late_idle--
				:: else -> nr_idle--
				fi
			}
		fi
	od
}

active proctype sysmon()
{
	bool fails;

	if
	:: fails = true
	:: fails = false
	fi;
	do
	:: all_begun -> break
	:: atomic { !all_begun && compute > 0 && nr_stalled >= limit &&
		    limit == LIMIT && late_stalled == 0 -> limit++ };
#if MUTANT != 5
		notify()
#else
		skip
#endif
	:: atomic { !all_begun && fails && late_stalled == 0 ->
		    nr_stalled++; fails = false };
		/* The worker has come to its next task: not marked. */
#if MUTANT != 7
		nr_stalled--;
#endif
#if MUTANT != 6
		notify()
#else
		skip
#endif
	od
}

#if MUTANT == 1 || MUTANT == 2
/* Late stores reach memory at any time. */
active proctype memory()
{
end:	do
	:: atomic { late_stalled > 0 -> nr_stalled--; late_stalled-- }
	:: atomic { late_idle > 0 -> nr_idle++; late_idle-- }
	od
}
#endif

init {
	atomic {
		run worker(0);
		run worker(1)
	}
}
