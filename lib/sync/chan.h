/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * chan: what sends, receives and selects have in common
 *
 * Each is a *call* with one or more cases.  A call that cannot proceed lists
 * its cases with their channels.  Cases and call are memory of the waiter,
 * which waits on the call's state.  The next peer at the channel serves the
 * listed cases: it takes an item from a sender, or gives one to a receiver.  A
 * call that is listed with several channels, or may give up, is claimed by one
 * thread only: the one that changes its state.
 *
 *	waiter				peer, with the channel's lock
 *	list the cases, in their locks	take the first case off the list
 *	wait while WAITING		WAITING -> CLAIMED	[chan-a]
 *	on a deadline, an interrupt:	    failed: take the next case
 *	WAITING -> GONE		[chan-a]	move the item
 *	    unlist, return the reason	unlock
 *	    failed: wait while		state = DONE		[chan-b]
 *	    it is not DONE	[chan-b]	wake by the state's address
 *
 * Invariant: a call has one outcome, and its item moves if that is 0.  Both
 * sides change `state` from WAITING by compare-and-swap, and one of them fails;
 * otherwise an item is lost, or sent by a call that reported an error.
 *
 * CLAIMED protects the channel: the waiter, which may then free the channel,
 * must not return before the peer has unlocked it.  The store of DONE is the
 * peer's last access to the waiter's memory.  The claim takes all cases of the
 * call off this channel, so that the call need not access the channel again; a
 * select still unlists its cases from the other channels, and so does a call
 * that gave up.  If a peer has taken such a case off the list, the channel
 * counts it as leaving: a destroy leaves the free to the last of these.
 *
 * The peer takes a case off the list before it reads the call: if another
 * thread has claimed the call, its memory is not to be touched after the lock
 * is dropped.
 */
#ifndef PL_CHAN_H
#define PL_CHAN_H

#include "base/lock.h"
#include "wait/wait.h"

/* L: the channel's lock is held. */
struct pl__chan_queue {
	struct pl_chan_case	*first;		/* L: longest waiting case */
	struct pl_chan_case	*last;		/* L: last one to come */
};

/*
 * Receivers wait only while there are no items, senders only while there is no
 * room, and none waits after the close.  L: lock is held.  I: set at init, then
 * read-only.
 */
struct pl_chan {
	struct pl__lock		lock;
	bool			is_closed;	/* L */
	bool			is_destroyed;	/* L: the last one frees it */
	size_t			nr_leaving; /* L: cases that will be unlisted */
	size_t			capacity;	/* I */
	size_t			nr;		/* L: number of items */
	size_t			first;	/* L: index of the oldest item */
	uint64_t		rng;		/* L: random, for selects */
	struct pl__chan_queue	waiting[2]; /* L: cases by enum pl_chan_op */
	void			*items[];	/* L: circular buffer */
};

enum { PL__CHAN_WAITING, PL__CHAN_CLAIMED, PL__CHAN_DONE, PL__CHAN_GONE };

/*
 * I: set before it is listed.  C: the thread that has claimed it, until DONE.
 */
struct pl__chan_call {
	_Atomic uint32_t	state;
	struct pl_chan_case	*cases;		/* I */
	size_t			nr;		/* I */
	struct pl_chan_case	*chosen;	/* C */
};

/* What a case has in its reserved space.  L: of its channel. */
struct pl__chan_waiting {
	struct pl_chan_case	*next, *prev;	/* L */
	struct pl__chan_call	*call;		/* I */
	uint32_t		nth_lock, nth_turn;
	bool			is_listed;	/* L */
} __attribute__((may_alias));

_Static_assert(sizeof(struct pl__chan_waiting) <=
	       sizeof(((struct pl_chan_case *)NULL)->reserved),
	       "fits what the header reserves");
_Static_assert(sizeof(struct pl_chan_case) == 64, "programs have arrays");

static inline struct pl__chan_waiting *
pl__chan_waiting(struct pl_chan_case *c)
{
	return (struct pl__chan_waiting *)c->reserved;
}

/*
 * Carries out @c without waiting: 0, -EPIPE, or -EAGAIN.  The caller wakes
 * *@peer, unless NULL, by pl__chan_wake() after it has dropped all locks; L.
 */
int pl__chan_try(struct pl_chan_case *c, struct pl_chan_case **peer);
void pl__chan_wake(struct pl_chan_case *peer);

void pl__chan_list(struct pl_chan_case *c, struct pl__chan_call *call); /* L */
void pl__chan_unlist(struct pl_chan_case *c);	/* takes the lock */

/*
 * Waits until @call is DONE (0, and call->chosen is set), or returns the reason
 * why it gave up: then no peer can claim @call, and the caller unlists its
 * cases.
 */
int pl__chan_wait(struct pl__chan_call *call, uint64_t deadline_ns);

#endif /* PL_CHAN_H */
