/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The runtime below bthread: started by the first call that needs it
 */
#ifndef PARKLOT_BTHREAD_RUNTIME_H
#define PARKLOT_BTHREAD_RUNTIME_H

#include <parklot.h>

#include "bthread/task_control.h"

namespace bthread {

/*
 * NULL until a task or a timer started the runtime.  bRPC's sources declare it
 * where they need it, not all of them as it is.
 */
extern TaskControl *g_task_control;

/* runtime_start_slow() - 0, or -errno as pl_runtime_start() */
int runtime_start_slow();

/* runtime_start() - start it, unless it runs */
static inline int runtime_start()
{
	if (__atomic_load_n(&g_task_control, __ATOMIC_ACQUIRE))
		return 0;
	return runtime_start_slow();
}

/* group_of_tag() - the workers that run tasks of @tag, which is known */
pl_group_t group_of_tag(bthread_tag_t tag);

/* tag_of_caller() - the tag of the calling worker */
bthread_tag_t tag_of_caller();

/* tag_is_known() - whether tasks may have @tag; else says so in the log */
bool tag_is_known(bthread_tag_t tag);

/* clock_start() - count CPU time of tasks, if the flag is set; 0 or -errno */
int clock_start();
bool clock_is_on();

/* The CPU time of the calling thread, ns. */
uint64_t clock_of_thread_ns();

}  // namespace bthread

#endif  // PARKLOT_BTHREAD_RUNTIME_H
