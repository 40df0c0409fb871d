/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * chan: what sends, receives and selects have in common
 *
 * Each is a *call* with one or more cases.  What cannot be done at once is
 * listed with its channel, case by case; a case is memory of the caller's, and
 * so is the call, whose state they wait on.  Whoever comes to the channel next
 * deals with those that are listed: takes an item from a sender, puts one into
 * the hands of a receiver.  A call that is listed in several places, or may
 * give up, is had by one only: who moves its state.
 *
 *	waiter				peer, with the channel's lock
 *	list the cases, in their locks	take the first case off the list
 *	wait while WAITING		WAITING -> CLAIMED	[chan-a]
 *	on a deadline, an interrupt:	    it is not: take the next one
 *	WAITING -> GONE		[chan-a]	move the item
 *	    unlist, say why		unlock
 *	    it was not: wait while	state = DONE		[chan-b]
 *	    it is not DONE	[chan-b]	wake by the state's address
 *
 * So one outcome is reported, and the item moves if it is 0.  CLAIMED is there
 * for the channel's sake: not before the peer has unlocked it may the waiter
 * return, who may then free it.  DONE is the last thing that touches the
 * waiter's memory.  The claim takes all of the call's cases off this channel,
 * so that a call that was let go need not touch it; the select goes on to
 * unlist the cases that it has with others.
 *
 * A case is off the list before its call is looked at: if that is had by
 * somebody else, its memory is not ours from the moment the lock is dropped.
 */
#ifndef PL_CHAN_H
#define PL_CHAN_H

#include "base/lock.h"
#include "wait/wait.h"

/* L: the channel's lock held. */
struct pl__chan_queue {
	struct pl_chan_case	*first;		/* L: longest waiting */
	struct pl_chan_case	*last;		/* L */
};

/*
 * Receivers wait only while there are no items, senders only while there is
 * no room, nobody once it is closed.
 */
struct pl_chan {
	struct pl__lock		lock;
	bool			is_closed;	/* L */
	size_t			capacity;	/* I */
	size_t			nr;		/* L: of items */
	size_t			first;		/* L: the oldest of items */
	uint64_t		rng;		/* L: whose turn it is */
	struct pl__chan_queue	waiting[2];	/* L: by enum pl_chan_op */
	void			*items[];	/* L: a ring */
};

enum { PL__CHAN_WAITING, PL__CHAN_CLAIMED, PL__CHAN_DONE, PL__CHAN_GONE };

/* I: set before it is listed.  C: who has claimed it, until it is DONE. */
struct pl__chan_call {
	_Atomic uint32_t	state;
	struct pl_chan_case	*cases;		/* I */
	size_t			nr;		/* I */
	struct pl_chan_case	*chosen;	/* C */
};

/*
 * Does @c if that can be done at once: 0, -EPIPE, or -EAGAIN.  *@peer, unless
 * NULL, is to be let go once all locks are dropped; L.
 */
int pl__chan_try(struct pl_chan_case *c, struct pl_chan_case **peer);
void pl__chan_let_go(struct pl_chan_case *peer);

void pl__chan_list(struct pl_chan_case *c, struct pl__chan_call *call); /* L */
void pl__chan_unlist(struct pl_chan_case *c);	/* takes the lock */

/*
 * Waits until @call is done (0, and one was chosen) or may not wait any longer:
 * then it is nobody's, and its cases are to be unlisted.
 */
int pl__chan_wait(struct pl__chan_call *call, uint64_t deadline_ns);

#endif /* PL_CHAN_H */
