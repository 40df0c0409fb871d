/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * word: a wait ends once, for one reason, however many threads try to end it
 * (lib/wait/wait.c: wait_link(), pl__wake(), wait_take(), wait_abort(),
 * pl__requeue(), pl_interrupt(), time_out(); the second drawing of wait.h).
 *
 * A task waits on a word, a second time once the first wait is over. Against
 * it: a waker that changes the word; a mover that moves waiters to another
 * word and wakes that word; an interrupter; the timer of the first wait, which
 * comes at any time. A wait that no thread ends is a deadlock. The one
 * interrupt is reported once or is still pending, the first timer never ends
 * the second wait, and each dequeue is reported.
 *
 * MUTANT 1: [intr-a] is relaxed: that the task waits is seen late
 * MUTANT 2: [intr-b] is relaxed: the interrupt is seen late
 * MUTANT 3: the word is compared before its bucket's lock is taken
 * MUTANT 4: the interrupter does not look again under the lock
 * MUTANT 5: the interrupter gives up on a waiter that was moved meanwhile
 * MUTANT 6: the timer does not check which wait it is for
 * MUTANT 7: the interrupter that dequeues the waiter leaves the interrupt
 * pending
 * MUTANT 8: the interrupter dequeues the waiter once the lock is dropped
 * MUTANT 9: the interrupter dequeues a waiter that is not listed yet
 *
 * LARGER: NR_WAITS=4
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WAITS	2
#define NOWHERE		2

mtype = { NONE, WOKEN, DIFFERS, INTERRUPTED, TIMEDOUT };

bool value;			/* of word 0; word 1 keeps its own */
bool locked[2];			/* their buckets */
byte word = NOWHERE;		/* the word that the waiter waits on */
byte listed = NOWHERE;		/* the bucket that lists the waiter */
mtype reason = NONE;
bool is_ready;			/* set by the thread that dequeued it */
bool pending;			/* the interrupt */
byte nth;			/* which wait this is */
byte nr_taken, nr_reported, nr_interrupted;
bool is_over, is_marked;		/* the waits; the interrupter */
bool is_late_word, is_late_pending;

#define lock(b)		atomic { !locked[b] -> locked[b] = true }
#define unlock(b)	locked[b] = false

/* dequeue_waiter(), under the lock of its bucket; wake_waiter() follows. */
inline dequeue_waiter(b, why)
{
	d_step {
		assert(listed == b && locked[b] && !is_ready);
		listed = NOWHERE;
		word = NOWHERE;
		reason = why;
		nr_taken++
	}
}

active proctype waiter()
{
	bool same;

	do
	:: nth < NR_WAITS ->
		nth++;
#if MUTANT == 1
		is_late_word = true;
#else
		word = 0;				/* [intr-a] */
#endif
#if MUTANT == 3
		same = !value;
		lock(0);
#else
		lock(0);
		same = !value;
#endif
		if
		:: !same -> d_step { reason = DIFFERS; word = NOWHERE;
				     is_late_word = false }
		:: else ->
			if
			:: atomic { pending -> pending = false };
				d_step { reason = INTERRUPTED; word = NOWHERE;
					 is_late_word = false }
			:: else -> listed = 0		/* [word-a] */
			fi
		fi;
		d_step {
			same = (listed == NOWHERE);
			if
			:: is_late_word -> is_late_word = false; word = 0
			:: else
			fi;
			unlock(0)
		};
		if
		:: !same -> atomic { is_ready -> is_ready = false;
				     nr_reported++ }
		:: else
		fi;
		atomic {
			assert(reason != NONE && !is_ready);
			assert(reason != TIMEDOUT || nth == 1);
			nr_interrupted = nr_interrupted +
					 (reason == INTERRUPTED);
			reason = NONE;
			same = false
		}
	:: else -> break
	od;
	is_over = true;
	is_marked && !is_late_pending;
	assert(nr_taken == nr_reported);
	assert(nr_interrupted + pending == 1)
}

/* Now, or once the interrupt or another event has ended the wait. */
inline begin()
{
	if
	:: true
	:: true -> nr_interrupted == 1 || is_over
	fi
}

inline wake(b)
{
	lock(b);					/* [word-b] */
	if
	:: word == b && listed == b -> dequeue_waiter(b, WOKEN); took = true
	:: else
	fi;
	unlock(b);
	if
	:: took -> is_ready = true; took = false
	:: else
	fi
}

active proctype waker()
{
	bool took;

	begin();
	value = true;
	wake(0)
}

active proctype mover()
{
	bool took;

	lock(0);
	lock(1);
	if
	:: listed == 0 -> d_step { listed = 1; word = 1 }
	:: else
	fi;
	unlock(1);
	unlock(0);
	begin();
	wake(1)
}

inline wait_abort(may, why)
{
	do
	:: atomic { word == NOWHERE -> break }
	:: atomic { word != NOWHERE -> w = word };
		lock(w);
#if MUTANT == 4
		same = true;
#else
		same = (word == w);
#endif
#if MUTANT == 9
		took = same && (may);
#else
		took = same && listed != NOWHERE && (may);
#endif
#if MUTANT == 8
		unlock(w);
#endif
		if
		:: took -> dequeue_waiter(w, why);
#if MUTANT != 7
			pending = pending && why != INTERRUPTED
#endif
		:: else
		fi;
#if MUTANT != 8
		unlock(w);
#endif
		if
		:: took -> is_ready = true; break
#if MUTANT == 5
		:: !took -> break
#else
		:: !took && same -> break
		:: !took && !same
#endif
		fi
	od
}

active proctype interrupter()
{
	byte w;
	bool same, took;

#if MUTANT == 2
	is_late_pending = true;
#else
	pending = true;				/* [intr-b] */
#endif
	wait_abort(pending, INTERRUPTED);
	is_marked = true
}

active proctype timer()
{
	byte w;
	bool same, took;

	nth >= 1;
#if MUTANT == 6
	wait_abort(true, TIMEDOUT)
#else
	wait_abort(nth == 1, TIMEDOUT)
#endif
}

#if MUTANT == 2
active proctype memory()
{
end:	atomic { is_late_pending -> is_late_pending = false; pending = true }
}
#endif
