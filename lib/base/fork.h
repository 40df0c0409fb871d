/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * fork: what the child of a fork() has to forget
 *
 * It has one thread, the one that forked, and a copy of memory in which all
 * others stopped at some instruction, locks held and lists half linked.  So
 * nothing of the runtime is taken up: each file that has something of it says
 * how to make it as new, and none asks what it was.  Nothing is done before
 * the fork, for which nobody waits therefore.  Memory that a dead runtime had
 * stays mapped, once a fork, shared with the parent until either writes to it.
 */
#ifndef PL_FORK_H
#define PL_FORK_H

#include "base/base.h"

struct pl__forget {
	void			(*fn)(void);
	struct pl__forget	*next;
};

/* Before main(). */
void pl__fork_add(struct pl__forget *f);

/* Once children are taken care of; -ENOMEM: they cannot be. */
int pl__fork_watch(void);

/* @forget is called in each child, before fork() returns there. */
#define PL_IN_CHILD(forget)						\
	static struct pl__forget __in_child = { forget, NULL };		\
	static void __attribute__((constructor)) __add_in_child(void)	\
	{								\
		pl__fork_add(&__in_child);				\
	}								\
	struct pl__forget

#endif /* PL_FORK_H */
