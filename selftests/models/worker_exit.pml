/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * worker_exit: the end of a worker (module/hand.c). Its thread exits, joins
 * another crew, or only goes on, while another one takes its slot and a third
 * closes the space.
 *
 * One hand, that of the thread, and its roster. The scheduler's notifier runs
 * in switch_out(), with preemption off, which RCU takes for a reader. There the
 * hand is taken off the notifiers once its roster is gone or its thread exits,
 * and is then freed by the work item.
 *
 * Nothing is used after it was freed, and the hand is freed once.
 *
 * MUTANT 1: only dismissal asks for a grace period, not a slot's new owner
 * MUTANT 2: the roster is freed without a grace period
 * MUTANT 3: the notifier gives the hand away before it uses the roster
 * MUTANT 4: the work item frees the hand without a grace period
 * MUTANT 5: the thread looks for its hand while it can be preempted
 * MUTANT 6: a thread that joins again finds its old hand before, not under lock
 */
#ifndef MUTANT
#define MUTANT 0
#endif

/* The hand's: */
bool has_roster = true;		/* M: hand->roster */
bool is_linked = true;		/* the thread's: among its notifiers */
bool is_dead;			/* given to the work item */
bool is_hand_free;
byte nr_ends;

/* The roster's: */
bool is_in_slot = true;		/* M: the hand */
bool is_taken;			/* M: by the other one */
bool needs_grace;		/* M */
bool is_roster_free;

bool is_exiting;		/* PF_EXITING, or another program's memory */
bool is_over;			/* the thread is dead */
bool is_locked;			/* hands_lock */
byte nr_calls = 1;		/* in flight on the space: the taker's */

/* A reader of RCU, which is the thread: which section it is in, if in one. */
bool is_reading;
byte nr_read;

inline lock() { atomic { !is_locked; is_locked = true } }
inline unlock() { is_locked = false }

/* synchronize_rcu(), call_rcu(): sections that began before are over. */
inline wait_grace(n)
{
	n = nr_read;
	!is_reading || nr_read != n
}

inline use_roster() { assert(!is_roster_free) }
inline use_hand() { assert(!is_hand_free) }

/* hand_detach() */
inline detach()
{
	d_step { is_in_slot = false; has_roster = false }	/* [hand-a] */
}

/* hand_end(), without the notifier; RCU frees it. */
inline end_hand(n)
{
	lock();
	if
	:: has_roster -> detach()
	:: else
	fi;
	d_step { nr_ends++; assert(nr_ends == 1) };
	unlock();
#if MUTANT != 4
	wait_grace(n);
#endif
	is_hand_free = true
}

/* hand_sched_out() */
inline switch_out(r)
{
	if
	:: is_linked ->
		atomic { is_reading = true; nr_read++ };
		use_hand();
		r = has_roster;					/* [hand-b] */
		if
		:: !r || is_exiting ->
#if MUTANT == 3
			is_linked = false;
			is_dead = true;
#endif
			if
			:: r -> use_roster()
			:: else
			fi;
#if MUTANT != 3
			is_linked = false;
			is_dead = true;
#endif
			/* The next notifier is read from this one. */
			use_hand()
		:: else -> use_roster()
		fi;
		is_reading = false
	:: else
	fi
}

/* hand_of_roster(): of another space's call, which does not hold the roster. */
inline look()
{
#if MUTANT == 5
	seen = is_linked;
	switch_out(r);
	if
	:: seen -> use_hand()
	:: else
	fi
#else
	d_step {
		if
		:: is_linked -> use_hand()
		:: else
		fi
	}
#endif
}

/* parklot_hand_join() of another crew, whose hand is not looked at here. */
inline join_again()
{
#if MUTANT == 6
	seen = is_linked;
	switch_out(r);
	lock();
	is_linked = false;
#else
	lock();
	d_step { seen = is_linked && !has_roster };
	if
	:: seen -> is_linked = false
	:: else
	fi;
#endif
	unlock();
	if
	:: seen -> end_hand(n)
	:: else
	fi
}

active proctype thread()
{
	bool r, seen;
	byte n;

	switch_out(r);
	look();
	if
	:: true
	:: switch_out(r)
	:: join_again()
	fi;
	is_exiting = true;
	switch_out(r);
	assert(!is_linked);
	is_over = true
}

/* bury() */
active proctype worker()
{
	byte n;

	if
	:: is_dead -> end_hand(n)
	:: is_over && !is_dead
	fi
}

/* JOIN in the hand's slot, and LEAVE; it holds the space meanwhile. */
active proctype taker()
{
	lock();
	if
	:: is_in_slot && is_exiting ->
		detach();
#if MUTANT != 1
		needs_grace = true;
#endif
		is_taken = true
	:: is_in_slot && !is_exiting
	:: !is_in_slot -> is_taken = true
	fi;
	unlock();
	use_roster();
	lock();
	is_taken = false;
	unlock();
	nr_calls--
}

/* The last close: parklot_hand_dismiss(), and the rest. */
active proctype closer()
{
	bool g;
	byte n;

	nr_calls == 0;
	lock();
	if
	:: is_in_slot -> detach(); needs_grace = true
	:: else
	fi;
	g = needs_grace;
	unlock();
#if MUTANT != 2
	if
	:: g -> wait_grace(n)
	:: else
	fi;
#endif
	is_roster_free = true
}
