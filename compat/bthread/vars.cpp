// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * bthread's variables, of parklot's counters
 */
#include "vars.h"

#include <string>

#include <parklot.h>

#include "bthread/task_control.h"
#include "runtime.h"
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

static int64_t nr_stacks(void *)
{
	return stat_now().stacks;
}

static int64_t nr_switches(void *)
{
	return stat_now().switches;
}

static int64_t nr_wakes(void *)
{
	return stat_now().wakes;
}

static int64_t nr_timers_added(void *)
{
	return stat_now().timers_added;
}

static int64_t nr_timers_fired(void *)
{
	return stat_now().timers_fired;
}

static double timers_busy_s(void *)
{
	return stat_now().timer_busy_ns / 1e9;
}

/* Of each tag where there are several; written where tasks start and end. */
static bvar::Adder<int64_t> *tasks_of_tags;

void vars_count_task(bthread_tag_t tag, int by)
{
	if (tasks_of_tags)
		tasks_of_tags[tag] << by;
}

static int64_t nr_tasks_of(void *tag)
{
	return tasks_of_tags ? tasks_of_tags[(intptr_t)tag].get_value() :
			       nr_tasks(nullptr);
}

/* Of one tag. */
static struct pl_group_stat group_now(void *group)
{
	struct pl_group_stat st = PL_GROUP_STAT_INIT;

	pl_group_stat((pl_group_t)(uintptr_t)group, &st);
	return st;
}

static int64_t nr_workers_of(void *group)
{
	return group_now(group).workers;
}

static double busy_s_of(void *group)
{
	return group_now(group).cpu_ns / 1e9;
}

/* CPU time of all workers, those that have ended among them. */
static double workers_busy_s(void *)
{
	struct pl_stat_worker st = PL_STAT_WORKER_INIT;
	uint64_t ns = 0;

	for (uint32_t i = 0; !pl_stat_worker(i, &st); i++)
		ns += st.cpu_ns;
	return ns / 1e9;
}

static void print_status(std::ostream &os, void *control)
{
	((TaskControl *)control)->print_rq_sizes(os);
}

template <typename T>
static void expose_rate_of(const std::string &name,
			   bvar::PassiveStatus<T> *value)
{
	new bvar::PerSecond<bvar::PassiveStatus<T>>(name, value);
}

template <typename T> static void expose_rate(const char *name, T (*fn)(void *))
{
	expose_rate_of(name, new bvar::PassiveStatus<T>(fn, nullptr));
}

/* They are read until the very end of the program. */
void vars_expose(TaskControl *control)
{
	typedef bvar::PassiveStatus<int64_t> Value;
	auto busy = new bvar::PassiveStatus<double>(workers_busy_s, nullptr);

	new Value("bthread_count", nr_tasks, nullptr);
	new Value("bthread_worker_count", nr_workers, nullptr);
	new Value("bthread_stack_count", nr_stacks, nullptr);
	new bvar::PassiveStatus<std::string>("bthread_group_status",
					     print_status, control);
	expose_rate_of("bthread_worker_usage", busy);
	expose_rate("bthread_switch_second", nr_switches);
	expose_rate("bthread_signal_second", nr_wakes);
	expose_rate("bthread_timer_usage", timers_busy_s);
	expose_rate("bthread_timer_scheduled_second", nr_timers_added);
	expose_rate("bthread_timer_triggered_second", nr_timers_fired);
	if (FLAGS_task_group_ntags > 1)
		tasks_of_tags =
			new bvar::Adder<int64_t>[FLAGS_task_group_ntags];
	for (bthread_tag_t tag = 0; tag < FLAGS_task_group_ntags; tag++) {
		const std::string of = "_" + std::to_string(tag);
		void *group = (void *)(uintptr_t)group_of_tag(tag);

		new Value("bthread_count" + of, nr_tasks_of,
			  (void *)(intptr_t)tag);
		new Value("bthread_worker_count" + of, nr_workers_of, group);
		expose_rate_of("bthread_worker_usage" + of,
			       new bvar::PassiveStatus<double>(busy_s_of,
							       group));
	}
}

}  // namespace bthread
