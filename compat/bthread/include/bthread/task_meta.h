/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What is kept of a task besides what parklot keeps, in place of bRPC's header
 * of this name: the fields that bRPC, its users and its tests read.
 */
#ifndef BTHREAD_TASK_META_H
#define BTHREAD_TASK_META_H

#include <parklot.h>

#include <gflags/gflags.h>

#include "bthread/butex.h"
#include "bthread/context.h"
#include "bthread/timer_thread.h"
#include "bthread/types.h"
#include "butil/atomicops.h"
#include "butil/thread_local.h"

/*
 * bRPC reads tls_bls and tls_task_group as variables of the thread with gcc on
 * x86, and by functions elsewhere, since a compiler may keep an address over a
 * wait.  Here both belong to the task, so it is functions everywhere.
 */
#undef BAIDU_GET_VOLATILE_THREAD_LOCAL
#undef BAIDU_GET_PTR_VOLATILE_THREAD_LOCAL
#undef BAIDU_SET_VOLATILE_THREAD_LOCAL
#undef EXTERN_BAIDU_VOLATILE_THREAD_LOCAL
#define BAIDU_GET_VOLATILE_THREAD_LOCAL(name)		get_##name()
#define BAIDU_GET_PTR_VOLATILE_THREAD_LOCAL(name)	get_ptr_##name()
#define BAIDU_SET_VOLATILE_THREAD_LOCAL(name, value)	set_##name(value)
#define EXTERN_BAIDU_VOLATILE_THREAD_LOCAL(type, name)			\
	extern type get_##name(void);					\
	extern type *get_ptr_##name(void);				\
	extern void set_##name(type value)

namespace bthread {

class KeyTable;

struct LocalStorage {
	KeyTable *keytable;
	void *assigned_data;
	void *rpcz_parent_span;
};

#define BTHREAD_LOCAL_STORAGE_INITIALIZER { nullptr, nullptr, nullptr }

static const LocalStorage LOCAL_STORAGE_INIT =
	BTHREAD_LOCAL_STORAGE_INITIALIZER;

/* The calling task's; outside of tasks, the thread's. */
EXTERN_BAIDU_VOLATILE_THREAD_LOCAL(LocalStorage, tls_bls);

inline LocalStorage *tls_bls_ptr()
{
	return BAIDU_GET_PTR_VOLATILE_THREAD_LOCAL(tls_bls);
}

/*
 * One for each slot of a handle; a slot's next task takes it over.
 *
 * tid	the task that began last; all below but stopped is its own
 * stopped	the task of this slot that was stopped last
 * start_ns	when it began, by butil::cpuwide_time_ns()
 * cpu_ns, nswitch	up to its last switch, if they are counted
 * cpu_since_ns	of its thread, when it went on
 */
struct TaskMeta {
	butil::atomic<bthread_t> tid;
	butil::atomic<bthread_t> stopped;
	bthread_attr_t attr;
	int priority_index;
	bthread_tag_t tag;
	int64_t start_ns;
	butil::atomic<uint64_t> cpu_ns;
	butil::atomic<uint64_t> nswitch;
	uint64_t cpu_since_ns;
	void *(*fn)(void *);
	void *arg;
	LocalStorage local_storage;
};

extern void *(*g_create_bthread_span)();
extern void (*g_rpcz_parent_span_dtor)(void *);
extern void (*g_end_bthread_span)();

}  // namespace bthread

#endif  // BTHREAD_TASK_META_H
