// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The runtime: concurrency, tags, which are groups of workers, the workers'
 * start function, and its start
 */
#include "runtime.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "bthread/bthread.h"
#include "bthread/task_group.h"
#include "bthread/unstable.h"
#include "butil/logging.h"
#include "cpus.h"
#include "vars.h"

DECLARE_int32(stack_size_small);
DECLARE_int32(stack_size_normal);
DECLARE_int32(stack_size_large);
DECLARE_string(cpu_set);

namespace bthread {

DECLARE_int32(bthread_concurrency);

TaskControl *g_task_control;

static TaskControl the_control;
static std::mutex concurrency_mutex;
static bool concurrency_was_set;
static std::vector<int> tag_workers;	/* of each tag; as many in all */
static std::vector<pl_group_t> tag_groups;	/* as they were at the start */
static void (*worker_startfn)();
static void (*tagged_worker_startfn)(bthread_tag_t);

int TaskControl::concurrency() const
{
	return FLAGS_bthread_concurrency;
}

int TaskControl::concurrency(bthread_tag_t tag) const
{
	std::lock_guard<std::mutex> lock(concurrency_mutex);

	return tag_workers[tag];
}

/* The flag may be assigned at any time; the start is when it counts. */
static int nr_tags()
{
	return __atomic_load_n(&g_task_control, __ATOMIC_ACQUIRE) ?
	       (int)tag_workers.size() : FLAGS_task_group_ntags;
}

/* bthread has workers for each tag, in turn; here each tag has one at least. */
static void tags_share(int from, int to)
{
	for (; from < to; from++)
		tag_workers[from % tag_workers.size()]++;
	for (int &nr : tag_workers)
		nr = std::max(nr, 1);
}

static int groups_follow()
{
	int err = 0;

	for (size_t tag = 0; !err && tag < tag_groups.size(); tag++)
		err = pl_group_set_workers(tag_groups[tag], tag_workers[tag]);
	return err;
}

pl_group_t group_of_tag(bthread_tag_t tag)
{
	return tag_groups[tag];
}

bthread_tag_t tag_of_caller()
{
	const pl_group_t group = pl_group_self();

	/* While the runtime starts there is the default group alone. */
	for (size_t tag = 1; tag < tag_groups.size(); tag++)
		if (tag_groups[tag] == group)
			return tag;
	return BTHREAD_TAG_DEFAULT;
}

/* bRPC calls them in threads that do the work of workers. */
void run_worker_startfn()
{
	if (worker_startfn)
		worker_startfn();
}

void run_tagged_worker_startfn(bthread_tag_t tag)
{
	if (tagged_worker_startfn)
		tagged_worker_startfn(tag);
}

/* Also called in the timer thread, which counts to tag 0. */
static void runtime_worker_start(void *)
{
	run_worker_startfn();
	run_tagged_worker_startfn(tag_of_caller());
}

/* Each has 256 workers beyond the most, which stand in for blocked ones. */
static uint32_t max_workers_of_a_tag()
{
	return std::min(BTHREAD_MAX_CONCURRENCY + 256,
			(int)PL_WORKERS_MAX / FLAGS_task_group_ntags);
}

/* Tag 0 is the default group; a group without tasks has no thread. */
static int groups_start()
{
	struct pl_group_config cfg = PL_GROUP_CONFIG_INIT;
	pl_group_t group = PL_GROUP_DEFAULT;
	int err = 0;

	tag_groups.clear();
	for (int tag = 0; !err && tag < FLAGS_task_group_ntags; tag++) {
		const std::string name = "tag " + std::to_string(tag);

		cfg.name = name.c_str();
		cfg.nr_workers = tag_workers[tag];
		cfg.max_workers = max_workers_of_a_tag();
		if (tag)
			err = pl_group_create(&group, &cfg);
		tag_groups.push_back(group);
	}
	return err;
}

int runtime_start_slow()
{
	std::lock_guard<std::mutex> lock(concurrency_mutex);
	struct pl_config cfg = PL_CONFIG_INIT;
	int err;

	if (g_task_control)
		return 0;
	tag_workers.assign(FLAGS_task_group_ntags, 0);
	tags_share(0, FLAGS_bthread_concurrency);
	cfg.nr_workers = tag_workers[0];
	cfg.max_workers = max_workers_of_a_tag();
	cfg.worker_start = runtime_worker_start;
	cfg.stack_size[PL_STACK_NORMAL] = FLAGS_stack_size_normal;
	cfg.stack_size[PL_STACK_SMALL] = FLAGS_stack_size_small;
	cfg.stack_size[PL_STACK_LARGE] = FLAGS_stack_size_large;
	err = clock_start();
	if (!err) {
		CpusBound bound(FLAGS_cpu_set);

		cfg.pin_workers = !!bound;
		err = pl_runtime_start(&cfg);
	}
	LOG_IF(WARNING, err == -EALREADY) << "parklot runs already; the flags "
		"of bthread have no effect";
	if (!err || err == -EALREADY)
		err = groups_start();
	if (err) {
		LOG(ERROR) << "Fail to start parklot: " << berror(-err);
		return err;
	}
	vars_expose(&the_control);
	__atomic_store_n(&g_task_control, &the_control, __ATOMIC_RELEASE);
	return 0;
}

bool tag_is_known(bthread_tag_t tag)
{
	if (tag == BTHREAD_TAG_INVALID || (tag >= 0 && tag < nr_tags()))
		return true;
	LOG(ERROR) << "tag " << tag << " is refused: -task_group_ntags is "
		   << nr_tags();
	return false;
}

/* Before the start the first number stands, and then the highest. */
static int concurrency_set(int nr)
{
	std::lock_guard<std::mutex> lock(concurrency_mutex);

	if (!g_task_control) {
		if (!concurrency_was_set || nr > FLAGS_bthread_concurrency)
			FLAGS_bthread_concurrency = nr;
		concurrency_was_set = true;
		return 0;
	}
	if (nr < FLAGS_bthread_concurrency)
		return EPERM;
	tags_share(FLAGS_bthread_concurrency, nr);
	FLAGS_bthread_concurrency = nr;
	return -groups_follow();
}

/* Of a tag that is known; as in bthread, it starts the workers. */
static int concurrency_set_of(bthread_tag_t tag, int nr)
{
	int more;

	if (runtime_start())
		return EPERM;
	std::lock_guard<std::mutex> lock(concurrency_mutex);
	more = nr - tag_workers[tag];
	if (more < 0 ||
	    FLAGS_bthread_concurrency + more > BTHREAD_MAX_CONCURRENCY)
		return EPERM;
	tag_workers[tag] = nr;
	FLAGS_bthread_concurrency += more;
	return -groups_follow();
}

}  // namespace bthread

extern "C" {

int bthread_getconcurrency(void)
{
	return bthread::FLAGS_bthread_concurrency;
}

int bthread_setconcurrency(int nr)
{
	if (nr < BTHREAD_MIN_CONCURRENCY || nr > BTHREAD_MAX_CONCURRENCY) {
		LOG(ERROR) << "Invalid concurrency=" << nr;
		return EINVAL;
	}
	return bthread::concurrency_set(nr);
}

int bthread_getconcurrency_by_tag(bthread_tag_t tag)
{
	if (!bthread::g_task_control || tag == BTHREAD_TAG_INVALID ||
	    !bthread::tag_is_known(tag))
		return EPERM;
	return bthread::g_task_control->concurrency(tag);
}

int bthread_setconcurrency_by_tag(int nr, bthread_tag_t tag)
{
	if (tag == BTHREAD_TAG_INVALID)
		return 0;
	if (!bthread::tag_is_known(tag))
		return EINVAL;
	if (nr < BTHREAD_MIN_CONCURRENCY || nr > BTHREAD_MAX_CONCURRENCY) {
		LOG(ERROR) << "Invalid concurrency_by_tag=" << nr;
		return EINVAL;
	}
	return bthread::concurrency_set_of(tag, nr);
}

int bthread_set_worker_startfn(void (*fn)())
{
	if (!fn)
		return EINVAL;
	bthread::worker_startfn = fn;
	return 0;
}

int bthread_set_tagged_worker_startfn(void (*fn)(bthread_tag_t))
{
	if (!fn)
		return EINVAL;
	bthread::tagged_worker_startfn = fn;
	return 0;
}

/* bthread leaves tasks that wait where they are; parklot ends all tasks. */
void bthread_stop_world()
{
	LOG(ERROR) << "bthread_stop_world: refused on parklot: end your tasks, "
		"then call pl_runtime_stop()";
}

}  // extern "C"
