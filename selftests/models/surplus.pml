/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * surplus: a surplus worker parks although tasks wait, and is woken when too
 * few run (lib/pace/pace.h; pl__next() in run.c; pl__notify_one() in notify.c;
 * worker_find_task() in worker.c; pl__worker_look_and_park(), pl__sleep() in
 * worker.c;
 * pl_runtime_set_workers(), set_active() in elastic.c).
 *
 * All workers run at first, but the target is one, then two, and one again
 * unless a task computes. A task ends at once, or blocks its worker until each
 * task has begun; one may compute as long, before the target is one again. So
 * tasks that wait while too few workers run are a deadlock. There is one queue,
 * as all workers steal from all; the search is left out: notify.pml has it.
 *
 * MUTANT 1: [idle-a] is left out: nr_idle is seen late
 * MUTANT 2: [idle-b] is left out: nr_blocked is seen late
 * MUTANT 3: a surplus worker parks without another look once it is counted
 * idle
 * MUTANT 4: a worker that blocks does not notify
 * MUTANT 5: a thread that raises the target does not notify
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	3
#define NR_TASKS	3

byte queue = NR_TASKS;
byte target = 1;
byte nr_idle, nr_blocked, nr_begun;
bool is_computing;		/* a worker does, until the end */
bool is_lowered;
byte late_idle, late_blocked;
bool changed[NR_WORKERS];	/* seq, since the worker peeked at it */
bool listed[NR_WORKERS], woken[NR_WORKERS];

#define nr_running	(NR_WORKERS - nr_idle - nr_blocked)
#define is_notify_due	(nr_running < target && nr_idle > 0)
#define all_begun	(nr_begun == NR_TASKS)

inline wake()
{
	d_step {
		i = 0;
		do
		:: i < NR_WORKERS && !listed[i] -> i++
		:: else -> break
		od;
		notified = (i < NR_WORKERS);
		if
		:: notified -> listed[i] = false; woken[i] = true
		:: else
		fi;
		i = 0
	}
}

/* pl__notify_if_work(): one step a look, as each is one load. */
inline notify_if_work()
{
	do
	:: queue > 0 && is_notify_due ->
		wake();
		if
		:: !notified ->
			d_step {
				changed[0] = true;
				changed[1] = true;
				changed[2] = true
			};
			wake()
		:: else
		fi;
		if
		:: notified -> break
		:: else
		fi
	:: else -> break
	od;
	notified = false
}

inline park()
{
	if
	:: atomic { !changed[me] -> listed[me] = true; woken[me] = false };
		if
		:: woken[me]
		:: all_begun
		fi
	:: changed[me]
	fi
}

inline idle()
{
	changed[me] = false;
#if MUTANT == 1
	late_idle++;
#else
	nr_idle++;				/* [idle-a] */
#endif
#if MUTANT == 3
	if
	:: surplus -> park()
	:: else ->
#else
	if
	:: nr_running >= target -> park()
	:: else ->
#endif
		if
		:: queue == 0 -> park()
		:: else
		fi
	fi;
	atomic {
		nr_idle = nr_idle + late_idle;
		late_idle = 0;
		nr_idle--
	}
}

inline block()
{
#if MUTANT == 2
	late_blocked++;
#else
	nr_blocked++;
#endif
#if MUTANT != 4
	notify_if_work();				/* [idle-b] */
#endif
	all_begun;
	atomic {
		nr_blocked = nr_blocked + late_blocked;
		late_blocked = 0;
		nr_blocked--
	}
}

proctype worker(byte me)
{
	byte i;
	bool notified, surplus, got;

	do
	:: all_begun -> break
	:: else ->
		surplus = (nr_running > target);
		if
		:: surplus -> idle()
		:: else ->
			atomic {
				got = (queue > 0);
				queue = queue - got;
				nr_begun = nr_begun + got
			};
			if
			:: got ->
				if
				:: block()
				:: atomic { !is_computing && !is_lowered ->
					    is_computing = true };
					all_begun
				:: skip
				fi;
				got = false
			:: else -> idle()
			fi
		fi
	od
}

proctype setter()
{
	byte i;
	bool notified;

	target = 2;
#if MUTANT != 5
	notify_if_work();
#endif
	if
	:: atomic { !is_computing -> is_lowered = true; target = 1 }
	:: skip
	fi
}

#if MUTANT == 1 || MUTANT == 2
/* Late stores reach memory at any time. */
active proctype memory()
{
end:	do
	:: atomic { late_idle > 0 -> nr_idle = nr_idle + late_idle;
		    late_idle = 0 }
	:: atomic { late_blocked > 0 ->
		    nr_blocked = nr_blocked + late_blocked; late_blocked = 0 }
	od
}
#endif

init {
	atomic {
		run worker(0);
		run worker(1);
		run worker(2);
		run setter()
	}
}
