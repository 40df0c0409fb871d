// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * bthread's flags, so that command lines stay as they are.  What parklot cannot
 * do is refused; what has no meaning here is accepted, and says so in --help.
 */
#include <gflags/gflags.h>

#include <string>

#include "bthread/bthread.h"
#include "butil/logging.h"
#include "runtime.h"

static bool refused(const char *flag)
{
	LOG(ERROR) << "-" << flag << " is refused: not on parklot";
	return false;
}

static bool flag_is_off(const char *flag, bool is_on)
{
	return !is_on || refused(flag);
}

static bool flag_is_one(const char *flag, int32_t nr)
{
	return nr == 1 || refused(flag);
}

static bool flag_is_empty(const char *flag, const std::string &value)
{
	return value.empty() || refused(flag);
}

DEFINE_int32(stack_size_small, 32768, "size of small stacks");
DEFINE_int32(stack_size_normal, 1048576, "size of normal stacks");
DEFINE_int32(stack_size_large, 8388608, "size of large stacks");
DEFINE_int32(event_dispatcher_num, 1, "Number of event dispatchers");

DEFINE_int32(task_group_ntags, 1, "refused on parklot, but for 1");
DEFINE_validator(task_group_ntags, flag_is_one);
DEFINE_string(cpu_set, "", "refused on parklot");
DEFINE_validator(cpu_set, flag_is_empty);

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
	     "Number of workers; on parklot at most one for each processor "
	     "runs at a time");
DEFINE_validator(bthread_concurrency, concurrency_is_taken);

DEFINE_bool(enable_bthread_priority_queue, false, "refused on parklot");
DEFINE_validator(enable_bthread_priority_queue, flag_is_off);
DEFINE_bool(bthread_enable_cpu_clock_stat, false, "refused on parklot");
DEFINE_validator(bthread_enable_cpu_clock_stat, flag_is_off);

static bool tag_is_taken(const char *, int32_t tag)
{
	return tag_is_known(tag);
}

DEFINE_int32(bthread_current_tag, BTHREAD_TAG_INVALID,
	     "The tag of -bthread_concurrency_by_tag; parklot has 0 only");
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
