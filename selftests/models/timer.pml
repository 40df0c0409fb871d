/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * timer: fire against delete; one compare-and-swap of the version decides
 * (lib/time/timer*.[ch]: the first drawing; pl__timer_arm(), pl__timer_del(),
 * advance(), to_heap(), fire()).
 *
 * One slot, armed twice, each time with a new generation; a deleter for each
 * handle, at any later time; the thread, which pulls, fires and reclaims. A
 * deleter that was told 0 has a timer that never runs; -EBUSY, one that runs;
 * -ENOENT, one that has run or was deleted. The slot is given back once.
 *
 * MUTANT 1: the deleter looks at the version and stores it, in two steps
 * MUTANT 2: the thread advances the version in two steps
 * MUTANT 3: a handle carries no generation
 * MUTANT 4: the deleter gives the slot back, as the thread does
 * MUTANT 5: the timer is IDLE before its function was called
 *
 * LARGER: NR=3
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR	2

#define IDLE	0
#define LISTED	1
#define HEAPED	2
#define RUNNING	3
#define version(gen, state)	((gen) * 4 + (state))

byte v;				/* the slot's version */
byte armed;			/* the generation that was armed last */
bool is_free = true, is_listed;	/* the slot; in the bucket */
bool running[NR + 1], has_run[NR + 1], deleted[NR + 1];

active proctype adder()
{
	byte gen = 1;

	do
	:: gen <= NR ->
		atomic { is_free -> is_free = false };
		assert(v % 4 == IDLE);
		v = version(gen, LISTED);
		armed = gen;
		is_listed = true;
		gen++
	:: else -> break
	od
}

proctype deleter(byte gen)
{
	byte old;

	armed >= gen;
again:
	old = v;
#if MUTANT == 3
	if
	:: old % 4 == LISTED || old % 4 == HEAPED ->
#else
	if
	:: old == version(gen, LISTED) || old == version(gen, HEAPED) ->
#endif
#if MUTANT == 1
		v = version(old / 4, IDLE);
#else
		if
		:: atomic { v == old ->			/* [timer-c] */
			    v = version(old / 4, IDLE) }
		:: else -> goto again
		fi;
#endif
		d_step {
			assert(!running[gen] && !has_run[gen]);
			deleted[gen] = true
		}
#if MUTANT == 4
		;
		d_step { assert(!is_free); is_free = true }
#endif
	:: old == version(gen, RUNNING) ->
		assert(!deleted[gen])
	:: else -> assert(has_run[gen] || deleted[gen])
	fi
}

inline advance(from, to)
{
	d_step { got = (v % 4 == from); gen = v / 4 };
#if MUTANT == 2
	if
	:: got -> v = version(gen, to)
	:: else
	fi
#else
	d_step {
		got = got && (v == version(gen, from));
		v = (got -> version(gen, to) : v)
	}
#endif
}

inline reclaim()
{
	assert(v % 4 == IDLE);
	d_step { assert(!is_free); is_free = true }
}

active proctype thread()
{
	byte gen, nr;
	bool got;

	do
	:: nr < NR ->
		atomic { is_listed -> is_listed = false };
		nr++;
		advance(LISTED, HEAPED);
		if
		:: !got -> reclaim()
		:: got ->
			advance(HEAPED, RUNNING);
			if
			:: !got -> reclaim()
			:: got ->
#if MUTANT == 5
				v = version(gen, IDLE);
#endif
				d_step { assert(!deleted[gen]);
					 running[gen] = true };
				d_step { running[gen] = false;
					 has_run[gen] = true };
				v = version(gen, IDLE);	/* [timer-d] */
				reclaim()
			fi
		fi
	:: else -> break
	od
}

init {
	atomic {
		run deleter(1);
		run deleter(2)
	}
}
