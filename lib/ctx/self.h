/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * self: who the calling thread is
 *
 * The only user of thread-local variables.  A task may wake on another
 * thread, and compilers keep the address of a __thread variable across the
 * switch; so these return values, are never inlined, and are called again
 * after every switch.
 */
#ifndef PL_SELF_H
#define PL_SELF_H

#include "base/base.h"

struct pl__worker;
struct pl__task;

/* The worker that the calling thread is; NULL elsewhere. */
struct pl__worker *pl__self(void);
void pl__self_set(struct pl__worker *w);

/* What an ordinary thread waits as; NULL before it first waited. */
struct pl__task *pl__self_thread(void);

/* @gone is called with @t, not NULL, when the thread ends; -ENOMEM, -EAGAIN. */
int pl__self_set_thread(struct pl__task *t, void (*gone)(void *t));

/* What it keeps by key, so that leak checkers find that: slots they do not. */
void pl__self_keep(void *locals);

/*
 * The calling thread is the library's own.  In the child of a fork() that its
 * task, or its callback, made, it is an ordinary thread; but it has nowhere to
 * return to, and ends as the last thread of a process does, by exit(0).
 */
void pl__self_is_own(void);
void pl__self_end_orphan(void);

/*
 * Until pl__self_unguard(), @gone is called with @arg should the calling
 * thread end.  Without memory for it, it is not.
 */
void pl__self_guard(void *arg, void (*gone)(void *arg));
void pl__self_unguard(void);

/* A number of the calling thread's own, counted up as threads first ask. */
uint32_t pl__self_number(void);

/* Tasks it spawned without a signal: count them; take the count. */
void pl__self_add_unsignalled(uint32_t nr);
uint32_t pl__self_take_unsignalled(void);

#endif /* PL_SELF_H */
