/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * atfork: resets the library's state in the child of a fork()
 *
 * The child has one thread, the one that forked, and a copy of memory in which
 * all other threads stopped at some instruction, with locks held and lists half
 * linked.  So the child uses nothing of the parent's runtime: each file with
 * state has a function that makes the state as new, without reading it.
 * Nothing runs before the fork, so no thread waits for it.  The memory of the
 * parent's runtime stays mapped, once for each fork, and shared with the parent
 * until either writes to it.
 */
#ifndef PL_ATFORK_H
#define PL_ATFORK_H

#include "base/base.h"

struct pl__atfork {
	void			(*fn)(void);
	struct pl__atfork	*next;
};

/* Called before main(). */
void pl__atfork_add(struct pl__atfork *f);

/* Makes sure that the functions will be called; 0 or -ENOMEM. */
int pl__atfork_install(void);

/*
 * For those functions: zeroes a table.  Its pages are given back, as a write to
 * each, or a read of those that nothing was written to, would be a page fault.
 */
void pl__atfork_zero(void *table, size_t size);

/* Each child calls @noun_atfork_child before fork() returns there. */
#define PL_ATFORK_CHILD(noun_atfork_child)				\
	static struct pl__atfork noun_atfork_child##_entry = {		\
		noun_atfork_child, NULL					\
	};								\
	static void __attribute__((constructor))			\
	noun_atfork_child##_add(void)					\
	{								\
		pl__atfork_add(&noun_atfork_child##_entry);		\
	}								\
	struct pl__atfork

#endif /* PL_ATFORK_H */
