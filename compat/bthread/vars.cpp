// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * bthread's variables, of parklot's counters
 */
#include "vars.h"

#include <parklot.h>

#include "bthread/task_control.h"
#include "bvar/bvar.h"

namespace bthread {

static struct pl_stat stat_now()
{
	struct pl_stat st = PL_STAT_INIT;

	pl_stat_read(&st);
	return st;
}

/* The queues of workers are not to be seen from outside of parklot. */
void TaskControl::print_rq_sizes(std::ostream &os)
{
	const struct pl_stat st = stat_now();

	os << "tasks=" << st.tasks_alive << " workers=" << st.workers
	   << " running=" << st.workers_running << " parked="
	   << st.workers_parked << " blocked=" << st.workers_blocked;
}

static int64_t nr_tasks(void *)
{
	return stat_now().tasks_alive;
}

static int64_t nr_workers(void *)
{
	return stat_now().workers;
}

static int64_t nr_switches(void *)
{
	return stat_now().switches;
}

static int64_t nr_wakes(void *)
{
	return stat_now().wakes;
}

/* They are read until the very end of the program. */
void vars_expose()
{
	typedef bvar::PassiveStatus<int64_t> Value;
	static Value *switches = new Value(nr_switches, nullptr);
	static Value *wakes = new Value(nr_wakes, nullptr);

	new Value("bthread_count", nr_tasks, nullptr);
	new Value("bthread_worker_count", nr_workers, nullptr);
	new bvar::PerSecond<Value>("bthread_switch_second", switches);
	new bvar::PerSecond<Value>("bthread_signal_second", wakes);
}

}  // namespace bthread
