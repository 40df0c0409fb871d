/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sched: tasks, workers and the runtime that they make up
 *
 * A worker is a thread with a deque of ready tasks.  It runs them, newest
 * first, each on a stack of its own; what blocks switches straight to the
 * next ready task, or, where there is none, back to the worker's loop
 * (worker.c), which steals, polls and parks.  A task that asked for the
 * worker's own stack is run by the loop itself.
 *
 * Who has switched away may be made ready only once it really left its
 * registers behind.  So it names an *after-switch callback*, which the next
 * one to run calls first (bthread's "remained").  That may make ready, unlock
 * or free; it may not switch, allocate or fail.
 *
 * Calling for help:
 *
 *	idle worker			whoever queued a task
 *	nr_idle++		[idle-a]	queue it
 *	nr_searching-- if it was		full barrier	[idle-b]
 *	full barrier			if (nr_searching) leave it to that one
 *	look in every queue		if (nr_idle) signal the lots
 *	park
 *
 * Either the idle one sees the task, or the other sees that it is idle.  One
 * worker at a time searches: nr_searching is a token, taken by who calls for
 * help and passed to whom it wakes.  Who lays it down looks in every queue
 * afterwards, and calls again if there is more, on behalf of all who left it
 * to him.
 *
 * As many run as are wanted: neither idle nor blocked.  There may be more when
 * a blocked one returns or fewer are wanted.  Such a one is surplus at the end
 * of its task, and parks although there is work:
 *
 *	surplus worker			one that blocks
 *	nr_idle++		[idle-a]	nr_blocked++
 *	full barrier			full barrier	[idle-b]
 *	if (enough run)			if (there is work, too few run)
 *		park				signal the lots
 *
 * One of the two sees the other; what it leaves in its queues is stolen.
 *
 * More are started as others are blocked.  Who has been idle for long, while
 * there are more than are wanted and one in reserve, ends.  Its slot stays,
 * with its queues, which others steal from, and its ring; the next one to be
 * started gets them.
 *
 *	worker that ends		whoever queued a task
 *	late: in no lot any more	queue it
 *	nr_alive--, nr_idle--	[end-a]	full barrier	[idle-b]
 *	full barrier			if (nr_idle) signal the lots
 *	look in every queue		else start one
 *
 * Either it sees the task, or the other does not count on it.  Whoever takes
 * it for idle wakes nobody, and so looks again.
 */
#ifndef PL_SCHED_H
#define PL_SCHED_H

#include "sched/wait_single.h"
#include "sched/latency_hist.h"
#include "ds/deque.h"
#include "ring/attempt_hint.h"
#include "base/inject.h"
#include "park/lot.h"
#include "ds/mpsc.h"
#include "ctx/self.h"
#include "mem/slab.h"
#include "mem/stack.h"
#include "ctx/switch.h"
#include "time/timer.h"
#include "sched/wait_entry.h"

#include "parklot.h"

#include <pthread.h>
#include <string.h>

struct pl__ring;

/* Low half of task->state; the high half is the version. */
#define PL__TASK_INTERRUPTED	(1ULL << 0)	/* a blocking call clears it */
#define PL__TASK_CANCELLED	(1ULL << 1)	/* for good */

/*
 * What a task keeps by key; key.c has the rest of it.  @end is called in the
 * task, once that has run, and destroys it.
 */
struct pl__task;
struct pl__locals {
	void			(*end)(struct pl__task *t);
};

/*
 * A slot of the task table.  An odd version is alive, an even one is not.  An
 * ordinary thread that waits holds a slot too, but no handle leads to it.
 *
 * O: who runs it, or has it in hand.  A: atomic.
 */
struct pl__task {
	union {
		struct pl__slab_obj obj;
		struct pl__link	link;		/* O: in an inbox */
	};
	struct pl__ctx		ctx;		/* O */
	struct pl__stack	*stack;		/* O: NULL before first run */
	void			(*fn)(void *arg); /* O */
	void			*arg;		/* O */
	_Atomic uint64_t	state;		/* A: version << 32 | flags */
	_Atomic uint32_t	version;	/* A: what joiners wait on */
	uint8_t			cls;		/* O: enum pl_stack */
	bool			is_ending;	/* O: in its destructors */
	/* So far, the line of who spawns it and of who runs it. */
	pl__wait_slot		joiner;		/* A: the first */
	struct pl__locals	*locals;	/* O: NULL: no key was set */
	struct pl__wait_entry	waiter;
} __pl_cacheline;

/* There are millions of them. */
#if !defined(PL_ASAN) && !defined(PL_TSAN)
_Static_assert(offsetof(struct pl__task, joiner) == PL_CACHELINE, "a line");
_Static_assert(sizeof(struct pl__task) == 2 * PL_CACHELINE, "two lines");
#endif

/* Written by the worker, read by pl_stat_read(). */
struct pl__worker_stat {
	_Atomic uint64_t	switches;
	_Atomic uint64_t	steals;
	_Atomic uint64_t	parks;
	_Atomic uint64_t	wakes;
	_Atomic uint64_t	signals;
	_Atomic uint64_t	nosignals;
	_Atomic uint64_t	spawned;
	_Atomic uint64_t	ended;
	_Atomic uint64_t	cpu_past_ns;	/* of threads that it had */
};

/* What a worker is at; BLOCKED is sysmon's word for it, see sysmon.c. */
enum pl__duty {
	PL__RUNS,
	PL__BLOCKED,		/* by a call of its task's; in nr_blocked */
	PL__SLEEPS,		/* the task by ours, in pl__sleep(); likewise */
	PL__IDLE,		/* in nr_idle */
	PL__IN_START_HOOK,	/* in its start hook; in nr_blocked */
};

/* How sysmon found a worker when it last had moved. */
struct pl__sysmon_view {
	uint64_t		since_ns;
	uint64_t		cpu_ns;
	uint32_t		tick;
	bool			may_be_blocked;	/* ever since */
	_Atomic int		stat_plus_1;	/* descriptor, or 0 */
	int			stat_tid;	/* whose */

	/* Of orphan_ring.c. */
	uint64_t		stalled_since_ns; /* in the same task */
	uint64_t		ready_ns;	/* its ring became so */
	uint64_t		ready_nr;	/* after so many requests */
	uint32_t		stalled_tick;
	bool			is_readable;	/* its ring, when last asked */
};

/* Who polls the ring of a worker, see orphan_ring.c. */
enum pl__ring_state {
	PL__OWNED,		/* it does */
	PL__ORPHANED,		/* it is held up: others, when there is cause */
	PL__ORPHAN_READY,	/* which there is */
};

#define PL__NR_ATTEMPT_HINTS 256	/* a power of 2 */

/*
 * O: its own thread.  A: atomic, anybody.  I: set at init, then read-only.
 * W: sysmon.  S: pl__rt.start_lock held.
 */
struct pl__worker {
	/* The owner's line. */
	struct pl__task		*current;	/* O: NULL in the loop */
	void			(*after)(void *arg); /* O: after the switch */
	void			*after_arg;	/* O */
	struct pl__task		*for_loop;	/* O: to run on its stack */
	struct pl__ring		*ring;		/* O: NULL before first I/O */
	_Atomic uint32_t	tick;		/* O writes: tasks taken */
	_Atomic uint32_t	duty;		/* A: enum pl__duty */
	uint32_t		nr_unsignalled;	/* O: spawned, not signalled */
	size_t			nr_ahead_of_yield; /* O: so many oldest first */
	uint32_t		rng;		/* O: where to steal first */
	uint32_t		spin_ns;	/* O: before it parks */
	bool			is_searching;	/* O: has the token */
	bool			is_reaping;	/* O: calls for help itself */
	bool			is_starting;	/* O: in nr_starting */
	bool			has_reaped_orphan; /* O: a ring of others */
	int			ring_error;	/* O: why there is none */
	uint32_t		next_stalled;	/* O: which may be held up */
	uint64_t		stalled_moves;	/* O: its, when last looked */
	struct pl__ctx		loop;		/* O */
	struct pl__slab_cache	tasks;		/* O */
	struct pl__slab_cache	timers;		/* O */
	struct pl__stack_cache	stacks;		/* O */

	struct pl__worker_stat	stat __pl_cacheline; /* O writes */
	struct pl__latency_hist	io_latency;	/* O writes */
	struct pl__latency_hist	deadline_latency; /* O writes */
	uint32_t		nr_deadlines;	/* O: that came */
	uint32_t		nr_attempts;	/* O: calls, had or tried so */
	struct pl__attempt_hint	attempt_hints[PL__NR_ATTEMPT_HINTS]; /* O */

	struct pl__deque	deque __pl_cacheline; /* O pushes, A */
	struct pl__inbox	inbox __pl_cacheline; /* A */
	_Atomic uint32_t	ring_state;	/* A: enum pl__ring_state */
	struct pl__lot_entry	park __pl_cacheline; /* the lot's */
	_Atomic(struct pl__ring *) ring_seen;	/* A: ring, for others */
	_Atomic int		tid;		/* A: 0: not yet known */
	_Atomic(_Atomic uint32_t *) crew_word;	/* A: the crew's word, or 0 */
	pthread_t		thread;		/* S: start_lock held */
	bool			has_thread;	/* S */
	uint32_t		index;		/* I */
	uint32_t		lot;		/* I */

	struct pl__sysmon_view	sysmon __pl_cacheline; /* W */
} __pl_cacheline;

enum pl__rt_state {
	PL__RT_STOPPED,
	PL__RT_STARTING,
	PL__RT_RUNNING,
	PL__RT_STOPPING,	/* tasks are cancelled, then waited for */
	PL__RT_DRAINED,		/* no task is left; taken apart */
};

/* Tasks that wait for memory for their first stack. */
struct pl__stackless {
	struct pl__lock		lock;
	_Atomic uint32_t	nr;		/* under lock; read without */
	struct pl__link		*head[3];	/* L: by class */
};

enum pl__sysmon_state {
	PL__SYSMON_AWAKE,	/* or there is none: nobody is to be woken */
	PL__SYSMON_NO_BACKLOG,	/* so is the crew: it looks, there is nothing */
	PL__SYSMON_ASLEEP,
	PL__SYSMON_OVER,	/* its thread ends */
};

/* A count that many threads change: each the line that its number says. */
#define PL__NR_STRIPES		16	/* a power of 2 */

struct pl__stripe {
	_Atomic uint32_t	nr;
} __pl_cacheline;

/* There is one.  R: written while it starts and stops only. */
struct pl__rt {
	struct pl_config	cfg;		/* R: resolved, nothing is 0 */
	struct pl__worker	**workers;	/* R: cfg.max_workers of them */
	struct pl__lots		lots;		/* R */
	struct pl__timers	*timers;	/* R */
	struct pl__stacks	stacks;		/* R */
	struct pl__slab		tasks;		/* for ever */
	_Atomic bool		has_tasks;	/* tasks is set up */
	uint32_t		first_slot;	/* below: a fork's parent's */
	enum pl_backend		backend;	/* R */
	uint32_t		spin_ns_max;	/* R: 0: workers never spin */
	uint32_t		nr_cpus;	/* R: that are usable */
	uint32_t		io;		/* R: enum pl_io, as wanted */
	uint32_t		wait;		/* R: enum pl_wait, likewise */
	bool			has_sysmon;	/* R: who blocks is seen */

	_Atomic uint32_t	state __pl_cacheline; /* enum pl__rt_state */
	_Atomic uint32_t	nr_started;	/* workers[0 .. nr_started) */
	_Atomic uint32_t	nr_alive;	/* of these, with a thread */
	_Atomic uint32_t	target;		/* that run at a time */
	_Atomic uint32_t	sysmon;		/* enum pl__sysmon_state */

	_Atomic uint32_t	nr_idle __pl_cacheline;
	_Atomic uint32_t	nr_searching;	/* 0 or 1: the token */
	_Atomic uint32_t	nr_blocked;	/* workers outside of a crew */
	_Atomic uint32_t	nr_seen;	/* of these, by sysmon */
	_Atomic uint32_t	nr_in_hook;	/* of these, as they start */
	_Atomic uint32_t	nr_crew_blocked; /* of a crew, for a while */
	_Atomic uint32_t	nr_starting;	/* alive, did not look yet */
	_Atomic uint32_t	nr_notifying_all;	/* nobody is to park */

	/* Ordinary threads that look at any of this right now. */
	struct pl__stripe	inside[PL__NR_STRIPES];
	_Atomic uint32_t	ended_word;	/* moved while STOPPING */
	_Atomic uint64_t	spawned_outside;
	_Atomic uint64_t	ended_outside;	/* spawns taken back */
	_Atomic uint64_t	wakes_outside;
	_Atomic uint64_t	spawned_past;	/* by workers that are gone */
	_Atomic uint64_t	ended_past;
	_Atomic uint64_t	nr_blocks;	/* sysmon writes it */
	_Atomic uint64_t	nr_all_blocked; /* likewise */

	struct pl__stackless	stackless __pl_cacheline;
	struct pl__lock		start_lock;	/* starting, ending workers */
	pthread_t		ended;		/* L: the last; not joined */
	bool			has_ended;	/* L: there is one */
};

extern struct pl__rt pl__rt;

static inline pl_task_t pl__task_handle(const struct pl__task *t)
{
	return t->obj.slot | (uint64_t)load_relaxed(&t->version) << 32;
}

/* ---- task.c ---- */

/* Of a task that the caller keeps from ending. */
static inline const char *pl__task_name(const struct pl__task *t)
{
	return t->stack ? t->stack->user.name : t->waiter.name;
}

/* Sets the table up, once a process; -ENOMEM. */
int pl__tasks_init(void);

/* The slot of @h, whatever became of the task; NULL: never was one. */
struct pl__task *pl__task_slot(pl_task_t h);

static inline uint32_t pl__task_version(pl_task_t h)
{
	return (uint32_t)(h >> 32);
}

/* The task that the caller runs in; NULL outside. */
struct pl__task *pl__current(void);

/* The slot that the calling thread waits as, outside a task; or no memory. */
struct pl__task *pl__thread_task(void);

/* ---- sched.c ---- */

/* To take part from an ordinary thread; false: there is no runtime. */
bool pl__rt_enter(void);
void pl__rt_exit(void);

/* By their tasks, as the crew, sysmon or they themselves say. */
static inline uint32_t pl__nr_blocked(void)
{
	return load_relaxed(&pl__rt.nr_blocked) +
	       load_relaxed(pl__rt.lots.nr_blocked);
}

static inline uint32_t pl__nr_off(void)
{
	return load_relaxed(&pl__rt.nr_idle) + pl__nr_blocked();
}

/* Neither idle nor blocked, as far as can be seen. */
static inline uint32_t pl__nr_running(void)
{
	uint32_t alive = load_relaxed(&pl__rt.nr_alive);
	uint32_t off = pl__nr_off();

	return alive > off ? alive - off : 0;
}

/* Fewer run than are wanted. */
static inline bool pl__is_short(void)
{
	return load_relaxed(&pl__rt.nr_alive) <
	       load_relaxed(&pl__rt.target) + pl__nr_off();
}

/*
 * There may be more, as others are blocked: by now, or for a while.  Not for
 * who is in the hook, where one more would be blocked as well.
 */
static inline bool pl__is_start_due(void)
{
	uint32_t nr = load_relaxed(&pl__rt.nr_alive);

	return nr < pl__rt.cfg.max_workers &&
	       nr + load_relaxed(&pl__rt.nr_in_hook) <
		    load_relaxed(&pl__rt.target) +
		    load_relaxed(&pl__rt.nr_blocked) +
		    load_relaxed(&pl__rt.nr_crew_blocked);
}

/* There are workers that are not wanted at times. */
static inline bool pl__has_surplus_workers(void)
{
	return load_relaxed(&pl__rt.nr_alive) >
	       load_relaxed(&pl__rt.target);
}

/* Has a next task: it is not blocked, if sysmon said so. */
void pl__unblocked(struct pl__worker *w);

/* The caller, a running worker, is one too many. */
static inline bool pl__is_surplus(void)
{
	return unlikely(pl__has_surplus_workers()) &&
	       pl__nr_running() > load_relaxed(&pl__rt.target);
}

static inline bool pl__rt_is_stopping(void)
{
	return atomic_load(&pl__rt.state) == PL__RT_STOPPING;
}

/* Makes @t ready, and calls for help. */
void pl__ready(struct pl__task *t);

/* The same for many: queue each, then pl__notify_one() once. */
void pl__ready_quietly(struct pl__task *t);

/* By a thread that is no worker: a chain of links, the newest first. */
void pl__ready_chain(struct pl__link *newest, struct pl__link *oldest);

/* Into the queue of @w, the caller; nobody is told. */
void pl__queue_own(struct pl__worker *w, struct pl__task *t);

/* The next ready task of worker @w itself; NULL: none, or it is surplus. */
struct pl__task *pl__next(struct pl__worker *w);

/* Moves all of inbox @from, its own or another's, to the deque of @w. */
void pl__drain(struct pl__worker *w, struct pl__inbox *from);

/* From the worker's loop: runs @t, prepared, until one comes back to it. */
void pl__run(struct pl__worker *w, struct pl__task *t);

/* The same, with a stack. */
struct pl__task *pl__next_prepared(struct pl__worker *w);

/* To be called first on every stack that was switched to. */
void pl__switch_finish(void);

/* What to switch to so that @next runs, or the loop, and calls @after first. */
struct pl__ctx *pl__switch_prepare(struct pl__worker *w, struct pl__task *next,
				   void (*after)(void *arg), void *arg);

/* @t, that runs on @w, until somebody switches back to it. */
static inline void pl__leave(struct pl__worker *w, struct pl__task *t,
			     struct pl__task *next, void (*after)(void *arg),
			     void *arg)
{
	pl__stack_check(t->stack);
	pl__ctx_switch(&t->ctx, pl__switch_prepare(w, next, after, arg));
	pl__switch_finish();
}

/* Switches away; @after(@arg) makes the caller ready in its time. */
static inline void pl__block(void (*after)(void *arg), void *arg)
{
	struct pl__worker *w = pl__self();
	struct pl__task *t = w->current;

	pl__leave(w, t, pl__next_prepared(w), after, arg);
}

/*
 * Makes the caller ready and runs @t, which is new, at once; or lets @t wait
 * for a stack.  False, and nothing is done: the caller cannot switch away.
 */
bool pl__switch_to(struct pl__task *t);

/* Lets those that wait for a stack have what @w keeps for itself. */
void pl__stacks_share(struct pl__worker *w);

/* Memory or threads were refused: tries again in a while. */
void pl__retry_later(void);

/* Gives those that wait for a stack one of their own, if it can be had. */
void pl__stacks_retry(void);

/* Its stack is @st from now on, with its name. */
static inline void pl__task_move_in(struct pl__task *t, struct pl__stack *st)
{
	memcpy(st->user.name, t->waiter.name, sizeof(st->user.name));
	st->user.exit_to = NULL;
	t->stack = st;
}

/* Has a stack, or is given one; false: it waits for one elsewhere. */
bool pl__task_prepare(struct pl__worker *w, struct pl__task *t);

void pl__task_end_locals(struct pl__task *t); /* calls destructors, in it */

/* Of join.c: lets all go that wait on its version. */
extern void (*pl__wake_joiners)(struct pl__task *t);

/* Marks it, lets joiners go, all but one: which is to be made ready; or NULL */
struct pl__task *pl__task_end(struct pl__worker *w, struct pl__task *t);
void pl__task_take_back(void);		/* counted as spawned, but was not */
void pl__task_free(void *t);		/* an after-switch callback */
void __attribute__((noreturn)) pl__task_exit(struct pl__task *t);

/* ---- notify.c ---- */

/* Tasks were queued: calls for help, if too few run. */
void pl__notify_one(void);

/* The same if there are any: what was left to us may be more than we take. */
void pl__notify_if_work(void);

/* Has all that are parked look for a task, and park once more. */
void pl__notify_all(void);

/* ---- steal.c ---- */

/*
 * A task of another worker's, or NULL.  Who has time leaves to a worker that
 * runs what it may be about to take itself.
 */
struct pl__task *pl__steal(struct pl__worker *w, bool has_time);

/*
 * The same, but only of one that took none since the call before: it is in a
 * long task, blocked or surplus.  Looks at all others in turn.
 */
struct pl__task *pl__steal_from_stalled(struct pl__worker *w);

/* Whether there is a task in anybody's queue, or in a ring that is ready. */
bool pl__work_anywhere(void);

/* ---- worker_thread.c ---- */

/*
 * Another worker, as the searcher if @is_searcher; -EBUSY: there are enough, or
 * -errno: memory or threads are refused, and asked for again in a while.
 */
int pl__worker_start(bool is_searcher);
void pl__worker_join_all(void);
void pl__worker_free_all(void);

/* How long one of too many is idle before it ends. */
extern _Atomic uint64_t pl__idle_timeout_ns;

/* There are more than are wanted and one in reserve: for those that block. */
bool pl__is_end_due(void);

/*
 * The caller, @w, counted as idle, has been so for long.  True: it is no worker
 * any more, and its thread is to end.
 */
bool pl__worker_end(struct pl__worker *w);

/* ---- worker.c ---- */

/* What its thread does, until the runtime ends, or pl__worker_end(). */
void pl__worker_run(struct pl__worker *w);

/*
 * A task on the worker's stack, or a thread that is none, blocks: until
 * @s is woken (true) or @deadline_ns (false).  Armed before, with this bell.
 */
struct pl__bell *pl__sleep_bell(struct pl__worker *w);
bool pl__sleep(struct pl__worker *w, struct pl__parker *s,
	       uint64_t deadline_ns);

/* Gives up PL__RUNS for @duty, and takes it up again. */
void pl__worker_leaves(struct pl__worker *w, enum pl__duty duty);
void pl__worker_runs(struct pl__worker *w);

/* ---- sysmon.c ---- */

/* The thread that sees who is blocked in the kernel; -ENOMEM, -EAGAIN. */
int pl__sysmon_start(void);
void pl__sysmon_stop(void);

/* True: and the crew, which may not have seen who blocked until now. */
bool pl__sysmon_notify_slow(void);

/* It is to look at workers, though no task waits. */
void pl__sysmon_kick(void);

/* A worker parks, since there is nothing; true: now there is something. */
bool pl__sysmon_clear_backlog(void);

/*
 * After a full barrier: tasks were queued, and enough workers run, if they do;
 * true: look again whether they do.
 */
static inline bool pl__sysmon_notify(void)
{
	/* [sysmon-b] pairs with [sysmon-a], [backlog-b] with [backlog-a]. */
	return unlikely(load_relaxed(&pl__rt.sysmon) != PL__SYSMON_AWAKE) &&
	       pl__sysmon_notify_slow();
}

/*
 * The caller runs tasks, or is about to, and has I/O in flight: should it be
 * held up, somebody is to see that.
 */
static inline void pl__sysmon_notify_io(void)
{
	/* [orphan-b] pairs with [orphan-a] in sysmon.c. */
	pl__full_barrier();
	PL_INJECT("orphan-b");
	if (unlikely(load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP))
		pl__sysmon_kick();
}

#endif /* PL_SCHED_H */
