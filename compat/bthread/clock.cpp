// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * CPU time and switches of tasks, counted around each switch if
 * -bthread_enable_cpu_clock_stat is set at the start
 */
#include <gflags/gflags.h>
#include <time.h>

#include "bthread/task_group.h"
#include "bthread/unstable.h"
#include "runtime.h"
#include "task_table.h"

namespace bthread {

DECLARE_bool(bthread_enable_cpu_clock_stat);

static bool is_on;

bool clock_is_on()
{
	return is_on;
}

uint64_t clock_of_thread_ns()
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Up to now. */
static uint64_t clock_of(const TaskMeta *m)
{
	return m->cpu_ns.load(butil::memory_order_relaxed) +
	       clock_of_thread_ns() - m->cpu_since_ns;
}

static void *clock_save()
{
	TaskMeta *m = task_table_get(pl_self());

	m->cpu_ns.store(clock_of(m), butil::memory_order_relaxed);
	m->nswitch.store(m->nswitch.load(butil::memory_order_relaxed) + 1,
			 butil::memory_order_relaxed);
	return nullptr;
}

static void clock_restore(void *)
{
	task_table_get(pl_self())->cpu_since_ns = clock_of_thread_ns();
}

int clock_start()
{
	int err = 0;

	if (FLAGS_bthread_enable_cpu_clock_stat && !is_on)
		err = pl_hook_add(clock_save, clock_restore, nullptr);
	is_on = FLAGS_bthread_enable_cpu_clock_stat && !err;
	return err;
}

}  // namespace bthread

extern "C" uint64_t bthread_cpu_clock_ns(void)
{
	const bthread_t self = pl_self();

	return self && bthread::is_on ?
	       bthread::clock_of(bthread::task_table_get(self)) : 0;
}
