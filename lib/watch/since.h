/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * since: how long a worker has been in its task, as far as was seen
 *
 * No worker notes the time at which it takes a task.  But sysmon looks at
 * workers while tasks wait, and so do dumps.  Each look notes when it first saw
 * the worker in this task, and its thread at this processor time: so these
 * times are lower bounds, and 0 for the first look.  Any thread may look.
 */
#ifndef PL_SINCE_H
#define PL_SINCE_H

#include "queue/worker.h"

/* ms for which @w has been in the task that it is in. */
uint32_t pl__since_task_ms(struct pl__worker *w, uint64_t now_ns);

/* ms for which the thread of @w, which used @cpu_ns, has not run. */
uint32_t pl__since_ran_ms(struct pl__worker *w, uint64_t cpu_ns,
			  uint64_t now_ns);

#endif /* PL_SINCE_H */
