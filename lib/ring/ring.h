/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * ring: what one worker waits for in the kernel
 *
 * Requests are gathered and submitted together when the owner polls or waits.
 * While that is held up, others poll in its place.  The lock says whose the
 * ring is right now: the owner's while it waits, too, so that nobody helps whom
 * a completion wakes anyway.  Knows done(), not tasks.
 *
 *	owner, who is to sleep		helper
 *	be found by wakers		(has the lock)
 *	lock				reap what the bell ended
 *	if (has_rung)	[rung-a]	has_rung = true		[rung-b]
 *		do not sleep		unlock
 *
 * The lock orders them.  What the owner reaps by itself, it looks at what that
 * stands for before it sleeps again; so only others leave has_rung set.
 */
#ifndef PL_RING_H
#define PL_RING_H

#include "ring/sync_op.h"
#include "base/list.h"
#include "base/lock.h"
#include "ds/mpsc.h"
#include "park/parker.h"

#include "parklot.h"

struct io_uring_sqe;
struct pl__ring;

/*
 * Embedded by whoever wants one; must stay until done() was called.  L: under
 * the lock of its ring.
 */
struct pl__ring_req {
	/* L: called once, with the result. */
	void			(*done)(struct pl__ring_req *req, int res);
	bool			got_eagain;	/* I: was just tried in vain */
	struct pl__ring		*ring;		/* I: where it was added */
	const struct io_uring_sqe *sqe;		/* I: what it asks for */
	struct pl__list		by_fd;		/* L: in its bucket */
	int			fd;		/* I: -1: of no descriptor */
	uint64_t		nr;		/* I: added before it */
	int			verdict;	/* L: res if cancelled, or 0 */
	struct pl__link		link;		/* in ring->cancels */
	_Atomic uint32_t	pending;	/* completions to come */
	int			res;		/* L: of the request itself */
	bool			is_over;	/* L: res is set */
	struct pl__list		queue;		/* L: its kind's */

	/* Of ring_poll.c. */
	struct pl__sync_op	sync_op;	/* L */
	uint32_t		round;		/* L: in which it was armed */
	uint32_t		armed;		/* L: for what */
	uint32_t		nr_eagain;	/* L: events of no use */
};

/*
 * enum pl_io as wanted; NONE: io_uring, unless it is not to be had for good.
 * enum pl_wait as wanted; NONE: what is best; PARK: the caller can.
 * -ENOSYS, -EPERM, -ENOMEM, ...: what io_uring_setup() said; -EOPNOTSUPP.
 */
int pl__ring_open(struct pl__ring **out, enum pl_io want, enum pl_wait way);
void pl__ring_close(struct pl__ring *r);

/*
 * Owner: queues @sqe, which stays as long as @req, whose done and got_eagain
 * are set; -EAGAIN if the kernel takes no more now.  What was in vain, of a
 * socket, is tried when there is an event.  Files may block the caller, where
 * there is no io_uring.
 */
int pl__ring_add(struct pl__ring *r, struct pl__ring_req *req,
		 const struct io_uring_sqe *sqe);

/*
 * Anybody who knows that @req was added and its done() was not seen: asks its
 * ring to cancel it.  done() comes all the same, and only after this request
 * can be mistaken for no later one.
 */
void pl__ring_cancel(struct pl__ring_req *req);

/* A descriptor was closed; @ring's owner is told. */
struct pl__ring_closed {
	struct pl__link		link;
	struct pl__ring		*ring;
	int			fd;
	uint64_t		before;
};

/*
 * Anybody: whether requests on @fd may be in flight, and how many were added
 * to the ring so far.
 */
bool pl__ring_may_have(struct pl__ring *r, int fd);
uint64_t pl__ring_nr_added(struct pl__ring *r);

/*
 * Anybody: ends all requests on @m->fd: with -EBADF those before which fewer
 * than @m->before were added; the others with -ERESTART, as they may be on
 * another file.  @m was allocated, and is freed.
 */
void pl__ring_tell(struct pl__ring_closed *m);

/* Owner: submits what was added, calls done() of what is complete: how many. */
uint32_t pl__ring_poll(struct pl__ring *r);

/*
 * Anybody: the same for an owner who is held up, and sees to it that messages
 * to it make pl__ring_fd() readable.  False, and nothing: somebody is at it.
 */
bool pl__ring_poll_for_owner(struct pl__ring *r);

/* Readable while there is something to be polled. */
int pl__ring_fd(const struct pl__ring *r);

/* The same, but submits only if completions cannot be had otherwise. */
uint32_t pl__ring_reap(struct pl__ring *r);

/*
 * Owner: submits, and sleeps until there is something to be polled or the
 * bell was rung since the caller last looked at what that stands for.
 * Calls no done() unless the ring is full.
 */
void pl__ring_wait(struct pl__ring *r, uint64_t deadline_ns);

/*
 * Owner: the same for who sleeps elsewhere: submits, and says what becomes
 * readable in the ring's stead, and when to come back at the latest.  -1: do
 * not sleep.  After the sleep comes pl__ring_polled(), with whether that was
 * readable, or it is late.
 */
int pl__ring_pollfd(struct pl__ring *r, uint64_t *deadline_ns);
void pl__ring_polled(struct pl__ring *r, bool is_ready);

/* Requests are in flight, so that a sleeper must sleep in the ring. */
bool pl__ring_is_busy(const struct pl__ring *r);

enum pl_io pl__ring_kind(const struct pl__ring *r);
enum pl_wait pl__ring_way(const struct pl__ring *r);

/* Rung by others, it ends pl__ring_wait(). */
struct pl__bell *pl__ring_bell(struct pl__ring *r);

struct pl__ring_stat {
	uint64_t	submitted;
	uint64_t	completed;
	uint64_t	enters;
};

void pl__ring_stat(const struct pl__ring *r, struct pl__ring_stat *st);

/* ---- for the kinds of rings ---- */

/* All but close() with the lock. */
struct pl__ring_ops {
	void (*close)(struct pl__ring *r);
	int (*add)(struct pl__ring *r, struct pl__ring_req *req);
	uint32_t (*poll)(struct pl__ring *r);
	uint32_t (*reap)(struct pl__ring *r);
	uint32_t (*poll_for_owner)(struct pl__ring *r);
	void (*wait)(struct pl__ring *r, uint64_t deadline_ns);
	int (*pollfd)(struct pl__ring *r, uint64_t *deadline_ns);
	void (*polled)(struct pl__ring *r, bool is_ready);
};

/* Requests by descriptor, oldest first; zero-filled is empty. */
#define PL__RING_BUCKETS	1024	/* a power of 2 */

struct pl__ring_bucket {
	struct pl__list		reqs;		/* L */
	_Atomic uint32_t	nr;		/* L writes */
};

/* Each begins with this.  L: under its lock.  A: atomic.  I: init only. */
struct pl__ring {
	const struct pl__ring_ops *ops;		/* I */
	enum pl_io		kind;		/* I */
	enum pl_wait		way;		/* I */
	int			fd;		/* I: readable: poll */
	struct pl__bell		bell;		/* A */
	struct pl__lock		lock;
	bool			has_rung;	/* L: the bell; not slept */
	struct pl__inbox	cancels;	/* A: requests to cancel */
	struct pl__inbox	closes;		/* A: struct pl__ring_closed */
	_Atomic uint64_t	nr_added;	/* L writes, as the next two */
	_Atomic uint64_t	nr_done;
	_Atomic uint64_t	nr_enters;
	struct pl__ring_bucket	by_fd[PL__RING_BUCKETS];
};

static inline struct pl__ring_bucket *pl__ring_bucket(struct pl__ring *r,
						      int fd)
{
	return &r->by_fd[(uint32_t)fd % PL__RING_BUCKETS];
}

/* What @req asked for is over, if its memory may still be needed. */
static inline void pl__ring_forget(struct pl__ring_req *req)
{
	counter_add(&pl__ring_bucket(req->ring, req->fd)->nr, (uint32_t)-1);
	list_del_init(&req->by_fd);
}

/* The next one that @m is to end, marked so; NULL: no more. */
struct pl__ring_req *pl__ring_next_closed(const struct pl__ring_closed *m);

/* One of the completions of @req has come: how many requests that ends. */
uint32_t pl__ring_finish(struct pl__ring *r, struct pl__ring_req *req);

/* ring_uring.c */
int pl__ring_uring_open(struct pl__ring **out, enum pl_wait way);
bool pl__ring_uring_has_futex(void);

/* ring_poll.c */
int pl__ring_poll_open(struct pl__ring **out, enum pl_wait way);

#endif /* PL_RING_H */
