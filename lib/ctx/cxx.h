/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * cxx: the C++ exceptions of a task
 *
 * A C++ runtime keeps, for each thread, the exceptions that are caught and the
 * number of those that are thrown: the two words that __cxa_get_globals() of
 * the Itanium ABI leads to.  A task that waits in a handler or in a destructor
 * takes them along: a switch saves them on the task's stack and leaves zeroes
 * to the next task.
 *
 * A program without a C++ runtime pays for one test a switch.  A runtime may be
 * loaded later, by dlopen(): what is tested is the link from the last object
 * that is never unloaded to the next one, which is NULL until then.
 */
#ifndef PL_CXX_H
#define PL_CXX_H

#include "base/base.h"

#include "parklot.h"

#define PL__CXX_RUNTIMES	2	/* libstdc++ and libc++abi, say */

/* The layout in all runtimes of the ABI. */
struct pl__cxx_globals {
	void			*caught;
	unsigned int		nr_uncaught;
};

/* A task's words of each runtime, on its stack. */
struct pl__cxx {
	struct pl__cxx_globals	of[PL__CXX_RUNTIMES];
	uint32_t		nr;	/* runtimes known at the save */
};

/* Points to NULL while there is neither a C++ runtime nor a hook (cxx.h). */
extern _Atomic(void *) *_Atomic pl__cxx_link;

/* True: a switch has to save and restore. */
static inline bool pl__cxx_is_due(void)
{
	return load_relaxed(load_relaxed(&pl__cxx_link));
}

/* From now on each switch is due, whether there is a C++ runtime or not. */
void pl__cxx_be_due(void);

/* Finds the runtimes that are loaded; called before the first switch. */
void pl__cxx_init(void);

/* Moves the calling thread's words to @c, leaving zeroes; and back. */
void pl__cxx_save(struct pl__cxx *c);
void pl__cxx_restore(const struct pl__cxx *c);

/*
 * hook: what other libraries keep for each thread, moved with the task
 *
 * A task that switches away has each hook save its library's state, on the
 * task's stack, and leave the thread with none; the task restores it when it
 * is resumed, on whichever thread.  A task that was saved before a hook was
 * added has no state of it to restore.
 *
 * A program without hooks pays nothing at a switch: hooks make the test for C++
 * exceptions succeed (cxx.h), which each switch has anyway.
 */

extern _Atomic uint32_t pl__nr_hooks;

static inline bool pl__has_hooks(void)
{
	return load_relaxed(&pl__nr_hooks);
}

/* A task's states, on its stack. */
struct pl__hook_states {
	uint32_t		nr;	/* hooks known at the save */
	void			*of[PL_HOOKS_MAX];
};

/* Moves the calling thread's states to @s, and back. */
void pl__hooks_save(struct pl__hook_states *s);
void pl__hooks_restore(const struct pl__hook_states *s);

/* Takes the states that a task leaves behind at its end. */
void pl__hooks_drop(void);

#endif /* PL_CXX_H */
