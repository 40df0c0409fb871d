/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * search: a search that lasts too long is taken over (lib/pace/notify.h;
 * pl__search_begin(), pl__search_end(), search_take_over(), notify_slow() in
 * notify.c).
 *
 * A late worker counts as searching, and its thread does not run until all
 * tasks have been taken, or it does. Two others are parked. Submitters queue a
 * task each; a task does not leave its worker. So a task that waits while a
 * worker is parked is a deadlock. notify.pml has what idle workers do.
 *
 * MUTANT 1: the thread that takes a search over does not notify
 * MUTANT 2: nr_searching is taken down although it was taken over
 * MUTANT 3: nr_searching is taken over without a comparison
 * MUTANT 4: a searcher that found a task does not look for more
 * MUTANT 5: nothing is taken over
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	2	/* parked ones */
#define NR_TASKS	2

byte nr_searching = 1;		/* the late worker */
byte nr_to_end = 1;		/* threads that will take it down, or find 0 */
byte queue, nr_taken;
bool parked[NR_WORKERS], woken[NR_WORKERS];

#define all_taken	(nr_taken == NR_TASKS)

/* pl__search_end() [late-b] */
inline search_end()
{
	atomic {
#if MUTANT == 2
		nr_searching--;
#else
		if
		:: nr_searching > 0 -> nr_searching--
		:: else
		fi;
#endif
		nr_to_end--;
		assert(nr_searching <= nr_to_end)
	}
}

/* pl__notify_one(), notify_slow() */
inline notify()
{
	do
	:: atomic { nr_searching == 0 && (parked[0] || parked[1]) ->
		    nr_searching++; nr_to_end++ };
		atomic {
			if
			:: parked[0] -> parked[0] = false; woken[0] = true;
				break
			:: parked[1] -> parked[1] = false; woken[1] = true;
				break
			:: else
			fi
		};
		search_end();
		if
		:: queue == 0 -> break
		:: else
		fi
	:: else -> break
	od
}

inline notify_if_work()
{
	if
	:: queue > 0 -> notify()
	:: else
	fi
}

/* It is woken as the searcher, and does not park while it sees a task. */
proctype worker(byte me)
{
	do
	:: atomic { queue == 0 && !woken[me] && !all_taken ->
		    parked[me] = true };
		if
		:: atomic { woken[me] -> woken[me] = false }
		:: atomic { all_taken && !woken[me] -> parked[me] = false;
			    break }
		fi;
		atomic {
			if
			:: queue > 0 -> queue--; nr_taken++
			:: else -> goto none
			fi
		};
		search_end();
#if MUTANT != 4
		notify_if_work();
#endif
		break;
none:		search_end()
	:: all_taken -> break
	/* Counted as idle it finds a task before it parks. */
	:: atomic { queue > 0 -> queue--; nr_taken++ }; break
	od
}

/* Its thread runs when all is over; or earlier, and it finds a task. */
active proctype late()
{
	bool is_held;

	if
	:: is_held = true
	:: is_held = false
	fi;
	if
	:: all_taken -> search_end()
	:: atomic { queue > 0 && !is_held -> queue--; nr_taken++ };
		search_end();
		notify_if_work()
	fi
}

proctype submitter()
{
	queue++;
	notify()				/* [search-b] */
}

/* pl__search_check(): time is not modelled, so each search may be late. */
active proctype sysmon()
{
	byte nr;

	do
#if MUTANT != 5
	:: atomic { !all_taken && queue > 0 && nr_searching > 0 ->
		    nr = nr_searching };		/* [late-a] */
		atomic {
			if
#if MUTANT == 3
			:: true -> nr_searching = nr_searching - nr
#else
			:: nr_searching == nr -> nr_searching = 0
#endif
			:: else -> nr = 0
			fi
		};
#if MUTANT != 1
		if
		:: nr > 0 -> notify_if_work()
		:: else
		fi;
#endif
		nr = 0
#endif
	:: all_taken -> break
	od
}

init {
	atomic {
		run worker(0);
		run worker(1);
		run submitter();
		run submitter()
	}
}
