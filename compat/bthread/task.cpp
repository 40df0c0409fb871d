// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Tasks: how they start, end, wait for each other, and are stopped
 */
#include <unistd.h>

#include <functional>

#include "bthread/bthread.h"
#include "bthread/errno.h"
#include "bthread/unstable.h"
#include "butil/logging.h"
#include "butil/object_pool.h"
#include "butil/time.h"
#include "keep_errno.h"
#include "runtime.h"
#include "task_table.h"
#include "vars.h"

namespace bthread {

/* Defined in bRPC's key.cpp. */
void return_keytable(bthread_keytable_pool_t *pool, KeyTable *table);

/* From the call that starts a task to its first line. */
struct Start {
	void *(*fn)(void *);
	void *arg;
	void *span;
	bthread_tag_t tag;
	bthread_attr_t attr;
};

static TaskGroup the_group;

__attribute__((noinline)) TaskGroup *get_tls_task_group()
{
	return pl_self() ? &the_group : nullptr;
}

static thread_local LocalStorage storage_of_thread;

__attribute__((noinline)) LocalStorage *get_ptr_tls_bls()
{
	const bthread_t self = pl_self();

	return self ? &task_table_get(self)->local_storage : &storage_of_thread;
}

LocalStorage get_tls_bls()
{
	return *get_ptr_tls_bls();
}

void set_tls_bls(LocalStorage storage)
{
	*get_ptr_tls_bls() = storage;
}

TaskMeta *TaskGroup::current_task() const
{
	return task_table_get(pl_self());
}

bthread_tag_t TaskGroup::tag() const
{
	return current_task()->tag;
}

TaskControl *TaskGroup::control() const
{
	return g_task_control;
}

bool TaskGroup::is_current_pthread_task() const
{
	return current_task()->attr.stack_type == BTHREAD_STACKTYPE_PTHREAD;
}

static TaskMeta *task_begin(const Start *s)
{
	TaskMeta *m = task_table_get(pl_self());

	m->attr = s->attr;
	m->priority_index = -1;
	m->tag = s->tag;
	m->start_ns = butil::cpuwide_time_ns();
	m->cpu_ns.store(0, butil::memory_order_relaxed);
	m->nswitch.store(0, butil::memory_order_relaxed);
	m->cpu_since_ns = clock_is_on() ? clock_of_thread_ns() : 0;
	m->fn = s->fn;
	m->arg = s->arg;
	m->local_storage = LOCAL_STORAGE_INIT;
	m->local_storage.rpcz_parent_span = s->span;
	m->tid.store(pl_self(), butil::memory_order_release);
	return m;
}

/* In bthread's order: spans and the log use keys. */
static void task_end(TaskMeta *m)
{
	LocalStorage *own = &m->local_storage;

	if (m->attr.flags & BTHREAD_INHERIT_SPAN && g_end_bthread_span)
		g_end_bthread_span();
	if (m->attr.flags & BTHREAD_LOG_START_AND_FINISH)
		LOG(INFO) << "Finished bthread " << pl_self();
	if (own->rpcz_parent_span && g_rpcz_parent_span_dtor)
		g_rpcz_parent_span_dtor(own->rpcz_parent_span);
	own->rpcz_parent_span = nullptr;
	if (own->keytable)
		return_keytable(m->attr.keytable_pool, own->keytable);
	own->keytable = nullptr;
	vars_count_task(m->tag, -1);
}

static void task_run(void *p)
{
	const Start s = *(Start *)p;
	TaskMeta *m;

	butil::return_object((Start *)p);
	m = task_begin(&s);
	try {
		s.fn(s.arg);
	} catch (ExitException &) {
	}
	task_end(m);
}

static enum pl_stack task_stack(bthread_stacktype_t type)
{
	switch (type) {
	case BTHREAD_STACKTYPE_PTHREAD:
		return PL_STACK_WORKER;
	case BTHREAD_STACKTYPE_SMALL:
		return PL_STACK_SMALL;
	case BTHREAD_STACKTYPE_LARGE:
		return PL_STACK_LARGE;
	}
	return PL_STACK_NORMAL;
}

static int task_spawn(bthread_t *tid, Start *s, uint32_t flags)
{
	struct pl_spawn_opts o = PL_SPAWN_OPTS_INIT;
	int err;

	o.stack = task_stack(s->attr.stack_type);
	o.flags = flags;
	o.group = group_of_tag(s->tag);
	if (s->attr.flags & BTHREAD_NOSIGNAL)
		o.flags |= PL_SPAWN_NOSIGNAL;
	if (s->attr.name[0])
		o.name = s->attr.name;
	const bthread_tag_t tag = s->tag;

	vars_count_task(tag, 1);
	err = pl_spawn(tid, task_run, s, &o);
	if (err) {
		vars_count_task(tag, -1);
		butil::return_object(s);
	} else {
		task_table_get(*tid);
	}
	return -err;
}

static void *span_to_inherit(bthread_attrflags_t flags)
{
	if (!(flags & BTHREAD_INHERIT_SPAN))
		return nullptr;
	if (g_create_bthread_span)
		return g_create_bthread_span();
	return tls_bls_ptr()->rpcz_parent_span;
}

static int task_start(bthread_t *tid, const bthread_attr_t *attr,
		      void *(*fn)(void *), void *arg, uint32_t flags)
{
	KeepErrno keep;
	bthread_t tid_unasked;
	Start *s;

	if (attr && !tag_is_known(attr->tag))
		return EINVAL;
	if (int err = runtime_start())
		return -err;
	s = butil::get_object<Start>();
	if (!s)
		return ENOMEM;
	s->fn = fn;
	s->arg = arg;
	s->attr = attr ? *attr : BTHREAD_ATTR_NORMAL;
	s->tag = s->attr.tag == BTHREAD_TAG_INVALID ? bthread_self_tag() :
						      s->attr.tag;
	s->span = span_to_inherit(s->attr.flags);
	LOG_IF(INFO, s->attr.flags & BTHREAD_LOG_START_AND_FINISH)
		<< "Starting a bthread of " << (void *)fn;
	return task_spawn(tid ? tid : &tid_unasked, s, flags);
}

/* A join of a task that has not ended times out; an interrupt is put back. */
bool TaskGroup::exists(bthread_t tid)
{
	bool is_interrupted = false;
	KeepErrno keep;
	int err;

	if (!address_meta(tid))
		return false;
	if (tid == pl_self())
		return true;
	while ((err = pl_join_until(tid, 0)) == -EINTR)
		is_interrupted = true;
	if (is_interrupted)
		pl_interrupt(pl_self());
	return err == -ETIMEDOUT;
}

/* A task has its attributes from its first line on: let it come to that. */
int TaskGroup::get_attr(bthread_t tid, bthread_attr_t *attr)
{
	KeepErrno keep;
	TaskMeta *m = address_meta(tid);

	while (m && m->tid.load(butil::memory_order_acquire) != tid) {
		if (!exists(tid))
			return EINVAL;
		pl_flush();
		bthread_usleep(100);
	}
	if (!m || !exists(tid))
		return EINVAL;
	*attr = m->attr;
	return 0;
}

void TaskGroup::set_stopped(bthread_t tid)
{
	TaskMeta *m = address_meta(tid);
	bthread_t was = m ? m->stopped.load(butil::memory_order_relaxed) : tid;

	/* That of a later task of the slot stays. */
	while ((int32_t)((tid >> 32) - (was >> 32)) > 0 || !was)
		if (m->stopped.compare_exchange_weak(was, tid))
			return;
}

bool TaskGroup::is_stopped(bthread_t tid)
{
	return !exists(tid) || address_meta(tid)->stopped.load() == tid;
}

int TaskGroup::interrupt(bthread_t tid, TaskControl *)
{
	return pl_interrupt(tid) ? EINVAL : 0;
}

/* As in bthread, an interrupt ends no join, and is used up. */
int TaskGroup::join(bthread_t tid, void **value)
{
	KeepErrno keep;
	int err;

	if (tid == pl_self() || !address_meta(tid))
		return EINVAL;
	do {
		err = pl_join(tid);
	} while (err == -EINTR);
	if (value)
		*value = nullptr;
	return err == -ESRCH ? EINVAL : -err;
}

}  // namespace bthread

using bthread::TaskGroup;

extern "C" {

int bthread_start_urgent(bthread_t *tid, const bthread_attr_t *attr,
			 void *(*fn)(void *), void *arg)
{
	return bthread::task_start(tid, attr, fn, arg, PL_SPAWN_URGENT);
}

int bthread_start_background(bthread_t *tid, const bthread_attr_t *attr,
			     void *(*fn)(void *), void *arg)
{
	return bthread::task_start(tid, attr, fn, arg, 0);
}

void bthread_flush()
{
	pl_flush();
}

int bthread_interrupt(bthread_t tid, bthread_tag_t)
{
	return TaskGroup::interrupt(tid, nullptr);
}

int bthread_stop(bthread_t tid)
{
	TaskGroup::set_stopped(tid);
	return bthread_interrupt(tid, BTHREAD_TAG_DEFAULT);
}

int bthread_stopped(bthread_t tid)
{
	return TaskGroup::is_stopped(tid);
}

bthread_t bthread_self(void)
{
	return pl_self();
}

/* A task has the tag of the one that started it, unless it was given one. */
bthread_tag_t bthread_self_tag(void)
{
	const bthread_t self = pl_self();

	return self ? bthread::task_table_get(self)->tag : BTHREAD_TAG_DEFAULT;
}

int bthread_equal(bthread_t a, bthread_t b)
{
	return a == b;
}

void bthread_exit(void *value)
{
	if (pl_self())
		throw bthread::ExitException(value);
	pthread_exit(value);
}

int bthread_join(bthread_t tid, void **value)
{
	return TaskGroup::join(tid, value);
}

int bthread_yield(void)
{
	bthread::KeepErrno keep;

	if (!pl_self())
		return sched_yield();
	pl_yield();
	return 0;
}

int bthread_usleep(uint64_t us)
{
	const bthread_t self = pl_self();
	const int was = errno;
	int err;

	if (!self || bthread::the_group.is_current_pthread_task())
		return ::usleep(us);
	if (!us)
		return bthread_yield();
	err = pl_sleep(us < PL_FOREVER / 2000 ? us * 1000 : PL_FOREVER / 2);
	if (err == -EINTR && !TaskGroup::is_stopped(self))
		return bthread::fail(EINTR);
	if (err)
		return bthread::fail(ESTOP);
	errno = was;
	return 0;
}

/* It saves bthread a signal to a worker that spins; there is none here. */
int bthread_about_to_quit()
{
	return pl_self() ? 0 : EPERM;
}

}  // extern "C"
