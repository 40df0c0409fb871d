/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wait_single: who waits in a place of its own is let go exactly once, by who
 * changed the word, by who called it, or by itself (lib/sched/wait_single.h,
 * pl__wait_single_publish() in wait_single.c, take_alone() in wait.c,
 * pl__task_end() in sched.c, join_wait_once() in join.c).
 *
 * Two joiners of one task, one of which is called (interrupted) at any time and
 * then gives up, for which the task may wait.  The place is taken by one of
 * them, the other waits in the word's bucket.  Who waits for ever is a deadlock.
 *
 * MUTANT 1: the version moves after the place was emptied
 * MUTANT 2: who waits looks at the version before it takes its place
 * MUTANT 3: who waits looks whether it was called before it takes its place
 * MUTANT 4: who waits says where after it has looked whether it was called
 * MUTANT 5: who takes itself out again does not compare
 * MUTANT 6: who calls does not compare
 * MUTANT 7: the task empties the place in two steps
 * MUTANT 8: others mark the place after they have looked at the version
 * MUTANT 9: the mark goes when the waiter takes itself out
 * MUTANT 10: who calls looks where before it says so
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_JOINERS	2
#define OURS		1		/* the version that is joined */
#define NOBODY		255

byte version = OURS;
byte place = NOBODY;
bool others;			/* in the same word as the place */
bool is_called;			/* joiner 0 */
bool says_where[NR_JOINERS];	/* waiter.word */
bool gone[NR_JOINERS];		/* let go; taken when it runs again */
bool sits[NR_JOINERS];		/* has switched away, to wait in its place */
bool locked, listed[NR_JOINERS];
bool has_left[NR_JOINERS];

#define lock()		atomic { !locked -> locked = true }
#define unlock()	locked = false
#define called(i)	(i == 0 && is_called)

/* Once for each time that it sits. */
inline let_go(i)
{
	d_step {
		assert(sits[i] && !gone[i]);
		says_where[i] = false;
		gone[i] = true
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
	!listed[i] || called(i);
	listed[i] = false
}

inline sit(i)
{
	sits[i] = true;
#if MUTANT == 2
	is_same = (version == OURS);
#endif
#if MUTANT == 3
	is_called_now = called(i);
#endif
#if MUTANT != 4
	says_where[i] = true;
#endif
	atomic {				/* [single-a] */
		took = (place == NOBODY && !others);
		if
		:: took -> place = i
		:: else
		fi
	};
	if
	:: took ->
#if MUTANT != 2
		is_same = (version == OURS);
#endif
#if MUTANT != 3
		is_called_now = called(i);
#endif
#if MUTANT == 4
		says_where[i] = true;
#endif
		if
		:: !is_same || is_called_now ->
			atomic {
#if MUTANT == 5
				is_mine = true;
#else
				is_mine = (place == i);
#endif
				if
				:: is_mine -> place = NOBODY;
#if MUTANT == 9
					others = false
#endif
				:: else
				fi
			};
			if
			:: is_mine -> let_go(i)
			:: else
			fi
		:: else
		fi;
		gone[i]
	:: else -> says_where[i] = false
	fi;
	d_step {
		gone[i] = false;
		sits[i] = false
	}
}

proctype joiner(byte me)
{
	bool is_same, took, is_mine, is_called_now;

	do
	:: version != OURS || called(me) -> break
	:: else ->
		sit(me);
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

	/* When it likes, or so late that joiner 0 left since it was called. */
	if
	:: true
	:: true -> has_left[0]
	fi;
#if MUTANT != 1
	version = OURS + 1;
#endif
#if MUTANT == 7
	old = place;
	had_others = others;
	place = NOBODY;
	others = false;
#else
	atomic {				/* [join-b], [single-b] */
		old = place;
		had_others = others;
		place = NOBODY;
		others = false
	};
#endif
#if MUTANT == 1
	version = OURS + 1;
#endif
	if
	:: old != NOBODY -> let_go(old)
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

active proctype caller()
{
	bool is_mine, is_there;

#if MUTANT == 10
	is_there = says_where[0];
	is_called = true;
#else
	is_called = true;
	is_there = says_where[0];
#endif
	if
	:: is_there ->
		atomic {
#if MUTANT == 6
			is_mine = true;
#else
			is_mine = (place == 0);
#endif
			if
			:: is_mine -> place = NOBODY
			:: else
			fi
		};
		if
		:: is_mine -> let_go(0)
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
