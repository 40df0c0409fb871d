/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * failure: a ring that waits for a futex fails and becomes one of epoll; no
 * waker is missed (lib/park/parker.[ch], open_eventfd() and poll_open() in
 * lib/ring/ring_poll.c, pl__ring_wait() in ring.c).
 *
 * The owner looks at the state and sleeps, in the ring or in epoll, until it
 * was woken by each waker. At any moment the ring is found to have failed, by
 * the owner or by a thief in the ring's lock. What was written before the
 * eventfd is watched is no event here: the owner looks after that. A lost wake
 * is a deadlock.
 *
 * MUTANT 1: the owner sleeps without a look after it has opened the eventfd
 * MUTANT 2: the waker's second look comes before the state is set as well
 * MUTANT 3: the waker looks for no eventfd once it has woken the futex
 * MUTANT 4: the owner's eventfd is seen late, as without a barrier
 * MUTANT 5: a thief's poll leaves no mark for the owner
 *
 * LARGER: NR_WAKERS=4
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WAKERS	2

byte nr_set, nr_rung;		/* the state; the futex */
byte nr_heard;			/* nr_rung when the owner last looked */
bool has_failed;
bool has_eventfd;		/* as wakers see it */
bool watched, event;		/* of the eventfd, by epoll */
bool has_rung;			/* the owner must not sleep */
bool locked;			/* the ring */

inline write_eventfd()
{
	atomic { event = event || watched }
}

/* The first look may come before the state is set, as it has no barrier. */
active [NR_WAKERS] proctype waker()
{
	bool seen, again;

	again = has_eventfd;
	if
	:: seen = again; nr_set++
	:: nr_set++; seen = has_eventfd
	fi;
	if
	:: seen -> write_eventfd()
	:: else ->
		nr_rung++;
#if MUTANT == 3
		again = false;
#elif MUTANT != 2
		again = has_eventfd;	/* [failure-b] */
#endif
		if
		:: again -> write_eventfd()
		:: else
		fi
	fi
}

/* pl__uring_fail(), in the lock. */
inline fail()
{
	if
	:: !has_failed ->
		has_failed = true;
#if MUTANT != 4
		has_eventfd = true;	/* [failure-a] */
#endif
#if MUTANT == 5
		has_rung = (_pid == owner_pid);
#elif MUTANT != 1
		has_rung = true;
#endif
		watched = true
	:: else
	fi
}

byte owner_pid = 255;

active proctype thief()
{
	if
	:: true ->
		atomic { !locked -> locked = true };
		fail();
		locked = false
	:: true
	fi
}

active proctype owner()
{
	owner_pid = _pid;
	do
	:: nr_set == NR_WAKERS -> break
	:: else ->
#if MUTANT == 4
		if
		:: has_failed -> has_eventfd = true
		:: else
		fi;
#endif
		atomic { !locked -> locked = true };
		if
		:: has_rung
		:: !has_rung && has_failed ->
			event;
			event = false
		:: !has_rung && !has_failed ->
			if
			:: nr_rung != nr_heard
			:: fail()	/* found as it goes to sleep */
			fi
		fi;
		has_rung = false;
		locked = false;
		nr_heard = nr_rung
	od
}
