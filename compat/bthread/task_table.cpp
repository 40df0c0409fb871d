// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The table grows by chunks that never go away, so that a reader needs no lock.
 * An entry is a task's from its first line to that of the slot's next task.
 */
#include "task_table.h"

#include <stdlib.h>

#include <atomic>
#include <ostream>
#include <sstream>

#include "bthread/bthread.h"
#include "butil/third_party/symbolize/symbolize.h"
#include "butil/time.h"
#include "runtime.h"

namespace bthread {

static const uint32_t CHUNK_SLOTS = 4096;
static const uint32_t NR_CHUNKS = 16384;

static std::atomic<TaskMeta *> chunks[NR_CHUNKS];

/* Another thread may have been first. */
static TaskMeta *chunk_make(std::atomic<TaskMeta *> &chunk)
{
	TaskMeta *none = nullptr;
	TaskMeta *made = (TaskMeta *)calloc(CHUNK_SLOTS, sizeof(TaskMeta));

	if (!made)
		return chunk.load(std::memory_order_acquire);
	if (chunk.compare_exchange_strong(none, made))
		return made;
	free(made);
	return none;
}

TaskMeta *task_table_get(bthread_t tid)
{
	const uint32_t slot = (uint32_t)tid;
	TaskMeta *chunk;

	if (slot >= CHUNK_SLOTS * NR_CHUNKS)
		return nullptr;
	chunk = chunks[slot / CHUNK_SLOTS].load(std::memory_order_acquire);
	if (!chunk)
		chunk = chunk_make(chunks[slot / CHUNK_SLOTS]);
	return chunk ? &chunk[slot % CHUNK_SLOTS] : nullptr;
}

TaskMeta *TaskGroup::address_meta(bthread_t tid)
{
	const uint32_t slot = (uint32_t)tid;
	TaskMeta *chunk;

	if (!tid || slot >= CHUNK_SLOTS * NR_CHUNKS)
		return nullptr;
	chunk = chunks[slot / CHUNK_SLOTS].load(std::memory_order_acquire);
	return chunk ? &chunk[slot % CHUNK_SLOTS] : nullptr;
}

/*
 * Of a task that does not run; the names are those that bRPC's symbolizer
 * finds, also of functions that are not exported.
 */
void stack_trace(std::ostream &os, bthread_t tid)
{
	char name[1024];
	void *pc[32];
	const int nr = pl_backtrace(tid, pc, 32);

	if (nr == -ESRCH || nr == -EINVAL)
		os << "bthread=" << tid << " not exist now";
	else if (nr < 0)
		os << "No frame: " << berror(-nr);
	else if (!nr)
		os << "No frame: it runs, or has not started";
	for (int i = 0; i < nr; i++) {
		/* In the call, which is before its return address. */
		char *at = (char *)pc[i] - 1;

		os << '#' << i << ' ' << pc[i] << ' '
		   << (google::Symbolize(at, name, sizeof(name)) ?
			       name : "<unknown>") << '\n';
	}
}

std::string stack_trace(bthread_t tid)
{
	std::ostringstream os;

	stack_trace(os, tid);
	return os.str();
}

/* A thread that is no worker has gdb. */
bthread_t init_for_pthread_stack_trace()
{
	return INVALID_BTHREAD;
}

void print_task(std::ostream &os, bthread_t tid, bool with_trace,
		bool is_one_of_all)
{
	TaskMeta *m = TaskGroup::address_meta(tid);
	bthread_attr_t attr;

	if (!m || TaskGroup::get_attr(tid, &attr)) {
		if (!is_one_of_all)
			os << "bthread=" << tid << " : not found\n";
		return;
	}
	os << "bthread=" << tid << " :\nstop=" << TaskGroup::is_stopped(tid)
	   << "\nfn=" << (void *)m->fn << "\narg=" << m->arg
	   << "\nattr={stack_type=" << attr.stack_type << " flags="
	   << attr.flags << " specified_tag=" << attr.tag << " name="
	   << attr.name << " keytable_pool=" << attr.keytable_pool
	   << "}\nhas_tls=" << !!m->local_storage.keytable
	   << "\nuptime_ns=" << butil::cpuwide_time_ns() - m->start_ns;
	if (clock_is_on())
		os << "\ncputime_ns=" << m->cpu_ns.load() << "\nnswitch="
		   << m->nswitch.load();
	if (with_trace) {
		os << "\nbthread call stack:\n";
		stack_trace(os, tid);
	}
	os << "\n\n";
}

void print_living_tasks(std::ostream &os, bool with_trace)
{
	for (uint32_t c = 0; c < NR_CHUNKS; c++) {
		TaskMeta *chunk = chunks[c].load(std::memory_order_acquire);

		for (uint32_t i = 0; chunk && i < CHUNK_SLOTS; i++) {
			const bthread_t tid = chunk[i].tid.load();

			if (tid && TaskGroup::exists(tid))
				print_task(os, tid, with_trace, true);
		}
	}
}

}  // namespace bthread
