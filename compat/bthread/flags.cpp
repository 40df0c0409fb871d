// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * bthread's flags, so that command lines and flagfiles stay as they are.  What
 * has no effect here is accepted, with a line in the log if one would rely on
 * it; --help says which these are.
 */
#include <gflags/gflags.h>

#include <string>

#include "bthread/bthread.h"
#include "butil/logging.h"
#include "cpus.h"
#include "runtime.h"

DECLARE_int32(task_group_ntags);
DECLARE_string(cpu_set);

/* What the start reads stays as it is then, whatever /flags asks for. */
static bool is_late(const char *flag, bool is_another)
{
	const bool is = is_another && __atomic_load_n(&bthread::g_task_control,
						      __ATOMIC_ACQUIRE);

	LOG_IF(ERROR, is) << "-" << flag << " is refused: set it before the "
		"first task";
	return is;
}

static bool tags_are_taken(const char *flag, int32_t nr)
{
	if (is_late(flag, nr != FLAGS_task_group_ntags))
		return false;
	LOG_IF(ERROR, nr > (int)PL_GROUPS_MAX) << "-" << flag << "=" << nr
		<< " is refused: parklot has " << PL_GROUPS_MAX << " at most";
	return nr >= 1 && nr <= (int)PL_GROUPS_MAX;
}

static bool cpus_are_taken(const char *flag, const std::string &value)
{
	cpu_set_t cpus;

	if (is_late(flag, value != FLAGS_cpu_set))
		return false;
	if (value.empty() || bthread::cpus_parse(value, &cpus))
		return true;
	LOG(ERROR) << "-" << flag << "=" << value << " names no processors: "
		"0-3,5 or, by tags, 0:0-3;1:5";
	return false;
}

static bool priority_is_taken(const char *flag, bool is_on)
{
	LOG_IF(WARNING, is_on) << "-" << flag << " has no effect on parklot: "
		"what events make ready runs oldest first";
	return true;
}

DEFINE_int32(stack_size_small, 32768, "size of small stacks");
DEFINE_int32(stack_size_normal, 1048576, "size of normal stacks");
DEFINE_int32(stack_size_large, 8388608, "size of large stacks");
DEFINE_int32(event_dispatcher_num, 1, "Number of event dispatchers");

DEFINE_int32(task_group_ntags, 1, "Number of tags, each of which has workers "
	     "of its own");
DEFINE_validator(task_group_ntags, tags_are_taken);
DEFINE_string(cpu_set, "", "CPUs of the workers, such as 0-3,5: each worker "
	      "is bound to one of them");
DEFINE_validator(cpu_set, cpus_are_taken);

DEFINE_int32(guard_page_size, 4096, "no effect on parklot");
DEFINE_int32(tc_stack_small, 32, "no effect on parklot");
DEFINE_int32(tc_stack_normal, 8, "no effect on parklot");
DEFINE_int32(task_group_delete_delay, 1, "no effect on parklot");
DEFINE_int32(task_group_runqueue_capacity, 4096, "no effect on parklot");
DEFINE_bool(task_group_set_worker_name, true, "no effect on parklot");

namespace bthread {

static bool concurrency_is_taken(const char *, int32_t nr)
{
	return bthread_setconcurrency(nr) == 0;
}

DEFINE_int32(bthread_concurrency, 8 + BTHREAD_EPOLL_THREAD_NUM,
	     "Number of workers that may run at a time; parklot lets as many "
	     "of them run as pays");
DEFINE_validator(bthread_concurrency, concurrency_is_taken);

DEFINE_bool(enable_bthread_priority_queue, false, "no effect on parklot");
DEFINE_validator(enable_bthread_priority_queue, priority_is_taken);

DECLARE_bool(bthread_enable_cpu_clock_stat);

static bool clock_is_taken(const char *flag, bool is_on)
{
	return !is_late(flag, is_on != FLAGS_bthread_enable_cpu_clock_stat);
}

DEFINE_bool(bthread_enable_cpu_clock_stat, false,
	    "Count the CPU time of each task, for bthread_cpu_clock_ns() and "
	    "/bthreads");
DEFINE_validator(bthread_enable_cpu_clock_stat, clock_is_taken);

static bool tag_is_taken(const char *, int32_t tag)
{
	return tag_is_known(tag);
}

DEFINE_int32(bthread_current_tag, BTHREAD_TAG_INVALID,
	     "The tag of -bthread_concurrency_by_tag");
DEFINE_validator(bthread_current_tag, tag_is_taken);

static bool concurrency_by_tag_is_taken(const char *, int32_t nr)
{
	return !bthread_setconcurrency_by_tag(nr, FLAGS_bthread_current_tag);
}

DEFINE_int32(bthread_concurrency_by_tag, 8 + BTHREAD_EPOLL_THREAD_NUM,
	     "Number of workers of -bthread_current_tag");
DEFINE_validator(bthread_concurrency_by_tag, concurrency_by_tag_is_taken);

DEFINE_int32(bthread_min_concurrency, 0, "no effect on parklot");
DEFINE_int32(bthread_parking_lot_of_each_tag, 4, "no effect on parklot");
DEFINE_bool(parking_lot_no_signal_when_no_waiter, false,
	    "no effect on parklot");
DEFINE_bool(show_bthread_creation_in_vars, false, "no effect on parklot");
DEFINE_bool(show_per_worker_usage_in_vars, false, "no effect on parklot");

}  // namespace bthread
