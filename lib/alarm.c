/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * alarm: the runtime's timers, as programs use them
 */
#include "runtime.h"

static int add(struct pl__worker *w, pl_timer_t *out, uint64_t deadline_ns,
	       void (*fn)(void *arg), void *arg)
{
	struct pl__slab_cache *cache = w ? &w->timers : NULL;
	struct pl__timer *r = pl__timer_reserve(pl__rt.timers, cache);
	pl_timer_t id;

	if (!r)
		return -ENOMEM;
	/* The callback may run before we return: @out is ours alone. */
	id = pl__timer_arm(pl__rt.timers, r, pl__self_number(), deadline_ns,
			   fn, arg);
	if (out)
		*out = id;
	return 0;
}

int pl_timer_add(pl_timer_t *out, uint64_t deadline_ns, void (*fn)(void *arg),
		 void *arg)
{
	struct pl__worker *w = pl__self();
	int ret;

	if (!fn)
		return -EINVAL;
	if (w)
		return add(w, out, deadline_ns, fn, arg);
	ret = pl__runtime_enter();
	if (ret)
		return ret;
	ret = add(NULL, out, deadline_ns, fn, arg);
	pl__rt_exit();
	return ret;
}

int pl_timer_del(pl_timer_t t)
{
	int ret;

	if (!t)
		return -EINVAL;
	if (pl__self())
		return pl__timer_del(pl__rt.timers, t);
	if (!pl__rt_enter())
		return -ENOENT;
	ret = pl__timer_del(pl__rt.timers, t);
	pl__rt_exit();
	return ret;
}
