/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * notify_many: a submitter of several tasks wakes as many workers at once, each
 * of which counts as searching (lib/pace/notify.h; pl__notify_many(),
 * pl__wake_idle() and pl__aside_notify() in notify.c). start_several()
 * has the same steps: those that it could not start are those not woken here.
 * So has a worker that found a task, and has more: pl__notify_found().
 *
 * All workers are parked. One submitter queues two tasks, another one; a task
 * does not leave its worker until all run at once, so a task that waits while a
 * worker is parked is a deadlock. Twice a parked worker returns for a completion
 * in its ring, so that one that is idle does not sleep. The lot is one step.
 *
 * MUTANT 1: the woken workers are counted as searching after they were woken
 * MUTANT 2: workers that were not woken stay counted
 * MUTANT 3: a submitter that woke fewer does not look again
 * MUTANT 4: a searcher that found a task does not look for more
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	3
#define NR_TASKS	3
#define FAN		2

byte queue, nr_running;
byte nr_idle = NR_WORKERS, nr_searching;
bool listed[NR_WORKERS] = true, woken[NR_WORKERS], changed[NR_WORKERS];
byte nr_disturbances = 2;	/* to come */

#define all_run		(nr_running == NR_TASKS)

/* The lots wake one that sleeps. */
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

inline move_seq()
{
	d_step { changed[0] = true; changed[1] = true; changed[2] = true }
}

/* pl__notify_one(), notify_slow() */
inline notify()
{
	do
	:: atomic { nr_searching == 0 && nr_idle > 0 -> nr_searching++ };
		wake();
		if
		:: !notified -> move_seq(); wake()
		:: else
		fi;
		if
		:: notified -> break
		:: else
		fi;
		atomic { assert(nr_searching > 0); nr_searching-- };
		if
		:: nr_idle > 0 && queue > 0
		:: else -> break
		fi
	:: else -> break
	od
}

/* pl__notify_many(), pl__wake_idle() */
inline notify_many(most)
{
	atomic { nr = nr_idle; nr = (nr > most -> most : nr) };
#if MUTANT != 1
	nr_searching = nr_searching + nr;
#endif
	left = nr;
	do
	:: left > 0 ->
		wake();
		if
		:: notified -> left--
		:: else -> break
		fi
	:: else -> break
	od;
	if
	:: left > 0 -> move_seq()
	:: else
	fi;
	do
	:: left > 0 ->
		wake();
		if
		:: notified -> left--
		:: else -> break
		fi
	:: else -> break
	od;
#if MUTANT == 1
	nr_searching = nr_searching + nr;
#endif
#if MUTANT != 2
	atomic { assert(nr_searching >= left); nr_searching = nr_searching - left };
#endif
#if MUTANT == 3
	if
	:: nr == 0 -> notify()
	:: else
	fi
#else
	notify()
#endif
}

proctype submitter(byte most)
{
	byte i, nr, left;
	bool notified;

	queue = queue + most;
	if
	:: most > 1 -> notify_many(most)
	:: else -> notify()
	fi
}

inline park()
{
	if
	:: atomic { woken[me] -> woken[me] = false; searching = true }
	:: atomic { listed[me] && nr_disturbances > 0 ->
		    nr_disturbances--; listed[me] = false }
	:: all_run
	fi
}

proctype worker(byte me)
{
	byte i, nr, left;
	bool searching, notified, was_searching;

	park();
	nr_idle--;
	do
	:: all_run -> break
	:: atomic { queue > 0 -> queue-- };
		if
		:: searching ->
			atomic { assert(nr_searching > 0); nr_searching-- };
			searching = false;
#if MUTANT != 4
			if
			:: queue > 1 -> notify_many(FAN)
			:: queue > 0 -> notify()
			:: else
			fi
#endif
		:: else
		fi;
		nr_running++;
		all_run
	:: atomic { queue == 0 && !all_run ->
		    changed[me] = false; was_searching = searching };
		nr_idle++;			/* [idle-a] */
		if
		:: searching ->
			atomic { assert(nr_searching > 0); nr_searching-- };
			searching = false
		:: else
		fi;
		if
		:: atomic { queue > 0 && was_searching && nr_searching == 0 ->
			    nr_searching++; searching = true }
		:: queue > 0 && (!was_searching || nr_searching > 0)
		:: queue == 0 ->
			if
			:: atomic { !changed[me] -> listed[me] = true };
				park()
			:: changed[me]
			fi
		fi;
		nr_idle--
	od
}

init {
	atomic {
		run worker(0);
		run worker(1);
		run worker(2);
		run submitter(2);
		run submitter(1)
	}
}
