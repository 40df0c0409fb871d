/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * latch: a waiter sees the 0 or is woken, and does not return before; a thread
 * that counts down touches nothing that a waiter may have freed
 * (lib/sync/latch.c).
 *
 * Two waiters, one of which may be interrupted; two threads that count down,
 * one of which counts one up before. A wake may come that was for an earlier
 * object at the address. A waiter that waits for ever is a deadlock. word.pml
 * shows that comparing and falling asleep are one step to wakers.
 *
 * MUTANT 1: a thread looks at the mark before it counts down
 * MUTANT 2: the mark is stored over a count that went down meanwhile
 * MUTANT 3: the last thread to count down wakes one waiter
 * MUTANT 4: a thread looks at the latch again once it has counted down
 * MUTANT 5: a waiter does not look again when it is woken
 * MUTANT 6: a waiter that is interrupted takes the mark along
 * MUTANT 7: the count is read, and stored one less
 */
#ifndef MUTANT
#define MUTANT 0
#endif

byte count = 2;			/* the word: count and mark */
bool marked;
bool waiting[2], interrupted;
byte nr_back;
bool freed;			/* by the last waiter to return */

proctype waiter(byte me)
{
	byte seen;
	bool was_marked;

	do
	:: atomic { count == 0 -> assert(!freed); break }
	:: atomic { count != 0 -> assert(!freed);
		    seen = count; was_marked = marked };
#if MUTANT == 2
	   if
	   :: !was_marked -> count = seen; marked = true
	   :: else
	   fi;
#else
	   atomic {			/* [latch-a] */
		if
		:: was_marked || (count == seen && !marked) -> marked = true
		:: else -> seen = 0
		fi
	   };
#endif
	   atomic {			/* pl__wait() */
		assert(!freed);
		waiting[me] = (seen && count == seen && marked)
	   };
	   !waiting[me];
	   if
	   :: me == 1 && interrupted ->
#if MUTANT == 6
		marked = false;
#endif
		goto back
	   :: else
	   fi;
#if MUTANT == 5
	   if
	   :: seen -> break
	   :: else
	   fi
#endif
	od;
	assert(count == 0);
back:	atomic {
		nr_back++;
		freed = (nr_back == 2 && count == 0)
	}
}

/* A late wake for something else, or an interrupt. */
active proctype stranger()
{
	atomic {
		if
		:: waiting[0] -> waiting[0] = false
		:: waiting[1] -> waiting[1] = false
		:: waiting[1] -> interrupted = true; waiting[1] = false
		:: true
		fi
	}
}

inline done()
{
#if MUTANT == 1
	was_marked = marked;
#endif
#if MUTANT == 7
	left = count;
#endif
	atomic {			/* [latch-b] */
		assert(count > 0 && !freed);
#if MUTANT != 1
		was_marked = marked;
#endif
#if MUTANT == 7
		count = left - 1;
#else
		count--;
#endif
		is_last = (count == 0);
		marked = marked && !is_last
	};
#if MUTANT == 4
	assert(!freed);
#endif
	if
	:: is_last && was_marked ->
		atomic {
#if MUTANT == 3
			if
			:: waiting[0] -> waiting[0] = false
			:: else -> waiting[1] = false
			fi
#else
			waiting[0] = false;
			waiting[1] = false
#endif
		}
	:: else
	fi
}

active proctype worker()
{
	bool was_marked, is_last;
	byte left;

	done()
}

active proctype adder()
{
	bool was_marked, is_last;
	byte left;

	atomic { count++ };
	done();
	done()
}

init {
	atomic {
		run waiter(0);
		run waiter(1)
	}
}
