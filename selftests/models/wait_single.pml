/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wait_single: a waiter in a single-waiter slot is woken exactly once: by the
 * waker that changed the word, by the interrupter, or by itself
 * (lib/queue/task.h, pl__wait_single_publish() in wait_lone.c,
 * take_single() in wait.c, pl__task_end() in task_exit.c, join_wait_once() in
 * join.c).
 *
 * Two joiners of one task; the first is interrupted at any time and then gives
 * up, for which the task may wait. One joiner takes the slot, the other waits
 * in the word's bucket. A joiner that waits for ever is a deadlock.
 *
 * MUTANT 1: the version moves after the slot was emptied
 * MUTANT 2: the waiter looks at the version before it takes the slot
 * MUTANT 3: the waiter checks for an interrupt before it takes the slot
 * MUTANT 4: the waiter sets its word after it has checked for an interrupt
 * MUTANT 5: a waiter that takes itself out again does not compare
 * MUTANT 6: the interrupter does not compare
 * MUTANT 7: the task empties the slot in two steps
 * MUTANT 8: other joiners mark the slot after they have looked at the version
 * MUTANT 9: the mark goes when the waiter takes itself out
 * MUTANT 10: the interrupter reads the waiter's word before it sets its mark
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_JOINERS	2
#define OURS		1		/* the version that is joined */
#define NO_WAITER		255

byte version = OURS;
byte slot = NO_WAITER;
bool others;			/* in the same word as the slot */
bool is_interrupted;		/* joiner 0 */
bool has_word[NR_JOINERS];	/* waiter.word is set */
bool woken[NR_JOINERS];		/* cleared when the waiter runs again */
bool in_slot[NR_JOINERS];	/* has switched away, to wait there */
bool locked, listed[NR_JOINERS];
bool has_left[NR_JOINERS];

#define lock()		atomic { !locked -> locked = true }
#define unlock()	locked = false
#define interrupted(i)	(i == 0 && is_interrupted)

/* Once for each wait in the slot. */
inline wake_waiter(i)
{
	d_step {
		assert(in_slot[i] && !woken[i]);
		has_word[i] = false;
		woken[i] = true
	}
}

inline wait_with_others(i)
{
#if MUTANT == 8
	is_same = (version == OURS);
	others = true;
	lock();
#else
	others = true;				/* [join-a] */
	lock();
	is_same = (version == OURS);
#endif
	listed[i] = is_same;
	unlock();
	!listed[i] || interrupted(i);
	listed[i] = false
}

inline wait_single(i)
{
	in_slot[i] = true;
#if MUTANT == 2
	is_same = (version == OURS);
#endif
#if MUTANT == 3
	is_hit = interrupted(i);
#endif
#if MUTANT != 4
	has_word[i] = true;
#endif
	atomic {				/* [single-a] */
		took = (slot == NO_WAITER && !others);
		if
		:: took -> slot = i
		:: else
		fi
	};
	if
	:: took ->
#if MUTANT != 2
		is_same = (version == OURS);
#endif
#if MUTANT != 3
		is_hit = interrupted(i);
#endif
#if MUTANT == 4
		has_word[i] = true;
#endif
		if
		:: !is_same || is_hit ->
			atomic {
#if MUTANT == 5
				is_mine = true;
#else
				is_mine = (slot == i);
#endif
				if
				:: is_mine -> slot = NO_WAITER;
#if MUTANT == 9
					others = false
#endif
				:: else
				fi
			};
			if
			:: is_mine -> wake_waiter(i)
			:: else
			fi
		:: else
		fi;
		woken[i]
	:: else -> has_word[i] = false
	fi;
	d_step {
		woken[i] = false;
		in_slot[i] = false
	}
}

proctype joiner(byte me)
{
	bool is_same, took, is_mine, is_hit;

	do
	:: version != OURS || interrupted(me) -> break
	:: else ->
		wait_single(me);
		if
		:: !took -> wait_with_others(me)
		:: else
		fi
	od;
	has_left[me] = true
}

active proctype task()
{
	byte old;
	bool had_others;

	/* At any time, or only after the interrupted joiner 0 has left. */
	if
	:: true
	:: true -> has_left[0]
	fi;
#if MUTANT != 1
	version = OURS + 1;
#endif
#if MUTANT == 7
	old = slot;
	had_others = others;
	slot = NO_WAITER;
	others = false;
#else
	atomic {				/* [join-b], [single-b] */
		old = slot;
		had_others = others;
		slot = NO_WAITER;
		others = false
	};
#endif
#if MUTANT == 1
	version = OURS + 1;
#endif
	if
	:: old != NO_WAITER -> wake_waiter(old)
	:: else
	fi;
	if
	:: had_others ->
		lock();
		d_step {
			listed[0] = false;
			listed[1] = false
		};
		unlock()
	:: else
	fi;
	/* The next task in the slot. */
	version = OURS + 2
}

active proctype interrupter()
{
	bool is_mine, is_there;

#if MUTANT == 10
	is_there = has_word[0];
	is_interrupted = true;
#else
	is_interrupted = true;
	is_there = has_word[0];
#endif
	if
	:: is_there ->
		atomic {
#if MUTANT == 6
			is_mine = true;
#else
			is_mine = (slot == 0);
#endif
			if
			:: is_mine -> slot = NO_WAITER
			:: else
			fi
		};
		if
		:: is_mine -> wake_waiter(0)
		:: else
		fi
	:: else
	fi
}

init {
	atomic {
		run joiner(0);
		run joiner(1)
	}
}
