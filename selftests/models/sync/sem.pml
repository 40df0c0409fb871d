/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sem: no unit is left while a taker waits for one, and a poster touches
 * nothing that a taker may have freed (lib/sync/sem.c).
 *
 * Three takers, one of which may be interrupted while it waits; one unit is
 * posted, and two at once. A waker picks any of the waiters. A taker that
 * waits for ever is a deadlock: there is a unit for each. That comparing and
 * falling asleep is one step to wakers is word.pml's.
 *
 * MUTANT 1: a woken taker takes its unit without leaving the mark
 * MUTANT 2: a woken taker that leaves units wakes no other
 * MUTANT 3: the poster looks at the mark before it adds the units
 * MUTANT 4: the mark is set even if units were posted meanwhile
 * MUTANT 5: the poster looks at the semaphore again once it has added
 * MUTANT 6: a post of no unit clears the mark as well
 * MUTANT 7: a taker that is interrupted while it waits takes the mark along
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_TAKERS	3

byte units;			/* the word: how many, and the mark */
bool marked;
bool waiting[NR_TAKERS];
bool interrupted;		/* the last taker, while it waited */
byte nr_taken;
bool freed;			/* by the taker of the last unit */

/* pl__wake() */
inline wake_one()
{
	atomic {
		if
		:: waiting[0] -> waiting[0] = false
		:: waiting[1] -> waiting[1] = false
		:: waiting[2] -> waiting[2] = false
		:: else
		fi
	}
}

proctype taker(byte me)
{
	bool was_woken, is_more, took;

	do
	:: atomic {			/* sem_take() */
		assert(!freed);
		took = units > 0;
		if
		:: took ->
			is_more = units > 1;
			units--;
#if MUTANT != 1
			marked = marked || was_woken;
#endif
			nr_taken++
		:: else
		fi
	   };
	   if
	   :: took -> break
	   :: else
	   fi;
	   atomic {			/* [sem-a] */
		assert(!freed);
#if MUTANT == 4
		marked = true
#else
		marked = marked || units == 0
#endif
	   };
	   atomic {			/* pl__wait() */
		assert(!freed);
#if MUTANT == 4
		waiting[me] = true
#else
		waiting[me] = (units == 0 && marked)
#endif
	   };
	   !waiting[me];
	   if
	   :: me == 2 && interrupted ->
#if MUTANT == 7
		marked = false;
#endif
		goto over
	   :: else -> was_woken = true
	   fi
	od;
	if
#if MUTANT != 2
	:: was_woken && is_more -> wake_one()
#endif
	:: else
	fi;
over:	if
	:: nr_taken == NR_TAKERS -> freed = true
	:: else
	fi
}

active proctype interrupter()
{
	atomic {
		if
		:: waiting[2] -> interrupted = true; waiting[2] = false
		:: true
		fi
	}
}

proctype poster(byte nr)
{
	bool was_marked;

#if MUTANT == 3
	was_marked = marked;
#endif
	atomic {			/* [sem-b] */
		assert(!freed || nr == 0);
#if MUTANT != 3
		was_marked = marked;
#endif
		marked = false;
		units = units + nr
	};
#if MUTANT == 5
	assert(!freed);
#endif
	if
	:: was_marked && nr > 0 ->
		atomic {
			wake_one();
			if
			:: nr > 1 -> wake_one()
			:: else
			fi
		}
	:: else
	fi
}

init {
	atomic {
		run taker(0);
		run taker(1);
		run taker(2);
		run poster(1);
		run poster(2);
#if MUTANT == 6
		run poster(0)
#endif
	}
}
