/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * atfork: what the child of a fork() has to forget
 *
 * It has one thread, the one that forked, and a copy of memory in which all
 * others stopped at some instruction, locks held and lists half linked.  So
 * nothing of the runtime is taken up: each file that has something of it says
 * how to make it as new, and none asks what it was.  Nothing is done before
 * the fork, for which nobody waits therefore.  Memory that a dead runtime had
 * stays mapped, once a fork, shared with the parent until either writes to it.
 */
#ifndef PL_ATFORK_H
#define PL_ATFORK_H

#include "base/base.h"

struct pl__atfork {
	void			(*fn)(void);
	struct pl__atfork	*next;
};

/* Before main(). */
void pl__atfork_add(struct pl__atfork *f);

/* Once children are taken care of; -ENOMEM: they cannot be. */
int pl__atfork_install(void);

/* @forget is called in each child, before fork() returns there. */
#define PL_ATFORK_CHILD(forget)						\
	static struct pl__atfork __atfork_child = { forget, NULL };	\
	static void __attribute__((constructor)) __atfork_child_add(void) \
	{								\
		pl__atfork_add(&__atfork_child);			\
	}								\
	struct pl__atfork

#endif /* PL_ATFORK_H */
