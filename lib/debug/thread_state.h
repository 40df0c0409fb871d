/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * thread_state: whether a thread computes, or in which call it is blocked
 *
 * Linux tells it in /proc, as far as the reader may trace the thread.
 */
#ifndef PL_THREAD_STATE_H
#define PL_THREAD_STATE_H

#include <stddef.h>
#include <stdint.h>

#define PL__THREAD_NO_CALL	(-1L)	/* such as a page fault */
#define PL__THREAD_SOME_CALL	(-2L)	/* which one cannot be read */

enum pl__thread_is {
	PL__THREAD_UNKNOWN,	/* nothing can be read */
	PL__THREAD_COMPUTES,	/* or waits for a processor */
	PL__THREAD_BLOCKED,
	PL__THREAD_STOPPED,	/* by a signal or a tracer */
};

struct pl__thread_state {
	enum pl__thread_is	is;
	long			nr;	/* of the system call, or as above */
	uint64_t		arg;	/* its first argument */
	char			where[32]; /* function of the kernel, or "" */
};

/* @pid 0: a thread of this process.  Takes a descriptor for the while. */
void pl__thread_look(struct pl__thread_state *s, int pid, int tid);

/* "computes", "blocked in read(2), fd 7" and so on; "" if unknown. */
void pl__thread_say(const struct pl__thread_state *s, char *to, size_t size);

#endif /* PL_THREAD_STATE_H */
