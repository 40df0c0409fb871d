/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * task_limit: the tasks that are alive, where max_tasks limits them
 */
#ifndef PL_TASK_LIMIT_H
#define PL_TASK_LIMIT_H

#include "base/base.h"

/* Called while no task is alive. */
void pl__task_limit_start(void);
void pl__task_limit_stop(void);

/*
 * Counts a task that is to be spawned.  At the limit it returns -EAGAIN or, if
 * it @may_wait, waits, and has not counted at -ETIMEDOUT, -EINTR, -ECANCELED or
 * -ENOMEM.  After a wait the caller may be on another worker.
 */
int pl__task_limit_enter(bool may_wait, uint64_t deadline_ns);

/* A task that was counted has ended, or was not spawned. */
void pl__task_limit_leave(void);

#endif /* PL_TASK_LIMIT_H */
