/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Timers: a call on the timer thread at a deadline.
 */
#ifndef PARKLOT_TIMER_H
#define PARKLOT_TIMER_H

#include "base.h"

PL_BEGIN_DECLS

typedef uint64_t pl_timer_t;	/* slot | version << 32; 0 is no timer */

/**
 * pl_timer_add() - call @fn(@arg) on the timer thread at @deadline_ns
 * @out:         the timer's handle, or NULL
 * @deadline_ns: absolute, monotonic; past: as soon as possible.  PL_FOREVER
 *               never fires.
 * @fn:          must be short: all timers wait for it.  May spawn, wake and
 *               add or delete timers; must not block.
 * @arg:         passed to it
 *
 * Return: 0; -ENOMEM, -EAGAIN; -EINVAL; to a thread that is no worker
 * -ECANCELED while the runtime stops.  What has not fired when the last task
 * has ended does not.
 */
PL_API int pl_timer_add(pl_timer_t *out, uint64_t deadline_ns,
			void (*fn)(void *arg), void *arg);

/**
 * pl_timer_del() - delete a timer
 *
 * Return: 0: it will not run; -EBUSY: it is running now; -ENOENT: it ran, was
 * deleted, or never was; -EINVAL for 0.
 */
PL_API int pl_timer_del(pl_timer_t t);

PL_END_DECLS

#endif /* PARKLOT_TIMER_H */
