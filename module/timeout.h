/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timeouts of what has no task to sleep: queues of a processor each, so that
 * one soft interrupt ends a few and no more. Knows no lots.
 */
#ifndef PARKLOT_TIMEOUT_H
#define PARKLOT_TIMEOUT_H

#include <linux/ktime.h>
#include <linux/timerqueue.h>
#include <linux/types.h>

struct parklot_timeouts;
struct parklot_timeout;

struct parklot_timeout_ops {
	/* With the queue's lock held: is it for the caller to end? */
	bool (*claim)(struct parklot_timeout *timeout);
	/* With no lock held, if so. */
	void (*end)(struct parklot_timeout *timeout);
};

/* I: set at init.  L: the queue's lock held. */
struct parklot_timeout {
	const struct parklot_timeout_ops *ops;	/* I */
	struct parklot_timeouts	*queue;		/* I */
	struct timerqueue_node	node;		/* L */
};

void parklot_timeout_init(struct parklot_timeout *timeout,
			  const struct parklot_timeout_ops *ops);
void parklot_timeout_start(struct parklot_timeout *timeout, ktime_t deadline);
void parklot_timeout_cancel(struct parklot_timeout *timeout);

void parklot_timeouts_init(void);
void parklot_timeouts_exit(void);

#endif /* PARKLOT_TIMEOUT_H */
