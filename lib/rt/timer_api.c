/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * timer_api: the runtime's timers, as programs use them
 */
#include "rt/runtime.h"

/* @c: the caller's cache, or NULL. */
static inline int timer_api_add(pl_timer_t *out, struct pl__slab_cache *c,
				uint32_t bucket, uint64_t deadline_ns,
				void (*fn)(void *arg), void *arg)
{
	return pl__timer_add(pl__rt.timers, c, bucket, deadline_ns, fn, arg,
			     out);
}

__pl_no_frame
int pl_timer_add(pl_timer_t *out, uint64_t deadline_ns, void (*fn)(void *arg),
		 void *arg)
{
	struct pl__worker *w;
	int ret;

	if (!fn)
		return -EINVAL;
	w = pl__self();
	if (w)
		return timer_api_add(out, &w->timers, w->number, deadline_ns,
				     fn, arg);
	ret = pl__runtime_enter();
	if (ret)
		return ret;
	ret = timer_api_add(out, NULL, pl__thread_bucket(), deadline_ns, fn,
			    arg);
	pl__rt_exit();
	return ret;
}

__pl_no_frame
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
