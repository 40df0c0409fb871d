/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * ring: what one worker waits for in the kernel
 *
 * Requests are gathered, and submitted together when the owner polls or waits.
 * While the owner is stalled, thieves poll in its place.  The ring's lock says
 * which thread uses the ring; the owner keeps it while it waits, so that no
 * thief polls for an owner that a completion wakes anyway.  The ring knows
 * done(), not tasks.
 *
 *	owner that is about to sleep	thief
 *	be listed for wakers		(has the lock)
 *	lock				reap what the bell completed
 *	if (has_rung)	[rung-a]	has_rung = true		[rung-b]
 *		do not sleep		unlock
 *
 * Invariant: the owner does not sleep after a wakeup that a thief has reaped.
 * The lock orders both accesses; otherwise the thief consumes the bell's
 * completion, and the owner sleeps although it was woken.  When the owner
 * itself reaps the bell, it checks what the bell stands for before it sleeps
 * again; so has_rung stays set only by a thief.
 */
#ifndef PL_RING_H
#define PL_RING_H

#include "base/base.h"
#include "base/list.h"
#include "base/lock.h"
#include "ds/mpsc.h"
#include "park/parker.h"

#include "parklot.h"

/*
 * attempt_hint: whether a nonblocking attempt pays, learnt from earlier ones
 *
 * After each attempt that got EAGAIN more requests skip the attempt before the
 * next one, up to 16.  After an attempt that succeeded none skips it.  So a
 * descriptor that never succeeds costs 1 attempt in 17 requests, and one that
 * mostly does is hardly slowed by a single EAGAIN.  The number of skips is
 * even, so that a descriptor which succeeds every second time is found.
 */

#define PL__ATTEMPT_SKIP_MAX	16	/* a power of 2 */

/* Used by one thread.  Zero-filled it allows the first attempt. */
struct pl__attempt_hint {
	uint8_t			nr_pass; /* skips after the last EAGAIN */
	uint8_t			nr_left; /* skips of nr_pass still to come */
};

/* False: this request skips the attempt. */
static inline bool pl__attempt_hint_allows(struct pl__attempt_hint *g)
{
	if (!g->nr_left)
		return true;
	g->nr_left--;
	return false;
}

/* Records the result of an attempt. */
static inline void pl__attempt_hint_learn(struct pl__attempt_hint *g,
					  bool got_eagain)
{
	if (!got_eagain)
		g->nr_pass = 0;
	else if (g->nr_pass < PL__ATTEMPT_SKIP_MAX)
		g->nr_pass = g->nr_pass ? (uint8_t)(2 * g->nr_pass) : 2;
	g->nr_left = g->nr_pass;
}

/* The next attempt will probably succeed. */
static inline void pl__attempt_hint_reset(struct pl__attempt_hint *g)
{
	g->nr_left = 0;
}

/*
 * sync_op: carries out an SQE by the system call of the same name
 *
 * For kernels without io_uring.  The call is tried without blocking, and again
 * when the descriptor is ready, so that several requests may wait for one
 * descriptor.  Only calls on files block, as files are always ready.  The mode
 * of the descriptor is left alone as far as possible: MSG_DONTWAIT for sockets,
 * RWF_NOWAIT for everything else, and where the kernel does not know that,
 * poll(2) first.  There is no such flag for accept and connect; connect sets
 * the mode back at once.
 */

struct io_uring_sqe;

enum pl__sync_op_kind {
	PL__SYNC_OP_FILE,	/* files: always ready, but calls block */
	PL__SYNC_OP_SOCKET,
	PL__SYNC_OP_OTHER,	/* pipes, terminals, eventfds ... */
};

struct pl__sync_op {
	const struct io_uring_sqe *sqe;
	enum pl__sync_op_kind	kind;
	/* poll events to wait for; 0: none tells */
	uint32_t		events;
	int			done;	/* bytes done so far, for MSG_WAITALL */
};

/* @sqe stays as long as @c. */
void pl__sync_op_init(struct pl__sync_op *c, const struct io_uring_sqe *sqe);

/*
 * Tries the call; false: *@res is its result; true: try again after c->events.
 */
bool pl__sync_op_would_block(struct pl__sync_op *c, int *res);

struct io_uring_sqe;
struct pl__ring;

/* What a request is in a chain of linked ones. */
#define PL__LINKED_NEXT		1	/* another is begun after it */
#define PL__LINKED_PREV		2	/* it is begun after another */
#define PL__LINKED_WAITS	4	/* that one is not over */

/*
 * A request, part of the submitter's memory; it stays until done() was called.
 * L: the lock of its ring is held.  I: set when it is added.
 */
struct pl__ring_req {
	/* L: called once, with the result. */
	void			(*done)(struct pl__ring_req *req, int res);
	bool			got_eagain; /* I: an attempt just got EAGAIN */
	struct pl__ring		*ring;	/* I: ring that it was added to */
	const struct io_uring_sqe *sqe;		/* I: the operation */
	struct pl__list		by_fd;		/* L: in its bucket */
	int			fd;		/* I: its descriptor, or -1 */
	uint64_t		nr;	/* I: number of requests before it */
	int			verdict; /* L: result if cancelled, or 0 */
	struct pl__link		link;		/* in ring->cancels */
	_Atomic uint32_t	pending; /* number of completions to come */
	int			res;		/* L: its own result */
	bool			is_over;	/* L: res is set */
	/* L: res is the first completion's, and not the last */
	bool			has_first;
	/* L: io_uring has it still, and the ring became one of epoll */
	bool			is_left;
	/* L: the kernel has begun it: a cancel has found it */
	bool			was_found;
	uint8_t			linked;	/* L: PL__LINKED_*; 0: a lone request */
	/* I: the request after it, if PL__LINKED_NEXT is set */
	struct pl__ring_req	*next;
	/* L: count of the thief that submitted it; NULL: the owner did */
	_Atomic uint32_t	*submitter;
	struct pl__list		queue;	/* L: in a list of its ring's kind */

	/* Used by ring_poll.c. */
	struct pl__sync_op	sync_op;	/* L */
	uint32_t		round;	/* L: round in which it was armed */
	uint32_t		armed;	/* L: events that it was armed for */
	/* L: events after which it got EAGAIN */
	uint32_t		nr_eagain;
};

/*
 * Opens a ring.  @want: the configured enum pl_io; NONE: io_uring, or epoll
 * where the kernel has no io_uring.  @way: the configured enum pl_wait; NONE:
 * the best there is; PARK: the caller can park in the device.  Fails with what
 * io_uring_setup() returned (-ENOSYS, -EPERM, -ENOMEM, ...), or -EOPNOTSUPP.
 */
int pl__ring_open(struct pl__ring **out, enum pl_io want, enum pl_wait way);
void pl__ring_close(struct pl__ring *r);

/*
 * Owner: queues @sqe, which stays as long as @req; the caller has set done and
 * got_eagain of @req.  -EAGAIN: the kernel takes no more now.  A socket request
 * that got EAGAIN is tried again after an event.  A request on a file may block
 * the caller where there is no io_uring.
 *
 * A close of @fd ends it: the SQE's descriptor, or with io_uring another one,
 * on behalf of which it waits.  -ERESTART: it is no ring of io_uring any more.
 */
int pl__ring_add_for(struct pl__ring *r, struct pl__ring_req *req,
		     const struct io_uring_sqe *sqe, int fd);

/*
 * Owner: queues a chain of @nr requests, which the kernel begins one after the
 * other: @first, its next, and so on; all stay until done() of each was called.
 * The caller has set done, got_eagain, sqe, which stays as well, and next; the
 * flags of an SQE may have IOSQE_IO_HARDLINK.  -EAGAIN: the kernel takes no
 * more now; -EOPNOTSUPP: it is no ring of io_uring.
 *
 * A request ends with -EAGAIN if the kernel had memory for a part of the chain
 * only, and nothing was done of it.
 */
int pl__ring_add_linked(struct pl__ring *r, struct pl__ring_req *first,
			uint32_t nr);

/*
 * Any thread: asks the ring of @req to cancel it; @req was added, and the
 * caller has not seen its done().  done() is called all the same, and not
 * before the cancel can hit no later request at the same address.
 */
void pl__ring_cancel(struct pl__ring_req *req);

/* A close message: a descriptor was closed, sent to the ring's owner. */
struct pl__ring_closed {
	struct pl__link		link;
	struct pl__ring		*ring;
	int			fd;
	uint64_t		before;
};

/*
 * Any thread: requests on @fd may be in flight in @r; and the number of
 * requests that were added to @r so far.
 */
bool pl__ring_may_have(struct pl__ring *r, int fd);
uint64_t pl__ring_nr_added(struct pl__ring *r);

/*
 * Any thread: ends all requests on @m->fd.  A request that was added after
 * fewer than @m->before others ends with -EBADF; a later one ends with
 * -ERESTART, as it may be on another file.  The ring frees @m, which was
 * allocated.
 */
void pl__ring_tell(struct pl__ring_closed *m);

/* Owner: submits requests, calls done() for completions; returns how many. */
uint32_t pl__ring_poll(struct pl__ring *r);

/*
 * Any thread: polls for a stalled owner, and arms the bell, so that messages to
 * the owner make pl__ring_fd() readable.  False, with nothing done: another
 * thread uses the ring.  *@nr_submitted is raised by the number of requests
 * that the caller has submitted, and lowered as each of these ends: the kernel
 * would cancel them if the caller's thread ended.
 */
bool pl__ring_poll_for_owner(struct pl__ring *r,
			     _Atomic uint32_t *nr_submitted);

/* A descriptor that is readable while the ring has completions. */
int pl__ring_fd(const struct pl__ring *r);

/* Owner: as pl__ring_poll(), but submits only if completions need that. */
uint32_t pl__ring_reap(struct pl__ring *r);

/*
 * Owner: submits, and sleeps until there is a completion, or the bell was rung
 * since the caller last checked what the bell stands for.  Calls done() only if
 * the ring is full.
 */
void pl__ring_wait(struct pl__ring *r, uint64_t deadline_ns);

/*
 * Owner: submits, and sleeps elsewhere.  Returns the descriptor that becomes
 * readable in the ring's stead, or -1: do not sleep; lowers @deadline_ns to
 * when the ring has to be polled at the latest.  After the sleep the owner
 * calls pl__ring_polled(), with whether the descriptor was readable or the
 * deadline has passed.
 */
int pl__ring_pollfd(struct pl__ring *r, uint64_t *deadline_ns);
void pl__ring_polled(struct pl__ring *r, bool is_ready);

/* Requests are in flight: the owner has to sleep in the ring. */
bool pl__ring_is_busy(const struct pl__ring *r);

enum pl_io pl__ring_kind(const struct pl__ring *r);
enum pl_wait pl__ring_way(const struct pl__ring *r);

/*
 * Any thread: io_uring can be used no more in this process, and all rings
 * become of epoll at their next use.
 */
extern _Atomic bool pl__uring_failed;

static inline bool pl__uring_has_failed(void)
{
	return unlikely(load_relaxed(&pl__uring_failed));
}

/* The bell that ends pl__ring_wait() when another thread rings it. */
struct pl__bell *pl__ring_bell(struct pl__ring *r);

struct pl__ring_stat {
	uint64_t	submitted;
	uint64_t	completed;
	uint64_t	enters;
};

void pl__ring_stat(const struct pl__ring *r, struct pl__ring_stat *st);

/* ---- for the kinds of rings ---- */

/*
 * Operations of one kind of ring; all but close() are called with the lock
 * held.
 */
struct pl__ring_ops {
	void (*close)(struct pl__ring *r);
	int (*add)(struct pl__ring *r, struct pl__ring_req *req);
	/* NULL: it has no linked requests */
	int (*add_linked)(struct pl__ring *r, struct pl__ring_req *first,
			  uint32_t nr);
	uint32_t (*poll)(struct pl__ring *r);
	uint32_t (*reap)(struct pl__ring *r);
	uint32_t (*poll_for_owner)(struct pl__ring *r);
	void (*wait)(struct pl__ring *r, uint64_t deadline_ns);
	int (*pollfd)(struct pl__ring *r, uint64_t *deadline_ns);
	void (*polled)(struct pl__ring *r, bool is_ready);
	/*
	 * has_failed is set: the ring becomes one of another kind.  Calls no
	 * done().
	 */
	void (*fail)(struct pl__ring *r);
};

/* Requests by descriptor, oldest first; a zero-filled bucket is empty. */
#define PL__RING_BUCKETS	1024	/* a power of 2 */

struct pl__ring_bucket {
	struct pl__list		reqs;		/* L */
	_Atomic uint32_t	nr;		/* L writes: requests in reqs */
};

/*
 * First member of each kind's ring.  L: its lock is held.  A: atomic.  I: set
 * at init, then read-only.
 */
struct pl__ring {
	const struct pl__ring_ops *ops;		/* I */
	_Atomic uint32_t	kind;	/* L writes: enum pl_io */
	_Atomic uint32_t	way;	/* L writes: enum pl_wait */
	/* L writes: readable while it has completions */
	_Atomic int		fd;
	struct pl__bell		bell;		/* A */
	struct pl__lock		lock;
	/* L: the bell rang; owner must not sleep */
	bool			has_rung;
	bool			has_failed; /* L: fail() is due */
	/* L: count of the thief that polls for the owner, or NULL */
	_Atomic uint32_t	*thief;
	struct pl__inbox	cancels;	/* A: requests to cancel */
	struct pl__inbox	closes;		/* A: struct pl__ring_closed */
	_Atomic uint64_t	nr_added;	/* L writes: requests */
	_Atomic uint64_t	nr_done;	/* L writes: completed */
	_Atomic uint64_t	nr_enters;	/* L writes: system calls */
	struct pl__ring_bucket	by_fd[PL__RING_BUCKETS];
};

static inline struct pl__ring_bucket *pl__ring_bucket(struct pl__ring *r,
						      int fd)
{
	return &r->by_fd[(uint32_t)fd % PL__RING_BUCKETS];
}

/*
 * Removes @req, which has its result, from its bucket; its memory may stay in
 * use.
 */
static inline void pl__ring_unlist_req(struct pl__ring_req *req)
{
	counter_add(&pl__ring_bucket(req->ring, req->fd)->nr, (uint32_t)-1);
	list_del_init(&req->by_fd);
}

/* The next request that @m ends, with its verdict set; NULL: no more. */
struct pl__ring_req *pl__ring_next_closed(const struct pl__ring_closed *m);

/*
 * A completion of @req has come; returns how many requests have ended, 0 or 1.
 */
uint32_t pl__ring_finish(struct pl__ring *r, struct pl__ring_req *req);

/* ring_uring.c */
int pl__ring_uring_open(struct pl__ring **out, enum pl_wait way);
bool pl__ring_uring_has_futex(void);

/* ring_poll.c */
int pl__ring_poll_open(struct pl__ring **out, enum pl_wait way);

/*
 * request: I/O that one caller waits for; it lies on that caller's stack
 *
 * Dumps and gdb find it from the word on which the caller waits.
 */

struct pl__task;

struct pl__request {
	struct pl__ring_req	req;
	/* waits alone; NULL: the caller waits on the word */
	struct pl__task		*waiter;
	_Atomic uint32_t	done;
	int			res;
	uint64_t		done_ns;	/* ns; 0: not measured */
};

#endif /* PL_RING_H */
