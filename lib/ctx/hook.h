/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
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
#ifndef PL_HOOK_H
#define PL_HOOK_H

#include "base/base.h"

#include "parklot.h"

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

#endif /* PL_HOOK_H */
