/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * spawn: makes a task
 *
 * A new task is a slot and a function; it gets a stack when it first runs.
 */
#include "rt/runtime.h"
#include "rt/config.h"
#include "base/base.h"
#include "queue/aside.h"
#include "queue/latency.h"
#include "wait/wait.h"
#include "base/inject.h"
#include "run/run.h"

#include <string.h>

#define PL_SPAWN_ALL	(PL_SPAWN_URGENT | PL_SPAWN_NOSIGNAL | \
			 PL_SPAWN_BLOCKING | PL_SPAWN_WAIT | \
			 PL_SPAWN_BACKGROUND)
/* One at most: each says where the task is queued. */
#define PL_SPAWN_PLACES	(PL_SPAWN_URGENT | PL_SPAWN_BLOCKING | \
			 PL_SPAWN_BACKGROUND)
/* All of them may stand together. */
#define PL_SPAWN_COMMON	(PL_SPAWN_URGENT | PL_SPAWN_NOSIGNAL)
/* Internal: a task of the library, which counts but is not refused. */
#define SPAWN_OWN	(1U << 31)

struct spawn_args {
	void		(*fn)(void *arg);
	uint32_t	cls;
	uint32_t	flags;
	const char	*name;
	size_t		stack_size;	/* wanted; 0: that of cls */
	uint64_t	deadline_ns;	/* of a spawn that waits; 0: none */
};

static __pl_noinline bool are_flags_bad(uint32_t flags)
{
	uint32_t places = flags & PL_SPAWN_PLACES;

	return flags & ~PL_SPAWN_ALL || places & (places - 1);
}

static __pl_always_inline int check_opts(const struct pl_spawn_opts *opts,
					 struct spawn_args *o)
{
	struct pl_spawn_opts known;

	if (!o->fn)
		return -EINVAL;
	if (!opts)
		return 0;
	if (unlikely(opts->size != sizeof(*opts))) {
		if (!pl__opts_copy(&known, sizeof(known), opts))
			return -EINVAL;
		opts = &known;
	}
	if (opts->stack > PL_STACK_WORKER ||
	    (unlikely(opts->flags & ~PL_SPAWN_COMMON) &&
	     are_flags_bad(opts->flags)))
		return -EINVAL;
	o->cls = opts->stack;
	o->flags = opts->flags;
	o->name = opts->name;
	o->stack_size = opts->stack_size;
	o->deadline_ns = opts->deadline_ns;
	return opts->stack_size && opts->stack != PL_STACK_NORMAL ? -EINVAL : 0;
}

/* The class of the smallest stacks that are large enough.  Needs a runtime. */
static int choose_stack(struct spawn_args *o)
{
	const size_t *size = pl__rt.cfg.stack_size;
	size_t best = SIZE_MAX;
	uint32_t cls;

	if (likely(!o->stack_size))
		return 0;
	for (cls = 0; cls < PL_STACK_WORKER; cls++) {
		if (size[cls] < o->stack_size || size[cls] >= best)
			continue;
		best = size[cls];
		o->cls = cls;
	}
	return best == SIZE_MAX ? -EINVAL : 0;
}

/*
 * What shows the name may show it to a terminal: control characters, those of
 * UTF-8 after the byte 0xc2 as well, become '?'.
 */
static __pl_noinline void keep_name(char *to, size_t size, const char *from)
{
	unsigned char c, last = 0;
	size_t i;

	for (i = 0; i < size - 1 && from[i]; i++) {
		c = (unsigned char)from[i];
		to[i] = c < ' ' || c == 0x7f ||
			(last == 0xc2 && c >= 0x80 && c < 0xa0) ? '?' : from[i];
		last = c;
	}
	to[i] = '\0';
}

/* A slot for the calling thread, which is no worker; they come in batches. */
static struct pl__task *slot_outside(struct pl__stripe *s)
{
	struct pl__task *t;

	pl__lock(&s->lock);
	t = pl__slab_alloc(&pl__rt.tasks, &s->tasks);
	pl__unlock(&s->lock);
	return t;
}

/* In slot @t; NULL: there was none. */
static struct pl__task *task_new(struct pl__task *t, const struct spawn_args *o,
				 void *arg)
{
	uint32_t version;

	if (unlikely(!t))
		return NULL;
	t->fn = o->fn;
	t->arg = arg;
	t->cls = (uint8_t)o->cls;
	t->score = 0;
	t->stack = NULL;
	if (o->name)
		keep_name(t->waiter.name, sizeof(t->waiter.name), o->name);
	else
		t->waiter.name[0] = '\0';
	version = load_relaxed(&t->version) + 1;
	store_relaxed(&t->state, (uint64_t)version << 32);
	store_release(&t->version, version);
	PL_PROBE3(spawn, t, t->fn, t->waiter.name);
	return t;
}

/*
 * What spawns look at while a gate is closed: 1: the task counts against the
 * limit; 0: it does not; or why it may not be spawned.  The caller may be on
 * another worker then.
 */
static __pl_noinline int admit_slow(const struct spawn_args *o)
{
	uint32_t gates = load_relaxed(&pl__rt.gates);
	int ret;

	/* Others wait for stacks: memory is nearly used up. */
	if (gates & PL__GATE_STACKLESS)
		return -EAGAIN;
	if (!(gates & PL__GATE_TASK_LIMIT) || o->flags & SPAWN_OWN)
		return 0;
	ret = pl__task_limit_enter(o->flags & PL_SPAWN_WAIT,
				   o->deadline_ns ? o->deadline_ns :
						    PL_FOREVER);
	return ret ? ret : 1;
}

static inline int admit(const struct spawn_args *o)
{
	return likely(!load_relaxed(&pl__rt.gates)) ? 0 : admit_slow(o);
}

/* True: @t is set aside.  False: the caller queues it. */
static __pl_noinline bool spawn_elsewhere(struct pl__worker *w,
					  struct pl__task *t, uint32_t flags)
{
	if (flags & PL_SPAWN_BLOCKING)
		return pl__aside_spawn(w, t);
	pl__background_begin(t);
	return false;
}

static __pl_always_inline int spawn_admitted(struct pl__worker *w,
					     pl_task_t *out,
					     const struct spawn_args *o,
					     void *arg, bool is_counted)
{
	struct pl__task *t = task_new(pl__slab_alloc(&pl__rt.tasks, &w->tasks),
				      o, arg);

	if (unlikely(!t))
		return -EAGAIN;
	if (is_counted)
		atomic_fetch_or(&t->state, PL__TASK_COUNTED);
	if (out)
		*out = pl__task_handle(t);
	counter_inc(&w->stat.spawned);

	if (o->flags & PL_SPAWN_URGENT &&
	    pl__switch_to(t, o->flags & PL_SPAWN_NOSIGNAL))
		return 0;
	if (unlikely(o->flags & (PL_SPAWN_BLOCKING | PL_SPAWN_BACKGROUND)) &&
	    spawn_elsewhere(w, t, o->flags))
		return 0;
	if (unlikely(--w->spawns_to_sample < 0))
		pl__spawn_sample_by(w, t);
	pl__ready_quietly_by(w, t);
	if (o->flags & PL_SPAWN_NOSIGNAL) {
		w->nr_unsignalled++;
		counter_inc(&w->stat.nosignals);
		return 0;
	}
	counter_inc(&w->stat.signals);
	pl__notify_one(w->group);
	return 0;
}

static __pl_noinline int spawn_gated(pl_task_t *out, const struct spawn_args *o,
				     void *arg)
{
	int counted = admit_slow(o), ret;

	if (counted < 0)
		return counted;
	ret = spawn_admitted(pl__self(), out, o, arg, counted);
	if (ret && counted)
		pl__task_limit_leave();
	return ret;
}

static int spawn_on(struct pl__worker *w, pl_task_t *out,
		    const struct spawn_args *o, void *arg)
{
	if (unlikely(load_relaxed(&pl__rt.gates)))
		return spawn_gated(out, o, arg);
	return spawn_admitted(w, out, o, arg, false);
}

/* Runs inside of the runtime, which waits for tasks that count as spawned. */
static int new_outside(struct pl__task **t, const struct spawn_args *o,
		       void *arg)
{
	int counted = admit(o), ret;
	struct pl__stripe *s;

	if (counted < 0)
		return counted;
	s = pl__stripe();
	atomic_fetch_add(&s->spawned, 1);
	ret = atomic_load(&pl__rt.state) == PL__RT_RUNNING ? 0 : -ECANCELED;
	if (!ret) {
		*t = task_new(slot_outside(s), o, arg);
		ret = *t ? 0 : -EAGAIN;
	}
	if (!ret && counted)
		atomic_fetch_or(&(*t)->state, PL__TASK_COUNTED);
	if (ret)
		pl__task_take_back();
	if (ret && counted)
		pl__task_limit_leave();
	return ret;
}

static int spawn_outside(pl_task_t *out, const struct spawn_args *o, void *arg)
{
	struct pl__task *t;
	int ret = new_outside(&t, o, arg);

	if (ret)
		return ret;
	if (out)
		*out = pl__task_handle(t);
	if (o->flags & (PL_SPAWN_BLOCKING | PL_SPAWN_BACKGROUND) &&
	    spawn_elsewhere(NULL, t, o->flags))
		return 0;
	if (load_relaxed(&pl__stripe()->spawned) % PL__SAMPLE_OUTSIDE == 1)
		pl__spawn_sample(t);
	pl__ready_quietly(NULL, t);
	return 0;
}

static int spawn_entered(pl_task_t *out, size_t nr, const struct spawn_args *o,
			 void *const *args)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < nr && !ret; i++)
		ret = spawn_outside(out ? &out[i] : NULL, o,
				    args ? args[i] : NULL);
	i -= !!ret;
	if (i)
		pl__interrupt_restore(ret);
	if (o->flags & PL_SPAWN_NOSIGNAL)
		pl__self_add_unsignalled((uint32_t)i);
	else if (i)
		pl__notify_many(&pl__rt.main, (uint32_t)i);
	return i ? (int)i : ret;
}

static int spawn_from_thread(pl_task_t *out, size_t nr, struct spawn_args *o,
			     void *const *args)
{
	int ret = pl__runtime_enter();

	if (ret)
		return ret;
	ret = choose_stack(o);
	if (!ret)
		ret = spawn_entered(out, nr, o, args);
	pl__rt_exit();
	return ret;
}

__pl_no_frame
int pl_spawn(pl_task_t *out, void (*fn)(void *arg), void *arg,
	     const struct pl_spawn_opts *opts)
{
	struct spawn_args o = { .fn = fn };
	struct pl__worker *w;
	int ret = check_opts(opts, &o);

	if (ret)
		return ret;
	w = pl__self();
	if (w) {
		ret = choose_stack(&o);
		return ret ? ret : spawn_on(w, out, &o, arg);
	}
	ret = spawn_from_thread(out, 1, &o, &arg);
	return ret < 0 ? ret : 0;
}

int pl_spawn_many(pl_task_t *out, size_t nr, void (*fn)(void *arg),
		  void *const *args, const struct pl_spawn_opts *opts)
{
	struct spawn_args o = { .fn = fn }, quiet;
	struct pl__worker *w;
	int ret = check_opts(opts, &o);
	size_t i;

	if (ret || o.flags & PL_SPAWN_URGENT || nr > INT32_MAX)
		return -EINVAL;
	w = pl__self();
	if (!w)
		return nr ? spawn_from_thread(out, nr, &o, args) : 0;

	ret = choose_stack(&o);
	quiet = o;
	quiet.flags |= PL_SPAWN_NOSIGNAL;
	for (i = 0; i < nr && !ret; i++)
		ret = spawn_on(w, out ? &out[i] : NULL, &quiet,
			       args ? args[i] : NULL);
	i -= !!ret;
	if (i)
		pl__interrupt_restore(ret);
	if (i && !(o.flags & PL_SPAWN_NOSIGNAL))
		pl_flush();
	return i ? (int)i : ret;
}

int pl_flush(void)
{
	struct pl__worker *w = pl__self();
	uint32_t nr;

	if (w) {
		nr = w->nr_unsignalled;
		w->nr_unsignalled = 0;
		if (nr) {
			counter_inc(&w->stat.signals);
			pl__notify_many(w->group, nr);
		}
		return (int)nr;
	}
	nr = pl__self_take_unsignalled();
	if (nr && pl__rt_enter()) {
		pl__notify_many(&pl__rt.main, nr);
		pl__rt_exit();
	}
	return (int)nr;
}

/* ---- in two steps ---- */

static int reserve_outside(struct pl__task **t, const struct spawn_args *o,
			   void *arg)
{
	int ret = pl__runtime_enter();

	if (ret)
		return ret;
	ret = new_outside(t, o, arg);
	if (ret)
		pl__rt_exit();
	return ret;
}

static int spawn_reserve(struct pl__task **out, const struct spawn_args *o,
			 void *arg)
{
	struct pl__worker *w = pl__self();
	int ret;

	if (!w)
		return reserve_outside(out, o, arg);
	ret = admit(o);
	if (ret)
		return ret;
	*out = task_new(pl__slab_alloc(&pl__rt.tasks, &w->tasks), o, arg);
	return *out ? 0 : -EAGAIN;
}

int pl__spawn_reserve(struct pl__task **out, void (*fn)(void *arg), void *arg,
		      const char *name)
{
	struct spawn_args o = { .fn = fn, .name = name, .flags = SPAWN_OWN };

	return spawn_reserve(out, &o, arg);
}

int pl__spawn_reserve_blocking(struct pl__task **out, void (*fn)(void *arg),
			       void *arg, const char *name)
{
	struct spawn_args o = { .fn = fn, .name = name, .flags = SPAWN_OWN,
				.cls = PL_STACK_WORKER };

	return spawn_reserve(out, &o, arg);
}

static void spawn_count(struct pl__worker *w)
{
	if (!w)
		return;
	counter_inc(&w->stat.spawned);
	counter_inc(&w->stat.signals);
}

void pl__spawn_commit(struct pl__task *t)
{
	struct pl__worker *w = pl__self();

	spawn_count(w);
	pl__ready(t);
	if (!w)
		pl__rt_exit();
}

void pl__spawn_commit_blocking(struct pl__task *t)
{
	struct pl__worker *w = pl__self();

	spawn_count(w);
	if (!pl__aside_spawn(w, t))
		pl__ready(t);
	if (!w)
		pl__rt_exit();
}

void pl__spawn_cancel(struct pl__task *t)
{
	struct pl__worker *w = pl__self();
	uint32_t version = load_relaxed(&t->version) + 1;

	if (unlikely(!version))
		store_relaxed(&pl__task_has_wrapped, true);
	atomic_store(&t->state, (uint64_t)version << 32);
	atomic_store(&t->version, version);
	pl__slab_free(&pl__rt.tasks, w ? &w->tasks : NULL, t);
	if (!w) {
		pl__task_take_back();
		pl__rt_exit();
	}
}

/*
 * task_limit: the tasks that are alive, where max_tasks limits them
 *
 * Each spawn takes the count up by one compare-and-swap, so that it is never
 * above the limit; the end of a task takes it down.  A spawner that waits waits
 * on the count.
 *
 *	spawner that waits			task that ends
 *	nr_waiting++		[limit-a]	nr--		[limit-b]
 *	until it has taken nr up		if (nr_waiting)
 *		wait while nr is the limit		wake one
 *
 * Invariant: no spawner sleeps while fewer tasks are alive than the limit and
 * no wake is due.  Each side writes its word before it reads the other's:
 * either the task that ends sees nr_waiting, or the spawner sees the lower nr
 * and does not wait; otherwise the spawner sleeps although it may spawn, for
 * ever if that was the last task.
 *
 * A spawner that does not wait may be first after the wake.  The one that was
 * woken finds the limit reached then, and waits again as the first; the task
 * that overtook it wakes it at its end.  A wait that ends for another reason
 * was not woken, so it takes no wake along.
 *
 * The library's own tasks, of queues and of the I/O of threads, neither count
 * nor wait: a push or a read is no spawn.
 */

static bool task_limit_take(struct pl__task_limit *l)
{
	uint32_t nr = load_relaxed(&l->nr);

	do {
		if (nr >= pl__rt.cfg.max_tasks)
			return false;
	} while (!atomic_compare_exchange_weak(&l->nr, &nr, nr + 1));
	return true;
}

static int task_limit_wait(struct pl__task_limit *l, uint64_t deadline_ns)
{
	uint32_t flags = PL__FOR_SPAWN;
	int ret;

	while (!task_limit_take(l)) {
		ret = pl__wait(&l->nr, pl__rt.cfg.max_tasks, deadline_ns,
			       flags);
		if (ret && ret != -EAGAIN)
			return ret;
		if (!ret)
			flags |= PL__WAIT_FIRST;
	}
	return 0;
}

int pl__task_limit_enter(bool may_wait, uint64_t deadline_ns)
{
	struct pl__task_limit *l = &pl__rt.task_limit;
	int ret;

	if (task_limit_take(l))
		return 0;
	if (!may_wait) {
		atomic_fetch_add(&l->nr_refused, 1);
		return -EAGAIN;
	}
	ret = pl__wait_pending();
	if (ret)
		return ret;
	/* What the caller has spawned quietly may have to end first. */
	pl_flush();
	if (!pl__self())
		pl__notify_one(&pl__rt.main);
	atomic_fetch_add(&l->nr_waited, 1);
	/* [limit-a] pairs with [limit-b] in pl__task_limit_leave(). */
	atomic_fetch_add(&l->nr_waiting, 1);
	PL_INJECT("limit-a");
	ret = task_limit_wait(l, deadline_ns);
	atomic_fetch_sub(&l->nr_waiting, 1);
	return ret;
}

void pl__task_limit_leave(void)
{
	struct pl__task_limit *l = &pl__rt.task_limit;

	/* [limit-b] pairs with [limit-a] in pl__task_limit_enter(). */
	atomic_fetch_sub(&l->nr, 1);
	PL_INJECT("limit-b");
	if (atomic_load(&l->nr_waiting))
		pl__wake(&l->nr, 1);
}

static void __attribute__((constructor)) task_limit_hook_in(void)
{
	pl__leave_task_limit = pl__task_limit_leave;
}

void pl__task_limit_start(void)
{
	store_relaxed(&pl__rt.gates, pl__rt.cfg.max_tasks ?
		      PL__GATE_TASK_LIMIT : 0);
}

void pl__task_limit_stop(void)
{
	store_relaxed(&pl__rt.gates, 0);
	store_relaxed(&pl__rt.task_limit.nr_refused, 0);
	store_relaxed(&pl__rt.task_limit.nr_waited, 0);
}
