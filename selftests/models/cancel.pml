/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cancel: a request stays until the attempt to cancel it is over, too, so that
 * the kernel cancels no later one in its place (lib/ring/ring.c:
 * pl__ring_cancel(), finish(), add_cancels(); io_wait_task() in io.c).
 *
 * A task has a request in flight, gives it up at any time, asks its ring to
 * cancel it and waits for done(); then it uses the same memory, and so the
 * same name, for a second request, which is not cancelled. The kernel
 * completes requests at any time, and gets cancels by name.
 *
 * MUTANT 1: the attempt is not counted as a completion to come
 * MUTANT 2: the attempt is counted though nothing is pending any more
 * MUTANT 3: pending is counted up in two steps
 * MUTANT 4: the task does not wait for done() once it has cancelled
 * MUTANT 5: the attempt's completion does not count down
 */
#ifndef MUTANT
#define MUTANT 0
#endif

byte pending;
byte nr_done;
bool in_flight;			/* the request, in the kernel */
byte nth;			/* which one that is */
bool asked, trying;		/* to cancel: in the inbox; in the kernel */
bool is_gone;			/* the task's stack frame */

inline cancel()
{
	n = pending;
#if MUTANT == 3
	if
	:: n > 0 -> pending = n + 1; asked = true
	:: else
	fi
#else
	do
#if MUTANT != 2
	:: n == 0 -> break
#endif
	:: atomic {
#if MUTANT != 2
		n > 0 &&
#endif
		pending == n ->			/* [cancel-a] */
#if MUTANT != 1
		pending = n + 1
#endif
	   };
		asked = true;
		break
	:: else -> n = pending
	od
#endif
}

active proctype task()
{
	byte n;

	d_step { nth = 1; pending = 1; in_flight = true };
	if
	:: nr_done == 1
	:: cancel()
	fi;
#if MUTANT != 4
	nr_done == 1;
#endif
	atomic { assert(!in_flight); nth = 2; pending = 1; in_flight = true };
	nr_done == 2;
	is_gone = true
}

/* finish() */
inline finish()
{
	atomic {
		assert(!is_gone && pending > 0);
		pending--;			/* [cancel-b] */
		if
		:: pending == 0 -> nr_done++
		:: else
		fi
	}
}

/* The ring's owner, and its kernel. */
active proctype ring()
{
end:	do
	:: atomic { in_flight -> in_flight = false }; finish()
	:: atomic { asked -> asked = false; trying = true }
	:: atomic { trying -> trying = false;
		    assert(!in_flight || nth == 1) };
#if MUTANT != 5 && MUTANT != 1
		finish()
#endif
	od
}
