/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mutex: one owner at a time, and no locker sleeps on a free mutex, whether it
 * is unlocked or handed over (lib/sync/mutex.c, pl__wake_owner()).
 *
 * Three lockers, of which the first locks the mutex twice, and the last may give
 * up once, and come again later. Any waiter may lose its patience at any time.
 * Each owner drops a reference; the last frees the mutex. A waker picks any
 * waiter; a locker that waits for ever is a deadlock. That comparing and falling
 * asleep is one step to wakers is word.pml's.
 *
 * MUTANT 1: the mutex is free while it is handed over
 * MUTANT 2: without a waiter to own it, it is freed after the bucket's lock
 * MUTANT 3: a woken waiter locks without the mark
 * MUTANT 4: a waiter that was handed the mutex locks it again
 * MUTANT 5: a waiter that was handed the mutex takes the mark away
 * MUTANT 6: the unlocker looks at the mutex again once it is free
 * MUTANT 7: the unlocker finds IMPATIENT and frees it, and wakes one
 * MUTANT 8: a locker marks a mutex that was freed meanwhile
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_LOCKERS	3
#define FREE		0
#define LOCKED		1
#define WAITED_FOR	2
#define IMPATIENT	3

byte value;
bool waiting[NR_LOCKERS];
bool owns[NR_LOCKERS];		/* the reason PL__WAIT_OWNS */
bool gave_up;			/* the last locker, while it waited */
byte nr_inside, nr_refs = NR_LOCKERS + 1;
bool freed;

/* take_some() and the reason, in the bucket's lock */
inline wake_one(is_owner)
{
	if
	:: waiting[0] -> waiting[0] = false; owns[0] = is_owner
	:: waiting[1] -> waiting[1] = false; owns[1] = is_owner
	:: waiting[2] -> waiting[2] = false; owns[2] = is_owner
	:: else
	fi
}

#define IS_WAITING	(waiting[0] || waiting[1] || waiting[2])

proctype locker(byte me)
{
	byte seen, mark;
	bool is_last, was_here;

start:	mark = WAITED_FOR;
	atomic {			/* mutex_trylock() */
		assert(!freed);
		if
		:: value == FREE -> value = LOCKED; goto inside
		:: else
		fi
	};
again:	atomic {			/* [mutex-a], [mutex-c] */
		assert(!freed);
		seen = value;
#if MUTANT != 8
		if
#if MUTANT == 3
		:: seen == FREE -> value = LOCKED; goto inside
#else
		:: seen == FREE -> value = WAITED_FOR; goto inside
#endif
		:: seen != FREE && seen < mark -> value = mark; seen = mark
		:: else
		fi
#endif
	};
#if MUTANT == 8
	atomic {
		if
		:: seen == FREE && value == FREE ->
			value = WAITED_FOR; goto inside
		:: seen == FREE && value != FREE -> goto again
		:: seen != FREE && seen < mark -> value = mark; seen = mark
		:: else
		fi
	};
#endif
	atomic {			/* pl__wait() */
		assert(!freed);
		waiting[me] = (value == seen)
	};
	!waiting[me];
	if
	:: me == 2 && gave_up -> gave_up = false; goto start
	:: else
	fi;
	if
	:: true -> mark = IMPATIENT
	:: true
	fi;
	if
	:: owns[me] ->
		owns[me] = false;
#if MUTANT == 4
		goto again
#elif MUTANT == 5
		value = LOCKED
#else
		value = mark
#endif
	:: else -> goto again
	fi;

inside:	nr_inside++;
	assert(nr_inside == 1 && !freed);
	nr_refs--;
	is_last = (nr_refs == 0);
	nr_inside--;
	atomic {			/* [mutex-b] */
		assert(!freed);
		seen = value;
		if
#if MUTANT != 7
		:: seen == IMPATIENT
		:: seen != IMPATIENT -> value = FREE
#else
		:: value = FREE
#endif
		fi
	};
#if MUTANT == 6
	assert(!freed);
#endif
	if
	:: seen == WAITED_FOR -> atomic { wake_one(false) }
#if MUTANT == 7
	:: seen == IMPATIENT -> atomic { wake_one(true) }
#elif MUTANT == 1
	:: seen == IMPATIENT ->
		value = FREE;
		atomic { wake_one(true) }
#elif MUTANT == 2
	:: seen == IMPATIENT ->
		atomic {
			if
			:: IS_WAITING -> wake_one(true); goto woken
			:: else
			fi
		};
		value = FREE
#else
	:: seen == IMPATIENT ->
		atomic {		/* [mutex-d], pl__wake_owner() */
			assert(!freed);
			if
			:: IS_WAITING -> wake_one(true)
			:: else -> value = FREE
			fi
		}
#endif
	:: else
	fi;
woken:	if
	:: is_last -> freed = true
	:: !is_last && me == 0 && !was_here -> was_here = true; goto start
	:: !is_last && (me != 0 || was_here)
	fi
}

/* Ends the wait of the last locker, in the bucket's lock. */
active proctype interrupter()
{
	atomic {
		if
		:: waiting[2] -> gave_up = true; waiting[2] = false
		:: true
		fi
	}
}

init {
	atomic {
		run locker(0);
		run locker(1);
		run locker(2)
	}
}
