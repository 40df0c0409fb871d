// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The runtime: concurrency, tags, the workers' start function, and its start
 */
#include "runtime.h"

#include <sched.h>

#include <mutex>

#include "bthread/bthread.h"
#include "bthread/unstable.h"
#include "butil/logging.h"
#include "vars.h"

DECLARE_int32(stack_size_small);
DECLARE_int32(stack_size_normal);
DECLARE_int32(stack_size_large);

namespace bthread {

DECLARE_int32(bthread_concurrency);

TaskControl *g_task_control;

static TaskControl the_control;
static std::mutex concurrency_mutex;
static bool concurrency_was_set;
static void (*worker_startfn)();
static void (*tagged_worker_startfn)(bthread_tag_t);

int TaskControl::concurrency() const
{
	return FLAGS_bthread_concurrency;
}

int TaskControl::concurrency(bthread_tag_t) const
{
	return FLAGS_bthread_concurrency;
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

static void runtime_worker_start(void *)
{
	run_worker_startfn();
	run_tagged_worker_startfn(BTHREAD_TAG_DEFAULT);
}

/*
 * bthread's number has to cover tasks that block their workers; parklot's is
 * how many run at a time, and it adds others for those that block.  So more
 * than there are processors are not wanted: 0, parklot's default.
 */
static uint32_t runtime_nr_workers()
{
	const int nr = FLAGS_bthread_concurrency;
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return 0;
	return nr < CPU_COUNT(&cpus) ? nr : 0;
}

int runtime_start_slow()
{
	std::lock_guard<std::mutex> lock(concurrency_mutex);
	struct pl_config cfg = PL_CONFIG_INIT;
	int err;

	if (g_task_control)
		return 0;
	cfg.nr_workers = runtime_nr_workers();
	cfg.max_workers = BTHREAD_MAX_CONCURRENCY + 256;
	cfg.worker_start = runtime_worker_start;
	cfg.stack_size[PL_STACK_NORMAL] = FLAGS_stack_size_normal;
	cfg.stack_size[PL_STACK_SMALL] = FLAGS_stack_size_small;
	cfg.stack_size[PL_STACK_LARGE] = FLAGS_stack_size_large;
	err = pl_runtime_start(&cfg);
	LOG_IF(WARNING, err == -EALREADY) << "parklot runs already; the flags "
		"of bthread have no effect";
	if (err && err != -EALREADY) {
		LOG(ERROR) << "Fail to start parklot: " << berror(-err);
		return err;
	}
	vars_expose();
	__atomic_store_n(&g_task_control, &the_control, __ATOMIC_RELEASE);
	return 0;
}

bool tag_is_known(bthread_tag_t tag)
{
	if (tag == BTHREAD_TAG_INVALID || tag == BTHREAD_TAG_DEFAULT)
		return true;
	LOG(ERROR) << "parklot has no groups of workers: tag " << tag
		   << " is refused";
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
	FLAGS_bthread_concurrency = nr;
	return -pl_runtime_set_workers(runtime_nr_workers());
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
	if (!bthread::g_task_control || !bthread::tag_is_known(tag))
		return EPERM;
	return bthread_getconcurrency();
}

int bthread_setconcurrency_by_tag(int nr, bthread_tag_t tag)
{
	if (tag == BTHREAD_TAG_INVALID)
		return 0;
	return bthread::tag_is_known(tag) ? bthread_setconcurrency(nr) : EINVAL;
}

bthread_tag_t bthread_self_tag(void)
{
	return BTHREAD_TAG_DEFAULT;
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

uint64_t bthread_cpu_clock_ns(void)
{
	return 0;
}

}  // extern "C"
