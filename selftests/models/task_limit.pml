/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * task_limit: the program never has more tasks than the limit, and no spawner
 * sleeps for ever while there is room (lib/rt/spawn.c).
 *
 * The limit is one, and one task is alive at first. Two spawners wait, of which
 * the last may be interrupted meanwhile, and the first may fail once it was
 * counted; a third does not wait. What they spawn ends. A waker picks any of the
 * waiters. A spawner that waits for ever is a deadlock: all tasks end. That
 * comparing and falling asleep is one step to wakers is word.pml's.
 *
 * MUTANT 1: a task that ends looks for spawners before it takes the count down
 * MUTANT 2: a spawner says that it waits after it has compared
 * MUTANT 3: to look at the limit and to take the count up are two steps
 * MUTANT 4: a spawner that was woken looks for an interrupt before it spawns
 * MUTANT 5: a spawn that fails after it was counted leaves the count as it is
 * MUTANT 6: a spawner that was overtaken does not say again that it waits
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define MAX		1
#define NR_WAITERS	2

byte nr = 1;			/* the word: the first task is alive */
byte nr_waiting;
bool waiting[NR_WAITERS];
bool interrupted;		/* the last spawner, while it waited */
bool is_pending;		/* its interrupt, which no wait has seen */
byte nr_over;			/* processes that are through */

/* pl__wake() */
inline wake_one()
{
	atomic {
		if
		:: waiting[0] -> waiting[0] = false
		:: waiting[1] -> waiting[1] = false
		:: else
		fi
	}
}

/* pl__task_limit_leave() */
inline leave()
{
#if MUTANT == 1
	saw_waiting = nr_waiting > 0;
#endif
	nr--;				/* [limit-b] */
#if MUTANT != 1
	saw_waiting = nr_waiting > 0;
#endif
	if
	:: saw_waiting -> wake_one()
	:: else
	fi
}

/* task_limit_take() */
inline take()
{
#if MUTANT == 3
	took = nr < MAX;
	if
	:: took ->
		atomic {
			nr++;
			assert(nr <= MAX)
		}
	:: else
	fi
#else
	atomic {
		took = nr < MAX;
		if
		:: took ->
			nr++;
			assert(nr <= MAX)
		:: else
		fi
	}
#endif
}

proctype waiter(byte me)
{
	bool took, saw_waiting, is_counted;

	take();
	if
	:: took -> goto spawned
	:: else
	fi;
#if MUTANT != 2
	nr_waiting++;			/* [limit-a] */
	is_counted = true;
#endif
	do
	:: take();
	   if
	   :: took -> break
	   :: else
	   fi;
	   atomic { waiting[me] = (nr == MAX) };	/* pl__wait() */
#if MUTANT == 2
	   if
	   :: !is_counted -> nr_waiting++; is_counted = true
	   :: else
	   fi;
#endif
	   !waiting[me];
#if MUTANT == 4
	   if
	   :: me == 1 && is_pending -> goto over
	   :: else
	   fi;
#endif
	   if
	   :: me == 1 && interrupted -> goto over
	   :: else
	   fi;
#if MUTANT == 6
	   if
	   :: is_counted -> nr_waiting--; is_counted = false
	   :: else
	   fi
#endif
	od;
	if
	:: is_counted -> nr_waiting--
	:: else
	fi;
spawned:
#if MUTANT == 5
	if
	:: me == 0 -> goto failed
	:: true
	fi;
#endif
	leave();			/* it failed, or the task has ended */
	goto failed;
over:	nr_waiting--;
failed:	nr_over++
}

/* Of a spawner that waits only: else the interrupt is the next call's. */
active proctype interrupter()
{
	atomic {
		if
		:: waiting[1] -> interrupted = true; waiting[1] = false
		:: true -> is_pending = true
		fi
	};
	nr_over++
}

active proctype first_task()
{
	bool saw_waiting;

	leave();
	nr_over++
}

active proctype other_spawner()
{
	bool took, saw_waiting;

	take();
	if
	:: took -> leave()
	:: else
	fi;
	nr_over++
}

init {
	atomic {
		run waiter(0);
		run waiter(1)
	};
	nr_over == 5;
	assert(nr == 0 && nr_waiting == 0)
}
