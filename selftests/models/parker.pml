/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * parker: one thread asleep on its futex or in its ring, listed in a lot or in
 * a wait, and the wakers that take it off the list and then wake it
 * (lib/park/parker.[ch]; park_in_ring() in worker.c, sleep_in_ring() in
 * worker.c; pl__ring_wait(), pl__ring_poll() in ring.c, arm_event() in
 * ring_uring.c).
 *
 * A worker sleeps until it was woken as often as there are wakers: parked on
 * the futex or in the ring, or blocked in the ring, in any order. Parked in
 * the ring it may return for a completion, unlist itself, and park again: a
 * waker that took it off the list may not have woken it yet, and a doorbell
 * may ring late. The kernel reads the eventfd once a read is armed and there
 * is something to read. To get room for a submission may mean to look at
 * completions. A lost wake is a deadlock; each removal from the list is
 * reported once, and no worker is listed twice.
 *
 * MUTANT 1: the waker rings first and then sets the state
 * MUTANT 2: the kernel does not compare the futex word before it sleeps
 * MUTANT 3: a doorbell that rang while room was made is forgotten
 * MUTANT 4: a worker that was taken off the list does not wait for its waker
 * MUTANT 5: the state is armed once listed
 * MUTANT 6: the doorbell alone is taken for a wake
 * MUTANT 7: an eventfd read that completed is not armed again
 *
 * LARGER: NR_WAKERS=3 NR_COMPLETIONS=3
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WAKERS	2
#define NR_COMPLETIONS	2

mtype = { NOT, ON_FUTEX, IN_RING, WOKEN };

mtype state = NOT;
bool listed;			/* under the lot's lock: a step each */
byte nr_taken, nr_woken;	/* by wakers; as the worker reports */

bool in_futex;			/* the kernel's */
bool counter;			/* the eventfd's */
bool reading;			/* an eventfd read is in flight */
bool cqe_event, cqe_io;		/* completions not reaped yet */

bool is_event_armed;		/* as the ring's owner knows */

/* reap() */
inline reap()
{
	d_step {
		cqe_io = false;
		if
		:: cqe_event ->
			cqe_event = false;
			has_rung = true;
#if MUTANT != 7
			is_event_armed = false
#endif
		:: else
		fi
	}
}

/* pl__ring_wait(); get_sqe() may find the ring full. */
inline ring_wait()
{
	has_rung = false;
	if
	:: true
	:: reap()
	fi;
#if MUTANT == 3
	has_rung = false;
#endif
	if
	:: !is_event_armed ->
		d_step { is_event_armed = true; reading = true }
	:: else
	fi;
	if
	:: has_rung
	:: !has_rung -> cqe_event || cqe_io
	fi
}

inline park_on_futex()
{
	do
	:: state == WOKEN -> break		/* [parker-a] */
	:: state != WOKEN ->
#if MUTANT == 2
		in_futex = true;
#else
		atomic { in_futex = (state == ON_FUTEX) };
#endif
		!in_futex
	od;
	is_woken = true
}

inline park_in_ring()
{
	ring_wait();
	atomic { is_woken = !listed; listed = false };
#if MUTANT == 6
	is_woken = is_woken || cqe_event;
#endif
#if MUTANT != 4
	!is_woken || state == WOKEN;
#endif
	/* worker_find_task() looks at completions. */
	reap()
}

inline block_in_ring()
{
	do
	:: state == WOKEN -> break
	:: state != WOKEN -> ring_wait(); reap()
	od;
	is_woken = true
}

active proctype worker()
{
	mtype how;
	bool has_rung, is_woken, parks;

	do
	:: nr_woken < NR_WAKERS ->
		if
		:: d_step { how = ON_FUTEX; parks = true }
		:: d_step { how = IN_RING; parks = true }
		:: how = IN_RING
		fi;
#if MUTANT == 5
		d_step { assert(!listed); listed = true };
		state = how;
#else
		state = how;
		d_step { assert(!listed); listed = true };
#endif
		if
		:: how == ON_FUTEX -> park_on_futex()
		:: how == IN_RING && parks -> park_in_ring()
		:: how == IN_RING && !parks -> block_in_ring()
		fi;
		atomic {
			nr_woken = nr_woken + is_woken;
			how = NOT;
			has_rung = false;
			is_woken = false;
			parks = false
		}
	:: else -> break
	od;
	assert(nr_woken == nr_taken && !listed)
}

inline ring(old)
{
	if
	:: old == ON_FUTEX -> in_futex = false
	:: old == IN_RING -> counter = true
	:: else
	fi
}

active [NR_WAKERS] proctype waker()
{
	mtype old;

	atomic { listed -> listed = false; nr_taken++ };
#if MUTANT == 1
	old = state;
	ring(old);
	state = WOKEN
#else
	atomic { old = state; state = WOKEN };	/* [parker-b] */
	ring(old)
#endif
}

active proctype kernel()
{
	byte nr = NR_COMPLETIONS;

end:	do
	:: atomic { reading && counter ->
		    reading = false; counter = false; cqe_event = true }
	:: atomic { nr > 0 -> nr--; cqe_io = true }
	od
}
