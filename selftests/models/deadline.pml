/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * deadline: the timer thread sleeps past no deadline (lib/time/timer*.c:
 * enlist(), pl__timers_kick(), pull(), timer_run(), fire_due(),
 * timer_sleep_until()).
 *
 * Two adders share a bucket. Time passes at any moment and may stop at any
 * point. When nothing moves any more, the thread must sleep until the earliest
 * deadline that is left, or less, and the work that follows those that it has
 * fired is done. Deleted timers are left out: they only make the thread sleep
 * less.
 *
 * MUTANT 1: [timer-a] is relaxed: the adder's seq is seen late
 * MUTANT 2: [timer-b] is relaxed: the thread's next_ns is seen late
 * MUTANT 3: seq is not compared before the sleep, nor by the futex
 * MUTANT 4: an adder that lowers next_ns does not move seq on again before the
 * wake
 * MUTANT 5: earliest_ns is set after seq
 * MUTANT 6: the thread reads seq after it has looked into the buckets
 * MUTANT 7: a bucket's earliest_ns is reset once its lock is dropped
 * MUTANT 8: a batch is not ended when seq has changed
 *
 * LARGER: NOW_MAX=3
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_ADDERS	2
#define NOW_MAX		2
#define NEVER		9

byte now;
byte earliest = NEVER;		/* of the bucket */
bool listed[NR_ADDERS];		/* in its bucket; under the bucket's lock */
bool heaped[NR_ADDERS];
byte seq, next_ns;
bool is_batch;			/* fired, but the following work is not done */
bool in_futex;
byte until;			/* the time at which its sleep ends */

bool late_seq[NR_ADDERS], is_late;
byte late_next;
byte nr_added;

#define deadline_of(i)	((i) == 0 -> 2 : 1)

/* What the heap's first is due at. */
#define heap_min()	(heaped[1] -> 1 : (heaped[0] -> 2 : NEVER))

/* One step under the bucket's lock, except in the mutant. */
inline pull()
{
	if
	:: earliest < heap_min() ->
		d_step {
			heaped[0] = heaped[0] || listed[0];
			heaped[1] = heaped[1] || listed[1];
			listed[0] = false;
			listed[1] = false;
#if MUTANT != 7
			earliest = NEVER
#endif
		};
#if MUTANT == 7
		earliest = NEVER
#endif
	:: else
	fi
}

inline fire()
{
	d_step {
		if
		:: heaped[1] -> heaped[1] = false
		:: else -> heaped[0] = false
		fi;
		is_batch = true
	}
}

active proctype thread()
{
	byte s;

again:
	s = seq;				/* [timer-a] */
look:
	pull();
	if
	:: heap_min() <= now ->
more:		fire();
		if
		:: seq != s ->
#if MUTANT != 8
			is_batch = false;
#endif
			goto again
		:: seq == s && heap_min() <= now -> goto more
		:: seq == s && heap_min() > now ->
			is_batch = false;
			goto look
		fi
	:: else
	fi;

#if MUTANT == 6
	s = seq;
#endif
	until = heap_min();
#if MUTANT == 2
	d_step { is_late = true; late_next = until };
#else
	next_ns = until;			/* [timer-b] */
#endif
#if MUTANT == 3
	in_futex = true;
#else
	if
	:: seq == s ->				/* [timer-b] */
		atomic { in_futex = (seq == s) }
	:: else
	fi;
#endif
end:	if
	:: !in_futex
	:: until <= now -> in_futex = false
	fi;
	d_step { is_late = false; next_ns = 0 };
	goto again
}

inline kick(ns)
{
#if MUTANT == 1
	late_seq[me] = true;
#else
	seq++;					/* [timer-a] */
#endif
	next = next_ns;				/* [timer-b] */
	do
	:: next <= ns -> break
	:: next > ns ->
		if
		:: atomic { next_ns == next -> next_ns = ns };
#if MUTANT != 4
			seq++;
#endif
			in_futex = false;
			break
		:: else -> next = next_ns
		fi
	od
}

proctype adder(byte me)
{
	byte next;
	bool is_news;

	d_step {
		listed[me] = true;
		is_news = (deadline_of(me) < earliest);
#if MUTANT != 5
		if
		:: is_news -> earliest = deadline_of(me)
		:: else
		fi
#endif
	};
	if
	:: is_news -> kick(deadline_of(me))
	:: else
	fi;
#if MUTANT == 5
	if
	:: is_news -> earliest = deadline_of(me)
	:: else
	fi;
#endif
	atomic { next = 0; is_news = false; nr_added++ }
}

active proctype time()
{
	do
	:: now < NOW_MAX -> now++
	:: break
	od
}

#if MUTANT == 1 || MUTANT == 2
active proctype memory()
{
end:	do
	:: atomic { late_seq[0] -> late_seq[0] = false; seq++ }
	:: atomic { late_seq[1] -> late_seq[1] = false; seq++ }
	:: atomic { is_late -> is_late = false; next_ns = late_next }
	od
}
#endif

#define is_missed(i)	((listed[i] || heaped[i]) && deadline_of(i) < until)

active proctype sysmon()
{
	atomic {
		timeout;
		assert(nr_added == NR_ADDERS && in_futex && !is_batch);
		assert(!is_missed(0) && !is_missed(1))
	}
}

init {
	atomic {
		run adder(0);
		run adder(1)
	}
}
