/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timeouts of commands, which have no task to sleep: a queue for each
 * processor, so that one soft interrupt ends a few commands and no more. They
 * know no lots.
 */
#ifndef PARKLOT_TIMEOUT_H
#define PARKLOT_TIMEOUT_H

#include <linux/ktime.h>
#include <linux/timerqueue.h>
#include <linux/types.h>

struct parklot_timeouts;
struct parklot_timeout;

struct parklot_timeout_ops {
	/* With the queue's lock held: may the caller end the timeout? */
	bool (*claim)(struct parklot_timeout *timeout);
	/* With no lock held: ends a claimed timeout. */
	void (*end)(struct parklot_timeout *timeout);
};

/* I: set at init. L: the queue's lock held. */
struct parklot_timeout {
	const struct parklot_timeout_ops *ops;	/* I */
	struct parklot_timeouts	*queue;		/* I: a processor's */
	struct timerqueue_node	node;		/* L: with the deadline */
};

void parklot_timeout_init(struct parklot_timeout *timeout,
			  const struct parklot_timeout_ops *ops);
void parklot_timeout_start(struct parklot_timeout *timeout, ktime_t deadline);
void parklot_timeout_cancel(struct parklot_timeout *timeout);

void parklot_timeouts_init(void);
void parklot_timeouts_exit(void);

#endif /* PARKLOT_TIMEOUT_H */
