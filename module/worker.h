/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The threads that joined a crew. Without preempt notifiers there can be none:
 * then neither worker.c nor pool.c is built.
 */
#ifndef PARKLOT_WORKER_H
#define PARKLOT_WORKER_H

#include <linux/types.h>

struct parklot_pool;
struct parklot_park_notifier;
struct rcu_work;

int parklot_worker_init(void);
void parklot_worker_exit(void);
int parklot_worker_join(struct parklot_pool *pool, u32 slot,
			const u32 *word);
int parklot_worker_leave(struct parklot_pool *pool, u32 slot);
bool parklot_worker_dismiss(struct parklot_pool *pool);
void parklot_worker_defer(struct rcu_work *work);
struct parklot_park_notifier *parklot_worker_enter(struct parklot_pool *pool);
void parklot_worker_return(struct parklot_park_notifier *notifier);

#endif /* PARKLOT_WORKER_H */
