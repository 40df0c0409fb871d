/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * word: a wait ends once, for one reason, whoever comes (lib/wait/wait.c:
 * wait_link(), pl__wake(), wait_take(), wait_abort(), pl__requeue(),
 * pl_interrupt(), time_out(); the second drawing of wait.h).
 *
 * A task waits on a word, a second time once the first wait is over. Against
 * it: a waker who changes the word; one who moves waiters to another word and
 * wakes that one; an interrupter; the timer of the first wait, which
 * comes as late as it likes. A wait that nobody ends is a deadlock. The one
 * interrupt is reported once or is still pending, the first timer never ends the
 * second wait, and each taking off the list is reported.
 *
 * MUTANT 1: [intr-a] is relaxed: that it waits is seen late
 * MUTANT 2: [intr-b] is relaxed: the interrupt is seen late
 * MUTANT 3: the word is compared before its bucket's lock is taken
 * MUTANT 4: the interrupter does not look again under the lock
 * MUTANT 5: the interrupter gives up on a waiter that was moved meanwhile
 * MUTANT 6: the timer does not ask which wait it is for
 * MUTANT 7: the interrupt is not consumed by whom it takes off
 * MUTANT 8: the interrupter takes it off once the lock is dropped
 * MUTANT 9: the interrupter takes off who is not listed yet
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
byte word = NOWHERE;		/* the waiter's: what it waits on */
byte listed = NOWHERE;		/* in which bucket it stands */
mtype reason = NONE;
bool is_ready;			/* made so by whoever took it off */
bool pending;			/* the interrupt */
byte nth;			/* which wait this is */
byte nr_taken, nr_reported, nr_interrupted;
bool is_over, is_marked;		/* the waits; the interrupter */
bool is_late_word, is_late_pending;

#define lock(b)		atomic { !locked[b] -> locked[b] = true }
#define unlock(b)	locked[b] = false

/* take_off(), under the lock of the bucket in which it stands; then let_go(). */
inline take_off(b, why)
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

/* Now, or once the interrupt has had its way without our help. */
inline come()
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
	:: word == b && listed == b -> take_off(b, WOKEN); took = true
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

	come();
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
	come();
	wake(1)
}

/* wait_abort() */
inline kick(may, why)
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
		:: took -> take_off(w, why);
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
	kick(pending, INTERRUPTED);
	is_marked = true
}

active proctype timer()
{
	byte w;
	bool same, took;

	nth >= 1;
#if MUTANT == 6
	kick(true, TIMEDOUT)
#else
	kick(nth == 1, TIMEDOUT)
#endif
}

#if MUTANT == 2
active proctype memory()
{
end:	atomic { is_late_pending -> is_late_pending = false; pending = true }
}
#endif
