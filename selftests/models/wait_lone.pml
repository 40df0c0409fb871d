/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wait_lone: a task that waits alone sleeps until its request is done, and is
 * woken once for each sleep (lib/wait/wait_lone.h: pl__wait_lone_begin(),
 * pl__wait_lone_done(), pl__wait_lone_take(); pl__wait_lone_sleep() in
 * wait_lone.c; take_first() and pl__wait_time_out() in wait.c; io_wait_once()
 * in io.c).
 *
 * A task makes one request after another, and waits for each. Against it: the
 * completions; an interrupter; the timer of the first sleep, which comes at any
 * time. A wait that was interrupted or timed out goes on, uninterruptibly, until
 * the request is done. A task that sleeps for ever is a deadlock. The interrupt
 * is reported once or is still pending, the timer ends no later sleep for good,
 * and no completion comes after its wait.
 *
 * MUTANT 1: the completion reads the word, and clears it later
 * MUTANT 2: the waiter falls asleep without comparing
 * MUTANT 3: the interrupter reads the word before it sets its mark
 * MUTANT 4: the waiter looks for interrupts before it is asleep
 * MUTANT 5: the interrupter does not compare
 * MUTANT 6: the timer does not check which sleep it is for
 * MUTANT 7: the waiter that is interrupted as it falls asleep does not compare
 * MUTANT 8: the completion wakes a waiter that is awake
 * MUTANT 9: the waiter returns once it is interrupted
 * MUTANT 10: the wait is begun after the request was submitted
 * MUTANT 11: the thread that took the waiter out for nothing leaves it
 *
 * LARGER: NR_REQUESTS=4
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_REQUESTS	2

mtype = { DONE, AWAKE, ASLEEP };
mtype = { NONE, INTERRUPTED, TIMEDOUT };

mtype word = DONE;		/* of the waiter; DONE is NULL */
mtype reason = NONE;
bool is_away;			/* has switched away, and was not woken */
bool is_ready;
bool uninterruptible;
bool pending;			/* the interrupt */
byte nth;			/* which sleep this is */
byte nr_submitted, nr_done, nr_reported, nr_waited;
bool is_marked;

inline wake_waiter()
{
	d_step {
		assert(is_away && !is_ready);
		is_ready = true
	}
}

/* pl__wait_lone_take() of what was read before. */
inline take(seen, is_mine)
{
	atomic {
		is_mine = (seen == ASLEEP && word == ASLEEP);
		if
		:: is_mine ->
			word = AWAKE;
			reason = NONE
		:: else
		fi
	}
}

/* Until the request is done; gives up at the first reason to. */
inline wait_lone()
{
	do
	:: word == DONE -> break
	:: else ->
		nth++;
		is_away = true;
#if MUTANT == 4
		is_hit = (pending && !uninterruptible);
#endif
		atomic {				/* [lone-a] */
			slept = (word == AWAKE);
#if MUTANT == 2
			slept = true;
#endif
			if
			:: slept -> word = ASLEEP
			:: else
			fi
		};
		if
		:: slept ->
#if MUTANT != 4
			is_hit = (pending && !uninterruptible);	/* [intr-a] */
#endif
			if
			:: is_hit ->
#if MUTANT == 7
				is_mine = true;
				word = AWAKE;
#else
				take(ASLEEP, is_mine);
#endif
				if
				:: is_mine ->
					d_step {
						reason = (pending ->
							INTERRUPTED : NONE);
						pending = false
					};
					wake_waiter()
				:: else
				fi
			:: else
			fi
		:: else -> wake_waiter()
		fi;
		d_step {
			is_ready;
			is_ready = false;
			is_away = false
		};
		if
		:: reason == INTERRUPTED -> nr_reported++
		:: reason == TIMEDOUT -> assert(nth == 1)
		:: else
		fi;
		d_step {
			uninterruptible = (uninterruptible || reason != NONE);
			reason = NONE
		}
#if MUTANT == 9
		;
		if
		:: uninterruptible -> break
		:: else
		fi
#endif
	od
}

active proctype waiter()
{
	bool slept, is_hit, is_mine;

	do
	:: nr_submitted < NR_REQUESTS ->
#if MUTANT != 10
		word = AWAKE;
#endif
		nr_submitted++;
#if MUTANT == 10
		word = AWAKE;
#endif
		wait_lone();
		atomic {
			uninterruptible = false;
			nr_waited++
		};
		assert(nr_done == nr_waited)
	:: else -> break
	od;
	is_marked;
	assert(nr_reported + (pending -> 1 : 0) == 1)
}

active proctype completion()
{
	mtype old;

	do
	:: nr_done < NR_REQUESTS ->
		nr_submitted > nr_done;
		/* At any time, or for the first only once it is cancelled. */
		if
		:: true
		:: nr_done == 0 -> uninterruptible
		fi;
		/* The result is written. */
		nr_done++;
		assert(nr_waited == nr_done - 1);
#if MUTANT == 1
		old = word;
		word = DONE;
#else
		atomic {				/* [lone-b] */
			old = word;
			word = DONE
		};
#endif
		if
#if MUTANT == 8
		:: old != DONE -> wake_waiter()
#else
		:: old == ASLEEP -> wake_waiter()
#endif
		:: else
		fi
	:: else -> break
	od
}

active proctype interrupter()
{
	mtype seen;
	bool is_mine;

#if MUTANT == 3
	seen = word;
	pending = true;				/* [intr-b] */
#else
	pending = true;				/* [intr-b] */
	seen = word;
#endif
	is_marked = true;
#if MUTANT == 5
	is_mine = (seen == ASLEEP);
	if
	:: is_mine -> word = AWAKE
	:: else
	fi;
#else
	take(seen, is_mine);
#endif
	if
	:: is_mine ->
		if
		:: pending && !uninterruptible ->
			pending = false;
			reason = INTERRUPTED
		:: else
		fi;
#if MUTANT == 11
		if
		:: reason != NONE -> wake_waiter()
		:: else
		fi
#else
		wake_waiter()
#endif
	:: else
	fi
}

/* Of the first sleep. */
active proctype timer()
{
	bool is_mine;

	nth > 0 || nr_waited == NR_REQUESTS;
	take(word, is_mine);
	if
	:: is_mine ->
		if
#if MUTANT == 6
		:: true -> reason = TIMEDOUT
#else
		:: nth == 1 -> reason = TIMEDOUT
		:: else
#endif
		fi;
		wake_waiter()
	:: else
	fi
}
