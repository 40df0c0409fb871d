/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* uring: rings of io_uring, for the thread that has the turn; see uring.c. */
#ifndef PL_SIM_URING_H
#define PL_SIM_URING_H

#include <stdbool.h>
#include <stdint.h>

struct io_uring;
struct pl__sim_ring;

/* ---- what a program calls ---- */

/* 0 or -errno; @entries: a power of 2. */
int pl__sim_ring_open(struct io_uring *uring, unsigned int entries,
		      unsigned int flags);
void pl__sim_ring_close(struct pl__sim_ring *r);

/* NULL: there is no such ring. */
struct pl__sim_ring *pl__sim_ring_of(const struct io_uring *uring);
struct pl__sim_ring *pl__sim_ring_of_fd(int fd);

/* Takes @most requests; returns how many it took, or -EAGAIN: no memory. */
int pl__sim_ring_enter(struct pl__sim_ring *r, unsigned int most);

/* Until there is a completion; false: until the deadline. */
bool pl__sim_ring_wait(struct pl__sim_ring *r, uint64_t until_ns);

/* Ends the request that has @data: 0 or -ENOENT. */
int pl__sim_ring_cancel(struct pl__sim_ring *r, uint64_t data);

/* What /proc/self/fdinfo has of a ring, opened; -1: it is none, or errno. */
int pl__sim_uring_fdinfo(int fd);

/*
 * io_uring_setup(), which may be asked and has -EINVAL for a ring, enter() and
 * register(), which cancels: -errno.
 */
long pl__sim_uring_setup(void);
long pl__sim_uring_enter(int fd, unsigned int most);
long pl__sim_uring_register(int fd, unsigned int op, const void *arg);

/* ---- what the simulation calls ---- */

/* Before it begins. */
void pl__sim_uring_begin(void);

/* Carries on what can go on, if anything may have changed. */
void pl__sim_uring_run(void);

/* The calling thread is in the kernel for something else. */
void pl__sim_uring_pass(void);

/* When some request goes on by itself, or PL__SIM_FOREVER. */
uint64_t pl__sim_uring_deadline(void);

/* Descriptors of rings are readable where these have completions. */
void pl__sim_uring_show(void);

/* A descriptor is about to be closed: requests keep its file. */
void pl__sim_uring_closes(int fd);

/* Ends at most @nr waits for a futex; returns how many. */
int pl__sim_uring_wake(const void *word, int nr);

/* The requests of the calling thread end with it. */
void pl__sim_uring_thread_ends(void);

#endif /* PL_SIM_URING_H */
