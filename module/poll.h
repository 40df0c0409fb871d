/* SPDX-License-Identifier: GPL-2.0-only */
/* A descriptor that ends a park when it becomes ready. */
#ifndef PARKLOT_POLL_H
#define PARKLOT_POLL_H

#include <linux/poll.h>

#include "lot.h"

struct file;
struct parklot_park;

/* Belongs to the parker, and lies on its stack. */
struct parklot_poll {
	struct file		*file;		/* referenced, or NULL: none */
	struct parklot_wake_source source;
	struct poll_wqueues	wait;
};

int parklot_poll_get(struct parklot_poll *poll,
		     const struct parklot_park *park);
int parklot_poll_start(struct parklot_poll *poll);
void parklot_poll_stop(struct parklot_poll *poll);
void parklot_poll_put(struct parklot_poll *poll);

#endif /* PARKLOT_POLL_H */
