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
	pl_group_t	group;
	struct pl__group *to;	/* another than the caller's, or NULL */
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
	o->group = opts->group;
	if (unlikely(opts->reserved))
		return -EINVAL;
	return opts->stack_size && opts->stack != PL_STACK_NORMAL ? -EINVAL : 0;
}

/* The smallest stacks that are large enough. */
static int choose_stack(struct spawn_args *o)
{
	const size_t *size = pl__rt.cfg.stack_size;
	size_t best = SIZE_MAX;
	uint32_t cls;

	for (cls = 0; cls < PL_STACK_WORKER; cls++) {
		if (size[cls] < o->stack_size || size[cls] >= best)
			continue;
		best = size[cls];
		o->cls = cls;
	}
	return best == SIZE_MAX ? -EINVAL : 0;
}

static __pl_noinline int choose_slow(struct pl__worker *w, struct spawn_args *o)
{
	struct pl__group *g;

	if (o->group) {
		g = pl__group_at(o->group - 1);
		if (!g)
			return -EINVAL;
		if (g != pl__own_group(w))
			o->to = g;
	}
	return o->stack_size ? choose_stack(o) : 0;
}

/* Group and stack.  Needs a runtime; @w is the caller, or NULL. */
static inline int choose_place(struct pl__worker *w, struct spawn_args *o)
{
	return likely(!o->stack_size && !o->group) ? 0 : choose_slow(w, o);
}

/* Those of UTF-8 come after the byte 0xc2. */
__pl_noinline void pl__keep_name(char *to, size_t size, const char *from)
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
		pl__keep_name(t->waiter.name, sizeof(t->waiter.name), o->name);
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
static __pl_noinline int admit_slow(struct pl__worker *w,
				    const struct spawn_args *o)
{
	uint32_t gates = load_relaxed(&pl__rt.gates);
	int ret;

	/* Others wait for stacks: memory is nearly used up. */
	if (gates & PL__GATE_STACKLESS)
		return -EAGAIN;
	if (!(gates & PL__GATE_TASK_LIMIT) || o->flags & SPAWN_OWN)
		return 0;
	ret = pl__task_limit_enter(o->to ? o->to : pl__own_group(w),
				   o->flags & PL_SPAWN_WAIT,
				   o->deadline_ns ? o->deadline_ns :
						    PL_FOREVER);
	return ret ? ret : 1;
}

static inline int admit(struct pl__worker *w, const struct spawn_args *o)
{
	return likely(!load_relaxed(&pl__rt.gates)) ? 0 : admit_slow(w, o);
}

/* True: @t is set aside.  False: the caller queues it. */
static __pl_noinline bool spawn_elsewhere(struct pl__worker *w,
					  struct pl__task *t, uint32_t flags)
{
	if (flags & PL_SPAWN_BLOCKING)
		return pl__aside_spawn(w, t);
	pl__place_begin(t, t->waiter.place | PL__PLACE_BACKGROUND);
	return false;
}

/* The new task @t of another group than the caller's; notifies that. */
static void spawn_abroad(struct pl__task *t, const struct spawn_args *o)
{
	struct pl__group *to = o->to;

	pl__place_begin(t, pl__group_place(to));
	if (o->flags & (PL_SPAWN_BLOCKING | PL_SPAWN_BACKGROUND) &&
	    spawn_elsewhere(NULL, t, o->flags))
		return;
	pl__ready_to_group(t);
	pl__notify_one(to);
}

/* Of a group that the program has made; true: nothing is left to do. */
static bool spawn_into_group(struct pl__worker *w, struct pl__task *t,
			     const struct spawn_args *o)
{
	if (o->to)
		spawn_abroad(t, o);
	else if (w->place)
		pl__place_begin(t, w->place);
	return o->to;
}

static __pl_always_inline int spawn_admitted(struct pl__worker *w,
					     pl_task_t *out,
					     const struct spawn_args *o,
					     void *arg, bool is_gated,
					     bool is_counted)
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

	if (is_gated && spawn_into_group(w, t, o)) {
		counter_inc(&w->stat.signals);
		return 0;
	}
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

static __pl_noinline int spawn_gated(struct pl__worker *w, pl_task_t *out,
				     const struct spawn_args *o, void *arg)
{
	struct pl__group *g = o->to ? o->to : w->group;
	int counted = admit_slow(w, o), ret;

	if (counted < 0)
		return counted;
	ret = spawn_admitted(pl__self(), out, o, arg, true, counted);
	if (ret && counted)
		pl__task_limit_leave(g);
	return ret;
}

static int spawn_on(struct pl__worker *w, pl_task_t *out,
		    const struct spawn_args *o, void *arg)
{
	if (unlikely(load_relaxed(&pl__rt.gates)))
		return spawn_gated(w, out, o, arg);
	return spawn_admitted(w, out, o, arg, false, false);
}

/* Runs inside of the runtime, which waits for tasks that count as spawned. */
static int new_outside(struct pl__task **t, const struct spawn_args *o,
		       void *arg)
{
	int counted = admit(NULL, o), ret;
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
		pl__task_limit_leave(o->to ? o->to : &pl__rt.main);
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
	if (o->to)
		pl__place_begin(t, pl__group_place(o->to));
	if (o->flags & (PL_SPAWN_BLOCKING | PL_SPAWN_BACKGROUND) &&
	    spawn_elsewhere(NULL, t, o->flags))
		return 0;
	if (load_relaxed(&pl__stripe()->spawned) % PL__SAMPLE_OUTSIDE == 1)
		pl__spawn_sample(t);
	pl__ready_to_group(t);
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
	if (o->flags & PL_SPAWN_NOSIGNAL && !o->to)
		pl__self_add_unsignalled((uint32_t)i);
	else if (i)
		pl__notify_many(o->to ? o->to : &pl__rt.main, (uint32_t)i);
	return i ? (int)i : ret;
}

static int spawn_from_thread(pl_task_t *out, size_t nr, struct spawn_args *o,
			     void *const *args)
{
	int ret = pl__runtime_enter();

	if (ret)
		return ret;
	ret = choose_place(NULL, o);
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
		ret = choose_place(w, &o);
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

	ret = choose_place(w, &o);
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

static int reserve_inside(struct pl__worker *w, struct pl__task **t,
			  const struct spawn_args *o, void *arg)
{
	int ret = admit(w, o);

	if (ret)
		return ret;
	*t = task_new(pl__slab_alloc(&pl__rt.tasks, &w->tasks), o, arg);
	return *t ? 0 : -EAGAIN;
}

static int spawn_reserve(struct pl__task **out, const struct spawn_args *o,
			 void *arg)
{
	struct pl__worker *w = pl__self();
	uint16_t place = pl__group_place(o->to ? o->to : pl__own_group(w));
	int ret = w ? reserve_inside(w, out, o, arg) :
		      reserve_outside(out, o, arg);

	if (!ret && unlikely(place))
		pl__place_begin(*out, place);
	return ret;
}

int pl__spawn_reserve(struct pl__task **out, struct pl__group *g,
		      void (*fn)(void *arg), void *arg, const char *name)
{
	struct spawn_args o = { .fn = fn, .name = name, .flags = SPAWN_OWN,
				.to = g };

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

	pl__place_end(t);
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
