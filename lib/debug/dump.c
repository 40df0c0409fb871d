/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * dump: what every task does, or waits for
 *
 * A dump stops nothing and takes no lock: tasks continue, end, and give their
 * stacks back while it reads them.  So it reads by way of the kernel, which
 * fails where nothing is mapped; and if a task has changed by the time that its
 * stack was read, the dump leaves out what the stack said.
 */
#include "debug/dump.h"
#include "debug/names.h"
#include "debug/stat.h"
#include "debug/unwind.h"
#include "debug/thread_state.h"
#include "run/run.h"
#include "watch/watch.h"
#include "base/base.h"
#include "base/sys.h"
#include "base/sigsafe_buf.h"
#include "ring/ring.h"
#include "wait/wait_lone.h"

#include "parklot.h"

#include <liburing.h>
#include <unistd.h>

/* A task at a moment. */
struct view {
	const struct pl__task	*at;
	struct pl__task		t;
	/* copy, if the task has one that is mapped */
	struct pl__stack	stack;
	bool			has_stack;
	/* number of the worker that runs it, or -1 */
	int			worker;
};

struct sums {
	uint32_t	tasks;
	uint32_t	threads;
};

static const char *const for_what[] = {
	[PL__FOR_WORD]		= "word",
	[PL__FOR_MUTEX]		= "mutex",
	[PL__FOR_COND]		= "cond",
	[PL__FOR_RWLOCK]	= "rwlock",
	[PL__FOR_SEM]		= "sem",
	[PL__FOR_LATCH]		= "latch",
	[PL__FOR_BARRIER]	= "barrier",
	[PL__FOR_ONCE]		= "once",
	[PL__FOR_CHAN]		= "chan",
	[PL__FOR_QUEUE]		= "queue",
	[PL__FOR_JOIN]		= "join",
	[PL__FOR_SLEEP]		= "sleep",
	[PL__FOR_SCOPE]		= "scope",
	[PL__FOR_IO]		= "io",
	[PL__FOR_SPAWN]		= "spawn",
	[PL__FOR_GETADDRINFO]	= "getaddrinfo",
	[PL__FOR_GETNAMEINFO]	= "getnameinfo",
};

/* ---- reading ---- */

/* 0: it does not wait; odd: in a single-waiter slot. */
static uintptr_t word_of_task(const struct pl__task *t)
{
	_Atomic uint32_t *word = load_relaxed(&t->waiter.word);

	if (!pl__wait_is_lone(word))
		return (uintptr_t)word;
	return pl__wait_bits(word) == PL__WAIT_ASLEEP ?
		(uintptr_t)pl__wait_with_bits(word, 0) : 0;
}

static uintptr_t word_of(const struct view *v)
{
	return word_of_task(&v->t);
}

static bool is_task(const struct view *v)
{
	return load_relaxed(&v->t.version) & 1;
}

/* The number of the worker that runs @t, which does not wait. */
static int runner_of(const struct pl__task *t)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	struct pl__task *current;

	for (i = 0; i < nr; i++)
		if (pl__read_own_mem(&current, &pl__rt.workers[i]->current,
				     sizeof(current)) && current == t)
			return (int)i;
	return -1;
}

static bool dump_look(struct view *v, const struct pl__task *at)
{
	v->at = at;
	v->worker = -1;
	if (!pl__read_own_mem(&v->t, at, sizeof(v->t)))
		return false;
	v->has_stack = is_task(v) && v->t.stack &&
		       pl__read_own_mem(&v->stack, v->t.stack,
					sizeof(v->stack));
	if (v->has_stack && (!word_of(v) || v->t.cls == PL_STACK_WORKER))
		v->worker = runner_of(at);
	return true;
}

/* True: the task, which did not run, has not run since the view was taken. */
static bool is_as_it_was(const struct view *v)
{
	struct pl__task now;

	return pl__read_own_mem(&now, v->at, sizeof(now)) &&
	       load_relaxed(&now.version) == load_relaxed(&v->t.version) &&
	       now.waiter.nr == v->t.waiter.nr && now.ctx.sp == v->t.ctx.sp &&
	       word_of_task(&now) == word_of(v) &&
	       (word_of(v) || runner_of(v->at) < 0);
}

static int look_at_living(struct view *v, pl_task_t h)
{
	const struct pl__task *at = pl__task_slot(h);

	if (!at)
		return -ESRCH;
	if (!dump_look(v, at))
		return -EPERM;
	return is_task(v) && pl__task_handle(&v->t) == h ? 0 : -ESRCH;
}

static bool is_in_stack(const struct view *v, uintptr_t p)
{
	return v->has_stack && v->stack.base && p >= (uintptr_t)v->stack.base &&
	       p < (uintptr_t)v->t.stack;
}

/* ---- printing ---- */

#define NAME_SIZE	sizeof(((struct pl__stack_user *)0)->name)

/* A task without a stack has not run; if its stack is gone, it has ended. */
static void copy_name(char *to, const struct view *v)
{
	if (v->has_stack)
		memcpy(to, v->stack.user.name, NAME_SIZE);
	else if (!v->t.stack)
		memcpy(to, v->t.waiter.name, NAME_SIZE);
}

static void put_name(struct pl__sigsafe_buf *text, const struct view *v)
{
	char name[NAME_SIZE + 1] = "";

	copy_name(name, v);
	pl__sigsafe_hex(text, v->t.obj.slot |
			   (uint64_t)load_relaxed(&v->t.version) << 32);
	pl__sigsafe_put(text, " '");
	pl__sigsafe_put(text, name);
	pl__sigsafe_put(text, "'");
}

static void put_seconds(struct pl__sigsafe_buf *text, uint64_t ns)
{
	uint64_t ms = ns / 1000000 % 1000;

	pl__sigsafe_number(text, ns / NSEC_PER_SEC, 10);
	pl__sigsafe_put(text, ms < 10 ? ".00" : ms < 100 ? ".0" : ".");
	pl__sigsafe_number(text, ms, 10);
	pl__sigsafe_put(text, " s");
}

/*
 * A wait in a single-waiter slot, or of a thread on the worker's stack, has
 * none.
 */
static void put_deadline(struct pl__sigsafe_buf *text, const struct view *v)
{
	uint64_t deadline_ns, now = pl__now_ns();

	if (word_of(v) & 1 || v->t.waiter.is_thread ||
	    !pl__timer_deadline(pl__rt.timers, v->t.waiter.timer, &deadline_ns))
		return;
	pl__sigsafe_put(text, ", for ");
	put_seconds(text, deadline_ns > now ? deadline_ns - now : 0);
	pl__sigsafe_put(text, " more");
}

static void put_joined(struct pl__sigsafe_buf *text, uintptr_t at)
{
	const struct pl__task *t = pl__slab_find(&pl__rt.tasks, (void *)at);
	struct view joined;

	if (!t || !dump_look(&joined, t))
		return;
	pl__sigsafe_put(text, " of ");
	put_name(text, &joined);
}

static uint8_t what_of(const struct view *v)
{
	return word_of(v) & 1 ? PL__FOR_JOIN : v->t.waiter.what;
}

static const char *name_of_wait(const struct view *v)
{
	return what_of(v) < PL__NR_FOR ? for_what[what_of(v)] : "?";
}

/* The operation that a task waits for, which is on its stack. */
static bool read_sqe(struct io_uring_sqe *sqe, const struct view *v)
{
	struct pl__request *at = container_of((_Atomic uint32_t *)word_of(v),
					      struct pl__request, done);
	const struct io_uring_sqe *from;

	return pl__read_own_mem(&from, &at->req.sqe, sizeof(from)) &&
	       pl__read_own_mem(sqe, from, sizeof(*sqe)) && is_as_it_was(v);
}

/* A thread that is no task waits for the task that makes its request. */
static void put_io(struct pl__sigsafe_buf *text, const struct view *v)
{
	const struct pl__op_name *op;
	struct io_uring_sqe sqe;

	if (!is_task(v) || !read_sqe(&sqe, v))
		return;
	op = pl__op_name(sqe.opcode);
	pl__sigsafe_put(text, ": ");
	pl__sigsafe_put(text, op ? op->name : "operation ");
	if (!op)
		pl__sigsafe_number(text, sqe.opcode, 10);
	if (!op || !op->has_fd)
		return;
	pl__sigsafe_put(text, " fd ");
	pl__sigsafe_int(text, sqe.fd);
}

/* What waiters share, and may be looked for. */
static bool is_shared(const struct view *v, uint8_t what)
{
	return what != PL__FOR_SLEEP && what != PL__FOR_GETADDRINFO &&
	       what != PL__FOR_GETNAMEINFO && !is_in_stack(v, word_of(v));
}

static void put_wait(struct pl__sigsafe_buf *text, const struct view *v)
{
	uintptr_t word = word_of(v);
	uint8_t what = what_of(v);

	pl__sigsafe_put(text, " waits for ");
	pl__sigsafe_put(text, name_of_wait(v));
	if (what == PL__FOR_JOIN) {
		put_joined(text, word & ~(uintptr_t)1);
	} else if (what == PL__FOR_IO) {
		put_io(text, v);
	} else if (is_shared(v, what)) {
		pl__sigsafe_put(text, " ");
		pl__sigsafe_hex(text, word);
	}
	put_deadline(text, v);
}

/* What sysmon has found out, if /proc cannot be read. */
static enum pl__thread_is guess_by_duty(struct pl__worker *w)
{
	if (pl__is_blocked(w) || load_relaxed(&w->duty) == PL__SLEEPS)
		return PL__THREAD_BLOCKED;
	return pl__is_stalled(w) ? PL__THREAD_COMPUTES : PL__THREAD_UNKNOWN;
}

static uint32_t ms_in_state(struct pl__worker *w, enum pl__thread_is is)
{
	uint64_t now = pl__now_ns();
	uint32_t ran_ms, task_ms = pl__since_task_ms(w, now);

	ran_ms = pl__since_ran_ms(w, pl__tid_cpu_ns(load_relaxed(&w->tid)),
				  now);
	return is == PL__THREAD_COMPUTES ? task_ms : ran_ms;
}

/*
 * The thread that runs the task is blocked in a call, or computes; *@ms is for
 * how long at least.  False: not known, or the task has left it meanwhile.
 */
static bool look_at_thread(struct pl__thread_state *s, uint32_t *ms,
			   const struct view *v)
{
	struct pl__worker *w = pl__rt.workers[v->worker];
	uint32_t tick = load_relaxed(&w->tick);

	pl__thread_look(s, 0, load_relaxed(&w->tid));
	if (!s->is) {
		s->is = guess_by_duty(w);
		s->nr = PL__THREAD_SOME_CALL;
	}
	*ms = ms_in_state(w, s->is);
	return s->is && tick == load_relaxed(&w->tick) &&
	       runner_of(v->at) == v->worker;
}

static void put_thread(struct pl__sigsafe_buf *text, const struct view *v)
{
	struct pl__thread_state s;
	char words[80];
	uint32_t ms;

	if (!look_at_thread(&s, &ms, v))
		return;
	pl__thread_say(&s, words, sizeof(words));
	pl__sigsafe_put(text, ", ");
	pl__sigsafe_put(text, words);
	if (!ms)
		return;
	pl__sigsafe_put(text, ", since at least ");
	put_seconds(text, ms * 1000000ULL);
}

static void put_place(struct pl__sigsafe_buf *text, uint32_t place)
{
	struct pl__group *g = pl__group_at(place >> PL__PLACE_GROUP_SHIFT);

	if (g && g->index) {
		pl__sigsafe_put(text, ", group ");
		pl__sigsafe_number(text, g->index + 1, 10);
		pl__sigsafe_put(text, *g->name ? " " : "");
		pl__sigsafe_put(text, g->name);
	}
	if (place & PL__PLACE_BACKGROUND)
		pl__sigsafe_put(text, ", background");
}

static void put_state(struct pl__sigsafe_buf *text, const struct view *v)
{
	uint64_t state = load_relaxed(&v->t.state);

	if (v->worker >= 0) {
		pl__sigsafe_put(text, " runs on worker ");
		pl__sigsafe_number(text, (uint64_t)v->worker, 10);
		if (word_of(v))
			pl__sigsafe_put(text, ",");
		else
			put_thread(text, v);
	}
	if (word_of(v))
		put_wait(text, v);
	else if (v->worker < 0)
		pl__sigsafe_put(text, v->t.stack ? " is ready" :
						" has not started");
	put_place(text, v->t.waiter.place);
	if (is_task(v) &&
	    state & (PL__TASK_CANCELLED | PL__TASK_SCOPE_CANCELLED))
		pl__sigsafe_put(text, ", cancelled");
	if (is_task(v) && state & PL__TASK_INTERRUPTS)
		pl__sigsafe_put(text, ", interrupted");
	pl__sigsafe_put(text, "\n");
}

/* False: it runs, or has not started. */
static bool unwind(struct pl__unwind *tr, const struct view *v)
{
	if (v->worker >= 0 || !is_in_stack(v, (uintptr_t)v->t.ctx.sp))
		return false;
	pl__unwind_from(tr, v->t.ctx.sp, v->t.stack);
	return true;
}

static void put_pc(struct pl__sigsafe_buf *text, uintptr_t pc, bool is_guess)
{
	pl__sigsafe_put(text, is_guess ? "  ? " : "    ");
	pl__symbol_put(text, pc, true);
	pl__sigsafe_put(text, "\n");
}

static void put_trace(struct pl__sigsafe_buf *text, const struct view *v)
{
	struct pl__unwind tr;
	uint32_t i;

	if (!unwind(&tr, v))
		return;
	if (!is_as_it_was(v)) {
		pl__sigsafe_put(text, "    has run meanwhile\n");
		return;
	}
	for (i = 0; i < tr.nr; i++)
		put_pc(text, tr.pc[i], i && tr.is_guess);
}

static void put_task(struct pl__sigsafe_buf *text, const struct view *v)
{
	pl__sigsafe_put(text, "task ");
	put_name(text, v);
	put_state(text, v);
	if (v->worker >= 0)
		return;
	if (v->t.stack) {
		put_trace(text, v);
		return;
	}
	pl__sigsafe_put(text, "    ");
	pl__symbol_put(text, (uintptr_t)pl__task_fn(&v->t), false);
	pl__sigsafe_put(text, "\n");
}

static void put_slot(struct pl__sigsafe_buf *text, const struct pl__task *at,
		     struct sums *sums)
{
	struct view v;

	if (!dump_look(&v, at)) {
		text->error = -EPERM;
	} else if (is_task(&v)) {
		sums->tasks++;
		put_task(text, &v);
	} else if (v.t.waiter.is_thread && word_of(&v)) {
		sums->threads++;
		pl__sigsafe_put(text, "a thread");
		put_state(text, &v);
	}
}

static void put_head(struct pl__sigsafe_buf *text)
{
	struct pl_stat st = PL_STAT_INIT;

	pl_stat_read(&st);
	pl__sigsafe_put(text, "parklot: process ");
	pl__sigsafe_number(text, (uint64_t)getpid(), 10);
	pl__sigsafe_put(text, ", ");
	pl__sigsafe_number(text, st.workers, 10);
	pl__sigsafe_put(text, " workers, ");
	pl__sigsafe_number(text, st.workers_parked, 10);
	pl__sigsafe_put(text, " of them idle, ");
	if (st.workers_stalled) {
		pl__sigsafe_number(text, st.workers_stalled, 10);
		pl__sigsafe_put(text, " compute for long, ");
	}
	pl__sigsafe_put(text, st.backend == PL_BACKEND_MODULE ? "module\n" :
							      "futex\n");
}

static void put_all(struct pl__sigsafe_buf *text)
{
	uint32_t nr = pl__slab_nr_slots(&pl__rt.tasks), i;
	struct sums sums = { 0 };
	enum pl_backend probe;

	if (!pl__read_own_mem(&probe, &pl__rt.backend, sizeof(probe))) {
		text->error = -EPERM;
		return;
	}
	put_head(text);
	for (i = pl__rt.first_slot; i < nr && !text->error; i++)
		put_slot(text, pl__slab_get(&pl__rt.tasks, i), &sums);
	pl__sigsafe_put(text, "parklot: ");
	pl__sigsafe_number(text, sums.tasks, 10);
	pl__sigsafe_put(text, " tasks, and ");
	pl__sigsafe_number(text, sums.threads, 10);
	pl__sigsafe_put(text, " threads that wait\n");
}

/* False: the runtime does not run.  The caller's own worker keeps it up. */
static bool look_begin(void)
{
	return pl__self() || pl__rt_enter();
}

static void look_end(void)
{
	if (!pl__self())
		pl__rt_exit();
}

int pl_dump(int fd)
{
	struct pl__sigsafe_buf text = { .fd = fd };

	if (look_begin()) {
		put_all(&text);
		look_end();
	} else {
		pl__sigsafe_put(&text, "parklot: does not run\n");
	}
	return pl__sigsafe_flush(&text);
}

/* ---- one task ---- */

int pl_dump_task(int fd, pl_task_t h)
{
	struct pl__sigsafe_buf text = { .fd = fd };
	struct view v;

	if (!h)
		return -EINVAL;
	if (!look_begin())
		return -ESRCH;
	text.error = look_at_living(&v, h);
	if (!text.error)
		put_task(&text, &v);
	look_end();
	return pl__sigsafe_flush(&text);
}

static int calls_of(pl_task_t h, void **pc, uint32_t most)
{
	struct pl__unwind tr;
	struct view v;
	uint32_t nr, i;
	int err;

	err = look_at_living(&v, h);
	if (err)
		return err;
	if (!unwind(&tr, &v) || !is_as_it_was(&v))
		return 0;
	nr = tr.nr < most ? tr.nr : most;
	for (i = 0; i < nr; i++)
		pc[i] = (void *)tr.pc[i];
	return (int)nr;
}

int pl_backtrace(pl_task_t h, void **pc, int nr)
{
	int ret;

	if (!h || nr < 0)
		return -EINVAL;
	if (!look_begin())
		return -ESRCH;
	ret = calls_of(h, pc, (uint32_t)nr);
	look_end();
	return ret;
}

/* ---- after the deadline of a stop ---- */

static const char *task_state_of(const struct view *v)
{
	if (word_of(v))
		return name_of_wait(v);
	if (v->worker >= 0)
		return "runs";
	return v->t.stack ? "ready" : "new";
}

static void report_state(struct pl_stop_left *left, const struct view *v)
{
	struct pl__thread_state s;
	uint32_t ms;

	if (v->worker >= 0 && !word_of(v) && look_at_thread(&s, &ms, v))
		pl__thread_say(&s, left->state, sizeof(left->state));
	else
		snprintf(left->state, sizeof(left->state), "%s",
			 task_state_of(v));
}

static void report_left(struct pl_stop_left *left, const struct view *v)
{
	left->task = pl__task_handle(&v->t);
	copy_name(left->name, v);
	left->name[sizeof(left->name) - 1] = '\0';
	report_state(left, v);
}

void pl__dump_left(struct pl_stop_report *report)
{
	uint32_t nr = pl__slab_nr_slots(&pl__rt.tasks), nr_named = 0, i;
	uint64_t ended = pl__stat_ended(), nr_left = pl__stat_spawned() - ended;
	struct pl_stop_report own = { .nr_left = (uint32_t)nr_left };
	struct pl__sigsafe_buf text = { .fd = STDERR_FILENO, .is_hasty = true };
	struct view v;

	if (nr_left)
		pl__sigsafe_put(&text,
				"parklot: tasks that the stop waits for:\n");
	for (i = pl__rt.first_slot; i < nr && nr_named < PL_STOP_LEFT_MAX;
	     i++) {
		if (!dump_look(&v, pl__slab_get(&pl__rt.tasks, i)) ||
		    !is_task(&v))
			continue;
		put_task(&text, &v);
		report_left(&own.left[nr_named++], &v);
	}
	pl__sigsafe_put(&text, "parklot: ");
	pl__sigsafe_number(&text, nr_left, 10);
	pl__sigsafe_put(&text, nr_left ? " tasks have not ended\n" :
			" tasks, but a thread, as in a dump, are left\n");
	pl__sigsafe_flush(&text);
	if (report)
		pl__grown_write(report, &own, sizeof(own));
}
