/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * self: identifies the calling thread
 *
 * The only user of thread-local variables, but for base/lock.c.  A task may
 * continue on another thread, and compilers keep the address of a __thread
 * variable across the switch; so these functions return values, are never
 * inlined, and are called again after every switch.
 */
#ifndef PL_SELF_H
#define PL_SELF_H

#include "base/base.h"

struct pl__worker;
struct pl__task;

/* The worker that the calling thread is; NULL: an ordinary thread. */
struct pl__worker *pl__self(void);
void pl__self_set(struct pl__worker *w);

/* The slot in which an ordinary thread waits; NULL before its first wait. */
struct pl__task *pl__self_thread(void);

/*
 * @gone is called with @t, not NULL, when the thread ends; 0, -ENOMEM, -EAGAIN.
 */
int pl__self_set_thread(struct pl__task *t, void (*gone)(void *t));

/* Refers to the thread's values by key, so that leak checkers find them. */
void pl__self_keep(void *locals);

/*
 * Marks the calling thread as the library's own.  If its task or callback
 * forks, the thread is an ordinary one in the child; but it has no function to
 * return to, and ends like the last thread of a process, by exit(0).
 */
void pl__self_is_own(void);
void pl__self_end_orphan(void);

/*
 * Until pl__self_unguard(), calls @gone with @arg if the calling thread ends.
 * Does nothing if there is no memory for that.
 */
void pl__self_guard(void *arg, void (*gone)(void *arg));
void pl__self_unguard(void);

/* The number of the calling thread; threads are numbered as they first ask. */
uint32_t pl__self_number(void);

/* Counts tasks that the thread spawned without a signal; takes the count. */
void pl__self_add_unsignalled(uint32_t nr);
uint32_t pl__self_take_unsignalled(void);

#endif /* PL_SELF_H */
