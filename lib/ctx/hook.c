/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "ctx/hook.h"
#include "ctx/cxx.h"
#include "base/atfork.h"
#include "base/lock.h"

struct hook {
	void			*(*save)(void);
	void			(*restore)(void *state);
	void			(*drop)(void *state);
};

/* L: written under the lock, before pl__nr_hooks counts it; then read-only. */
static struct hook hooks[PL_HOOKS_MAX];		/* L */
_Atomic uint32_t pl__nr_hooks;			/* L; any thread reads */
static struct pl__lock hooks_lock;

/* The thread that held the lock at the fork does not exist in the child. */
static void hook_atfork_child(void)
{
	hooks_lock = (struct pl__lock){ 0 };
}

PL_ATFORK_CHILD(hook_atfork_child);

int pl_hook_add(void *(*save)(void), void (*restore)(void *state),
		void (*drop)(void *state))
{
	uint32_t nr;

	if (!save || !restore)
		return -EINVAL;
	pl__lock(&hooks_lock);
	nr = load_relaxed(&pl__nr_hooks);
	if (nr < PL_HOOKS_MAX) {
		hooks[nr] = (struct hook){ save, restore, drop };
		store_release(&pl__nr_hooks, nr + 1);
	}
	pl__unlock(&hooks_lock);
	if (nr == PL_HOOKS_MAX)
		return -EAGAIN;
	pl__cxx_be_due();
	return 0;
}

void pl__hooks_save(struct pl__hook_states *s)
{
	uint32_t i;

	s->nr = load_acquire(&pl__nr_hooks);
	for (i = 0; i < s->nr; i++)
		s->of[i] = hooks[i].save();
}

void pl__hooks_restore(const struct pl__hook_states *s)
{
	uint32_t i;

	for (i = s->nr; i--;)
		hooks[i].restore(s->of[i]);
}

void pl__hooks_drop(void)
{
	uint32_t nr = load_acquire(&pl__nr_hooks), i;
	void *state;

	for (i = 0; i < nr; i++) {
		state = hooks[i].save();
		if (hooks[i].drop)
			hooks[i].drop(state);
	}
}
