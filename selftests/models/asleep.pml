/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * asleep: the watcher never sleeps where it has something to look after,
 * whoever changes its word meanwhile (become(), get_up(), get_it_up(), rouse(),
 * sleep_long(), pl__watcher_untell(), pl__watcher_stop() in lib/sched/watch.c;
 * pl__watch(), pl__watch_io() in sched.h).
 *
 * Nobody but the watcher sees to a task that waits, or to a worker with I/O that
 * is held up: whoever finds a task as it parks is taken to be blocked by the next
 * one at once.  While the watcher is up it sees to all.  So one of them left over
 * when all else has ended is a deadlock, as is a watcher that outlives the
 * runtime.
 *
 * MUTANT 1: who finds a task as it parks leaves a watcher that sleeps asleep
 * MUTANT 2: the watcher is woken before its word is changed
 * MUTANT 3: the watcher does not look once it has said that it sleeps
 * MUTANT 4: it sleeps whatever its word is
 * MUTANT 5: who has I/O changes the word and wakes nobody
 * MUTANT 6: who has I/O changes the word though the runtime ends
 * MUTANT 7: the watcher says that it sleeps though the runtime ends
 * MUTANT 8: the runtime ends and does not wake the watcher
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_TASKS	2
#define NR_PARKS	2
#define NR_SLEEPS	3

mtype = { AWAKE, UNTOLD, ASLEEP, OVER };

mtype word = UNTOLD;
byte queue;
bool is_held_up;		/* a worker that has I/O in flight */
bool is_in_futex;		/* the watcher, until somebody wakes it */

#if MUTANT == 3
#define is_to_sleep	(word == ASLEEP)
#else
#define is_to_sleep	(word == ASLEEP && queue == 0 && !is_held_up)
#endif

inline wake()
{
	is_in_futex = false
}

/* become() */
inline become(new)
{
	atomic {
		old = word;
		if
#if MUTANT == 7
		:: true -> word = new
#else
		:: old != OVER -> word = new
		:: else
#endif
		fi
	}
}

/* pl__watcher_wake(), which looks first; the other one has just looked. */
inline get_it_up()
{
#if MUTANT == 2
	if
	:: word == ASLEEP -> wake()
	:: else
	fi;
#endif
	become(AWAKE);
#if MUTANT != 2
	if
	:: old == ASLEEP -> wake()
	:: else
	fi
#endif
}

/* rouse(): was_asleep if it changed the word. */
inline rouse()
{
	atomic {
		was_asleep = (word == ASLEEP);
		if
		:: was_asleep -> word = UNTOLD
#if MUTANT == 6
		:: word == OVER -> word = UNTOLD
#endif
		:: else
		fi
	}
}

/* sleep_long() */
inline sleep()
{
	do
#if MUTANT != 3
	:: queue > 0 || is_held_up -> break
#endif
#if MUTANT == 4
	:: atomic { queue == 0 && !is_held_up -> is_in_futex = true };
		!is_in_futex
#else
	:: atomic { word != ASLEEP -> break }
	:: atomic { is_to_sleep };
		atomic { is_in_futex = (word == ASLEEP) };
		!is_in_futex
#endif
	od;
	if
	:: queue > 0 -> become(AWAKE)
	:: else -> rouse()
	fi
}

proctype watcher()
{
	byte left = NR_SLEEPS;
	mtype old = AWAKE;
	bool was_asleep;

	do
	:: word == OVER -> break
	:: atomic { queue > 0 -> queue-- }	/* it starts a worker */
	:: atomic { is_held_up -> is_held_up = false }
	:: atomic { word != OVER && queue == 0 && !is_held_up && left > 0 ->
		    left-- };
		become(ASLEEP);			/* [watch-a] */
		if
		:: old != OVER -> sleep()
		:: else
		fi
	od
}

/* pl__watcher_untell() */
proctype parker()
{
	byte left = NR_PARKS;
	mtype old = AWAKE;
	bool was_awake;

	do
	:: left == 0 -> break
	:: left > 0 ->
		left--;
		atomic {
			was_awake = (word == AWAKE);
			word = (was_awake -> UNTOLD : word)	/* [untold-a] */
		};
		if
		:: was_awake && queue > 0 ->
#if MUTANT == 1
			become(AWAKE)
#else
			get_it_up()
#endif
		:: else
		fi
	od
}

/* pl__watch() */
proctype spawner()
{
	byte left = NR_TASKS;
	mtype old = AWAKE;

	do
	:: left == 0 -> break
	:: left > 0 ->
		left--;
		queue++;
		if
		:: word != AWAKE ->		/* [watch-b], [untold-b] */
			if
			:: queue > 0 -> get_it_up()
			:: else
			fi
		:: else
		fi
	od
}

/* pl__watch_io() */
proctype reader()
{
	bool was_asleep;

	is_held_up = true;			/* [lend-b] */
	if
	:: word == ASLEEP ->
		rouse();
		if
#if MUTANT != 5
		:: was_asleep -> wake()
#endif
		:: else
		fi
	:: else
	fi
}

init {
	atomic {
		if
		:: word = AWAKE
		:: skip
		fi;
		run watcher();
		run parker();
		run spawner();
		run reader()
	}
	(_nr_pr == 2 && queue == 0 && !is_held_up);
	/* pl__watcher_stop() */
	word = OVER;
#if MUTANT != 8
	wake();
#endif
	_nr_pr == 1
}
