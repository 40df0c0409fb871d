/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * timer_order: late timers, in the order of their deadlines
 * (lib/time/timer_impl.h: the third drawing; pl__timer_arm(), pull(),
 * pull_early(), raise_floor(), fire_due(), run()).
 *
 * A and B are armed once each, in a bucket each, with any deadline and at any
 * time.  A timer due at 0 is armed as well, in any bucket, and its callback
 * arms the next, without end.  The thread may be late at each step.
 *
 * If A and B were armed before either was due, they fire in the order of their
 * deadlines.  None fires early.  Of the timers due at 0 that were armed more
 * than LATE_MAX after A or B was due, one may fire before it: it is in the
 * heap when floor is raised.
 *
 * MUTANT 1: a timer pulled more than LATE_MAX late counts as just so late
 * MUTANT 2: floor is raised, and no bucket pulled
 * MUTANT 3: floor is raised before the buckets are pulled
 * MUTANT 4: floor is raised to a time read after the buckets were pulled
 * MUTANT 5: floor is not raised
 *
 * The first four have to break the order: of these nothing else is asked.
 *
 * LARGER: DUE_MAX=6 END=8
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define DUE_MIN		(START + 1)
#define DUE_MAX		5
#define START		3	/* of time */
#define END		7
#define LATE_MAX	2
#define NEVER		99

#define OLD	0
#define A	1
#define B	2
#define NR	3
#define NR_BUCKETS	2
#define NONE	NR_BUCKETS

byte clock = START;
byte due[NR];			/* deadlines */
byte bucket[NR] = NONE;		/* that it is listed in */
byte key[NR] = NEVER;		/* in the heap */
bool in_time[NR];		/* A, B: armed before it was due */
bool before_both[NR];		/* A, B: and before the other was */
bool long_after[NR];		/* A, B was due, the next old one was armed */
bool is_fired[NR];
bool is_news;			/* seq has changed */
byte floor;

active proctype time()
{
	do
	:: clock < END -> clock++
	:: else -> break
	od
}

/* The thread is told of the earliest of a bucket alone. */
inline arm(i, b)
{
	d_step {
		is_news = is_news || i == OLD || bucket[OLD] != b;
		bucket[i] = b
	}
}

proctype adder(byte i)
{
	arm(i, i - A);
	d_step {
		in_time[i] = clock < due[i];
		before_both[i] = clock < due[A] && clock < due[B]
	}
}

inline find_first(first)
{
	first = key[OLD];
	first = (key[A] < first -> key[A] : first);
	first = (key[B] < first -> key[B] : first)
}

inline find_earliest(b, ns)
{
	ns = NEVER;
	ns = (bucket[B] == b -> due[B] : ns);
	ns = (bucket[A] == b && due[A] < ns -> due[A] : ns);
	ns = (bucket[OLD] == b -> due[OLD] : ns)
}

#if MUTANT == 1
#define lowest	(now > LATE_MAX -> now - LATE_MAX : 0)
#else
#define lowest	floor
#endif

inline to_heap(i, b)
{
	key[i] = (bucket[i] != b -> key[i] :
		  (due[i] > lowest -> due[i] : lowest));
	bucket[i] = (bucket[i] == b -> NONE : bucket[i])
}

inline pull(b)
{
	d_step { to_heap(OLD, b); to_heap(A, b); to_heap(B, b) }
}

inline pull_early()
{
	left = NEVER;
	b = 0;
	do
	:: b < NR_BUCKETS ->
		d_step { find_first(next); find_earliest(b, ns) };
		if
		:: ns < next -> pull(b)
		:: else -> left = (ns < left -> ns : left)
		fi;
		b++
	:: else -> break
	od;
	atomic { find_first(next); ns = 0; b = 0 }
}

inline raise_floor()
{
#if MUTANT == 3
	floor = now - LATE_MAX / 2;
#endif
#if MUTANT != 2
	b = 0;
	do
	:: b < NR_BUCKETS ->
		d_step { find_earliest(b, ns) };
		if
		:: ns <= now - LATE_MAX / 2 -> pull(b)
		:: else
		fi;
		b++
	:: else -> break
	od;
	atomic { ns = 0; b = 0 };
#endif
#if MUTANT == 4
	now = clock;
#endif
	floor = now - LATE_MAX / 2
}

/* @j should have fired before @i. */
#define is_behind(i, j) \
	(!is_fired[j] && due[j] < due[i] && before_both[i] && before_both[j])
/* The old one was armed long after @j was due. */
#define holds_up(j)	(!is_fired[j] && in_time[j] && long_after[j])

inline fire_old()
{
#if MUTANT == 0 || MUTANT == 5
	d_step {
		nr_behind = nr_behind + (holds_up(A) || holds_up(B));
		assert(nr_behind <= 1)
	};
#endif
	d_step {
		long_after[A] = clock > due[A] + LATE_MAX;
		long_after[B] = clock > due[B] + LATE_MAX
	};
	if
	:: arm(OLD, 0)
	:: arm(OLD, 1)
	fi
}

inline fire(i, j)
{
	d_step {
		key[i] = NEVER;
		assert(clock >= due[i]);
		assert(!is_behind(i, j));
		is_fired[i] = true
	}
}

inline fire_due()
{
	do
	:: if
	   :: key[OLD] == next -> key[OLD] = NEVER; fire_old()
	   :: key[A] == next -> fire(A, B)
	   :: key[B] == next -> fire(B, A)
	   fi;
	   d_step { find_first(next) };
	   if
	   :: !is_news && next <= now && next <= left
	   :: else -> break
	   fi
	od
}

#define is_done	(is_fired[A] && is_fired[B])

active proctype thread()
{
	byte now, next, left, ns, b, nr_behind;

	do
	:: is_done -> break
	:: else ->
		d_step { is_news = false; next = 0; left = 0 };
		now = clock;
again:
		pull_early();
		if
		:: next > now -> is_news || clock >= next
		:: next <= now && now - next > LATE_MAX &&
#if MUTANT == 5
		   false &&
#endif
		   now - floor > LATE_MAX ->
			raise_floor();
			goto again
		:: else -> fire_due()
		fi
	od
}

init {
	byte ns;

	atomic {
		select(ns : DUE_MIN .. DUE_MAX);
		due[A] = ns;
		select(ns : DUE_MIN .. DUE_MAX);
		due[B] = ns;
		ns = 0;
		if
		:: bucket[OLD] = 0
		:: bucket[OLD] = 1
		fi;
		run adder(A);
		run adder(B)
	}
}
