/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * deadline: the timer thread sleeps past no deadline (lib/time/timer*.c:
 * enlist(), pl__timers_tell(), pl__timers_kick(), hear_of(), pull(),
 * pull_listed(), timer_run(), fire_due(), timer_sleep_until()).
 *
 * Two adders share a bucket, or have one each. Time passes at any moment and
 * may stop at any point. When nothing moves any more, the thread must sleep
 * until the earliest deadline that is left, or less, and the work that follows
 * those that it has fired is done. Deleted timers are left out: they only make
 * the thread sleep less.
 *
 * MUTANT 1: [timer-a] is relaxed: the adder's seq is seen late
 * MUTANT 2: [timer-b] is relaxed: the thread's next_ns is seen late
 * MUTANT 3: seq is not compared before the sleep, nor by the futex
 * MUTANT 4: an adder that lowers next_ns does not move seq on again before the
 * wake
 * MUTANT 5: earliest is set after seq
 * MUTANT 6: the thread reads seq after it has looked into the buckets
 * MUTANT 7: a bucket's earliest is reset once its lock is dropped
 * MUTANT 8: a batch is not ended when seq has changed
 * MUTANT 9: [timer-e] the news are told before earliest is set
 * MUTANT 10: [timer-e] the news are told after seq
 * MUTANT 11: [timer-e] the thread reads earliest before it takes the news
 * MUTANT 12: a bucket that is pulled loses its news as well
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
byte bucket[NR_ADDERS];		/* of each adder */
byte earliest[2] = NEVER;	/* of each bucket */
bool news[2];
bool is_known[2];		/* to the thread, and not pulled since */
byte left = NEVER;		/* the thread's: the earliest of those */
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

#define least(x, y)	((x) < (y) -> (x) : (y))

/* Both bits are of one word. */
inline hear()
{
#if MUTANT == 11
	d_step { ns[0] = earliest[0]; ns[1] = earliest[1] };
#endif
	d_step {				/* [timer-e] */
		heard[0] = news[0];
		heard[1] = news[1];
		news[0] = false;
		news[1] = false;
		is_known[0] = is_known[0] || heard[0];
		is_known[1] = is_known[1] || heard[1]
	};
	b = 0;
	do
	:: b < 2 && heard[b] ->
#if MUTANT != 11
		ns[b] = earliest[b];
#endif
		left = least(left, ns[b]);
		b++
	:: b < 2 && !heard[b] -> b++
	:: b == 2 -> break
	od;
	atomic { b = 0; heard[0] = 0; heard[1] = 0; ns[0] = 0; ns[1] = 0 }
}

#define is_in(i)	(listed[i] && bucket[i] == b)

/* One step under the bucket's lock, except in the mutant. */
inline pull()
{
	d_step {
		heaped[0] = heaped[0] || is_in(0);
		heaped[1] = heaped[1] || is_in(1);
		listed[0] = listed[0] && !is_in(0);
		listed[1] = listed[1] && !is_in(1);
#if MUTANT != 7
		earliest[b] = NEVER;
#endif
		is_known[b] = false
	};
#if MUTANT == 7
	earliest[b] = NEVER;
#endif
#if MUTANT == 12
	news[b] = false;
#endif
}

inline pull_listed()
{
	left = NEVER;
	b = 0;
	do
	:: b < 2 && is_known[b] ->
		if
		:: atomic { earliest[b] < heap_min() -> skip }; pull()
		:: atomic { earliest[b] >= heap_min() ->
				left = least(left, earliest[b]) }
		fi;
		b++
	:: b < 2 && !is_known[b] -> b++
	:: b == 2 -> break
	od;
	b = 0
}

inline pull_early()
{
	hear();
	if
	:: left < heap_min() -> pull_listed()
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
	byte s, b, ns[2];
	bool heard[2];

again:
	s = seq;				/* [timer-a] */
look:
	pull_early();
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

#if MUTANT == 9
	news[bucket[me]] = true;
#endif
	d_step {
		listed[me] = true;
		is_news = (deadline_of(me) < earliest[bucket[me]]);
#if MUTANT != 5
		if
		:: is_news -> earliest[bucket[me]] = deadline_of(me)
		:: else
		fi
#endif
	};
	if
	:: is_news ->
#if MUTANT != 9 && MUTANT != 10
		news[bucket[me]] = true;	/* [timer-e] */
#endif
		kick(deadline_of(me))
	:: else
	fi;
#if MUTANT == 10
	news[bucket[me]] = true;
#endif
#if MUTANT == 5
	if
	:: is_news -> earliest[bucket[me]] = deadline_of(me)
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
		if
		:: bucket[1] = 0
		:: bucket[1] = 1
		fi;
		run adder(0);
		run adder(1)
	}
}
