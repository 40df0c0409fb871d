/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* uring_op: a request of io_uring, and what it does. */
#ifndef PL_SIM_URING_OP_H
#define PL_SIM_URING_OP_H

#include "sim/sim.h"

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#define PL__SIM_FUTEX_WAIT	51	/* Linux 6.7; headers may be older */
#define PL__SIM_LINKED	(IOSQE_IO_LINK | IOSQE_IO_HARDLINK)

struct pl__sim_op {
	struct pl__sim_op	*next;		/* in a list of its ring */
	struct pl__sim_op	*linked;	/* begins when this has ended */
	struct pl__sim_op	*timeout;	/* linked to it, or NULL */
	struct pl__sim_op	*timed;		/* that it ends, or NULL */
	struct pl__sim_ring	*ring;
	struct pl__sim_thread	*submitter;
	struct io_uring_sqe	sqe;
	int			fd;	/* the program's, until its close */
	bool			is_fd_own;
	bool			has_begun;	/* connect() was called */
	/* It can go on as soon as its thread is in the kernel. */
	bool			is_ready;
	uint64_t		ready_nr;	/* since when, in order */
	uint64_t		due_ns;		/* it goes on by itself */
	int			done;		/* bytes, of MSG_WAITALL */
	bool			is_over;	/* res is its result */
	int			res;
};

struct pl__sim_ops {
	struct pl__sim_op	*first, **end;
};

struct pl__sim_ring {
	struct pl__sim_ring	*next;
	struct io_uring		*uring;
	struct pl__sim_ops	waiting;
	struct pl__sim_ops	overflown;	/* the queue has no room */
	bool			is_readable;	/* its descriptor */
	unsigned int		sq_head, sq_flags, sq_mask, sq_entries;
	unsigned int		cq_head, cq_tail, cq_mask, cq_entries;
};

extern struct pl__sim_ring *pl__sim_rings;
/* When the first request goes on by itself, or PL__SIM_FOREVER. */
extern uint64_t pl__sim_first_due_ns;

void pl__sim_ops_init(struct pl__sim_ops *ops);
void pl__sim_op_free(struct pl__sim_op *op);

/* One that has begun, by its data, or NULL. */
struct pl__sim_op *pl__sim_op_of(const struct pl__sim_ring *r, uint64_t data);

/* It goes on then, or ends, with @res. */
void pl__sim_op_set_due(struct pl__sim_op *op, uint64_t ns);
void pl__sim_op_end_at(struct pl__sim_op *op, int res, uint64_t ns);
/* It ends, or goes on waiting. */
void pl__sim_op_try(struct pl__sim_op *op);

/* Takes @most requests; returns how many it took, or -EAGAIN: no memory. */
int pl__sim_submit(struct pl__sim_ring *r, unsigned int most);
bool pl__sim_has_completions(const struct pl__sim_ring *r);
/* Those for which the queue had no room. */
void pl__sim_post_overflown(struct pl__sim_ring *r);

/* Whether it is known, and has no flags that are not. */
bool pl__sim_op_is_valid(const struct io_uring_sqe *sqe);
bool pl__sim_op_is_known(unsigned int opcode);

bool pl__sim_op_has_file(const struct io_uring_sqe *sqe);
bool pl__sim_op_is_of_socket(const struct io_uring_sqe *sqe);

/* For which its file is polled. */
short pl__sim_op_events(const struct io_uring_sqe *sqe);
bool pl__sim_is_open(int fd);

/* Its result, or -errno; -EAGAIN: it waits, if it may. */
int pl__sim_op_attempt(struct pl__sim_op *op);
bool pl__sim_op_may_wait(const struct pl__sim_op *op);

/* With @res it stops its chain, unless the link is a hard one. */
bool pl__sim_op_has_failed(const struct io_uring_sqe *sqe, int res);

static inline uint64_t pl__sim_kernel_ns(const struct __kernel_timespec *ts)
{
	return (uint64_t)ts->tv_sec * PL__SIM_NS_PER_SEC +
	       (uint64_t)ts->tv_nsec;
}

static inline void *pl__sim_ptr(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

#endif /* PL_SIM_URING_OP_H */
