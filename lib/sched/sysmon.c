/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon: finds workers that their tasks block in the kernel
 *
 * The library does not notice that a task calls read() on an empty pipe, or
 * touches a page that is on a disk.  So while tasks wait, the sysmon thread
 * looks at the workers that should run.  A worker that is still in the same
 * task, used next to no processor time since, and sleeps, is blocked: sysmon
 * counts it in nr_blocked, so that another worker runs in its place.  When the
 * call returns, the worker itself takes that back at its next task, or sysmon
 * does when it sees the worker compute.  A worker that computes, or waits for a
 * processor, is not blocked, however long that takes.
 *
 * The polling interval doubles while workers make progress.  While no task
 * waits sysmon does not poll, except for a few looks at growing intervals while
 * a worker counts as blocked: it may have been about to compute.
 *
 *	sysmon				submitter
 *	word = ASLEEP		[sysmon-a]	queue a task
 *	full barrier			full barrier	[idle-b]
 *	look in every queue		if (enough run, it seems)
 *	if (no queue has a task)	    if (word is ASLEEP)	[sysmon-b]
 *		sleep				wake sysmon
 *
 * Invariant: sysmon does not sleep while a task waits behind workers that only
 * seem to run.  Either sysmon finds the task or the submitter finds ASLEEP;
 * otherwise the task waits for as long as a blocked worker sleeps.  Where too
 * few run, the submitter notifies a worker instead, which rechecks every queue
 * and wakes sysmon on behalf of all submitters that it stood for.
 *
 * Sysmon does not look at workers that have joined the device's crew: the
 * kernel counts them when they block, and wakes a parked worker while there is
 * a backlog.  There is a backlog while sysmon is AWAKE.  In NO_BACKLOG sysmon
 * is awake, too, but the backlog is clear: from when a worker parks for want of
 * work until a submitter would wake sysmon:
 *
 *	worker that parks		submitter
 *	word = NO_BACKLOG	[backlog-a]	queue a task
 *	backlog = 0			full barrier	[idle-b]
 *	full barrier			if (word is NO_BACKLOG)	[backlog-b]
 *	if (a queue has a task)		    word = AWAKE, backlog = 1
 *		word = AWAKE,		    if (too few run)
 *		backlog = 1			notify
 *
 * Invariant: the backlog is set while tasks wait and no notification is under
 * way.  Either the worker finds the task or the submitter finds NO_BACKLOG;
 * otherwise the kernel wakes no worker when one blocks.  The kernel counts the
 * blocked worker, then reads the backlog; the submitter sets the backlog, then
 * reads that count.  What is left to sysmon is to start a worker where none is
 * parked.
 *
 * The counters go up before a worker becomes BLOCKED, and the thread that takes
 * BLOCKED back lowers them afterwards, so they never fall below zero:
 *
 *	sysmon				worker
 *	nr_blocked++			if (duty: BLOCKED to RUNS)  [duty-b]
 *	if (not: RUNS to BLOCKED)	    nr_blocked--
 *		nr_blocked--  [duty-a]
 */
#include "sched/sched.h"
#include "sched/location.h"
#include "sched/orphan_ring.h"
#include "sched/relief.h"
#include "sched/since.h"
#include "sched/sysmon_report.h"
#include "sched/sysmon_sleep.h"
#include "base/inject.h"
#include "base/sys.h"

#include <fcntl.h>
#include <string.h>

#define LOOK_FIRST_NS	(50 * 1000ULL)
#define LOOK_LAST_NS	(5 * 1000 * 1000ULL)
#define LOOK_IO_NS	(1000 * 1000ULL) /* first interval if no task waits */
#define LOOK_EACH_NS	(40 * 1000ULL)	/* blocked: so much for each worker */
#define LAST_LOOKS	6	/* at blocked workers, at growing intervals */
#define LOOK_COSTS	8	/* looks take at most this part of the time */

/*
 * A worker has slept for so long, if others make progress: with less, workers
 * would take turns all the time.
 */
#define BLOCKED_NS	(1000 * 1000ULL)
#define CPU_PART	4	/* it sleeps if it used less than this part */

/* The only instance.  W: sysmon's thread.  R: written while no sysmon runs. */
static struct {
	pthread_t		thread;		/* R */
	uint64_t		woken_ns; /* W: views from before are void */
	uint64_t		interval_ns; /* W: length of the next sleep */
	/* W: the crew's, at the last look */
	uint32_t		nr_crew_blocked;
	/* W: looks since a task waited */
	uint32_t		nr_last_looks;
} sysmon;

/* ---- one worker ---- */

static int open_stat(struct pl__worker *w, int tid)
{
	int plus_1 = load_relaxed(&w->sysmon.stat_plus_1), fd;
	char path[40];

	if (plus_1 && w->sysmon.stat_tid == tid)
		return plus_1 - 1;
	store_relaxed(&w->sysmon.stat_plus_1, 0);
	if (plus_1)
		pl__close(plus_1 - 1);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = pl__fd_move_up(pl__open(path, O_RDONLY));
	w->sysmon.stat_tid = tid;
	if (fd >= 0)
		store_relaxed(&w->sysmon.stat_plus_1, fd + 1);
	return fd;
}

/*
 * The worker sleeps in the kernel, and does not wait for a processor.  Without
 * /proc, or without a descriptor, that it used no processor time has to
 * suffice.
 */
bool pl__sysmon_is_asleep(struct pl__worker *w)
{
	ssize_t n = -ESRCH;
	int tid = load_relaxed(&w->tid), fd;
	char stat[64], *p;

	if (!tid)
		return false;
	fd = open_stat(w, tid);
	if (fd >= 0)
		n = pl__fd_reread(fd, stat, sizeof(stat));
	if (n <= 0)
		return true;
	/* The line is "pid (name) S ...", and the name may contain anything. */
	p = strrchr(stat, ')');
	return p && p + 2 < stat + n && (p[2] == 'S' || p[2] == 'D');
}

static void note(struct pl__worker *w, uint64_t now, uint64_t cpu_ns)
{
	w->sysmon.tick = load_relaxed(&w->tick);
	w->sysmon.cpu_ns = cpu_ns;
	w->sysmon.since_ns = now;
}

static bool looks_blocked(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	uint64_t cpu_ns = pl__tid_cpu_ns(load_relaxed(&w->tid));

	pl__since_ran_ms(w, cpu_ns, now);
	if (s->since_ns >= sysmon.woken_ns &&
	    s->tick == load_relaxed(&w->tick) &&
	    (cpu_ns - s->cpu_ns) * CPU_PART < now - s->since_ns &&
	    pl__sysmon_is_asleep(w))
		return true;
	note(w, now, cpu_ns);
	return false;
}

/* How often a thread has gone to sleep; 0: /proc does not say. */
static uint64_t nr_sleeps_of(int tid)
{
	static const char field[] = "\nvoluntary_ctxt_switches:";
	char path[40], status[4096], *p;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	if (pl__read_file(path, status, sizeof(status)) <= 0)
		return 0;
	p = strstr(status, field);
	return p ? strtoull(p + sizeof(field) - 1, NULL, 10) : 0;
}

/*
 * The worker uses as much as one that is not blocked, for long enough to tell,
 * or did not sleep between two looks.  A task that is woken now and then, to
 * sleep again, leaves its worker blocked.  A spare that did not sleep may wait
 * for a processor: where these are short most of a crowd does, and each that
 * counted as running would keep a worker from all other tasks.
 *
 * The more workers there are the more seldom each is looked at.
 */
static bool is_back(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	bool is_same = s->tick == load_relaxed(&w->tick), is_busy;
	uint64_t cpu_ns, used_ns, nr_sleeps, ns = now - s->since_ns;
	int tid = load_relaxed(&w->tid);

	if (!tid || ns < BLOCKED_NS ||
	    ns < LOOK_EACH_NS * load_relaxed(&pl__rt.nr_started))
		return false;
	cpu_ns = pl__tid_cpu_ns(tid);
	used_ns = cpu_ns - s->cpu_ns;
	pl__since_ran_ms(w, cpu_ns, now);
	note(w, now, cpu_ns);
	is_busy = is_same && used_ns * CPU_PART >= ns;
	if (!used_ns || (!is_busy && load_relaxed(&w->is_spare)) ||
	    pl__sysmon_is_asleep(w))
		return false;
	if (is_busy)
		return true;
	nr_sleeps = nr_sleeps_of(tid);
	is_same = s->nr_sleeps == nr_sleeps;
	s->nr_sleeps = nr_sleeps;
	return is_same;
}

/* The task may end meanwhile: then the result is another's, or NULL. */
__attribute__((noinline, no_sanitize_thread))
static void (*routine_of(struct pl__worker *w))(void *arg)
{
	struct pl__task *t = *(struct pl__task *volatile *)&w->current;

	return t ? t->fn : NULL;
}

static void learn(struct pl__worker *w)
{
	void (*fn)(void *arg) = routine_of(w);

	if (fn)
		pl__forecast_add(fn, true);
}

static bool mark_blocked(struct pl__worker *w)
{
	uint32_t runs = PL__RUNS;

	atomic_fetch_add(&pl__rt.nr_blocked, 1);
	atomic_fetch_add(&pl__rt.nr_seen, 1);
	PL_INJECT("duty-a");
	/* [duty-a] pairs with [duty-b] in worker.c. */
	if (atomic_compare_exchange_strong(&w->duty, &runs, PL__BLOCKED)) {
		counter_inc(&pl__rt.nr_blocks);
		learn(w);
		return true;
	}
	atomic_fetch_sub(&pl__rt.nr_seen, 1);
	atomic_fetch_sub(&pl__rt.nr_blocked, 1);
	return false;
}

/* The crew counts a spare as idle, whatever its task does. */
static bool is_counted_by_crew(struct pl__worker *w)
{
	_Atomic uint32_t *crew_word = load_relaxed(&w->crew_word);

	return crew_word && !load_relaxed(crew_word);
}

/*
 * The kernel lets another worker run, but says not for which task; so sysmon
 * looks at the crew as well, once for each block, to know the task again.
 */
static bool look_at_member(struct pl__worker *w, uint64_t now)
{
	/* The worker may have joined while sysmon took it for blocked. */
	if (load_relaxed(&w->duty) == PL__BLOCKED)
		pl__unblocked(w);
	if (load_relaxed(&w->duty) != PL__RUNS ||
	    load_relaxed(&w->sysmon.has_learned) ||
	    !pl__crew_nr_blocked(&pl__rt.lots))
		return false;
	w->sysmon.may_be_blocked = looks_blocked(w, now);
	return !w->sysmon.may_be_blocked;
}

/* ---- all of them ---- */

/* True: the worker makes progress, or is about to. */
static bool sysmon_look_at(struct pl__worker *w, uint64_t now)
{
	w->sysmon.may_be_blocked = false;
	pl__since_task_ms(w, now);
	if (is_counted_by_crew(w))
		return look_at_member(w, now);
	switch (load_relaxed(&w->duty)) {
	case PL__RUNS:
		w->sysmon.may_be_blocked = looks_blocked(w, now);
		return !w->sysmon.may_be_blocked;
	case PL__BLOCKED:
		if (!is_back(w, now))
			return false;
		pl__unblocked(w);
		return true;
	default:
		w->sysmon.since_ns = 0;
		return false;
	}
}

/* Returns how many are marked: one, or none where the crew counts. */
static uint32_t found_blocked(struct pl__worker *w)
{
	if (!is_counted_by_crew(w))
		return mark_blocked(w);
	learn(w);
	store_relaxed(&w->sysmon.has_learned, true);
	return 0;
}

/* How many workers have now been blocked for so long that others are to run. */
static uint32_t sysmon_look_at_all(uint64_t now)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, nr_going = 0;
	uint32_t nr_marked = 0;
	struct pl__worker *w;

	for (i = 0; i < nr; i++)
		nr_going += sysmon_look_at(pl__rt.workers[i], now);
	for (i = 0; i < nr; i++) {
		w = pl__rt.workers[i];
		if (w->sysmon.may_be_blocked &&
		    now - w->sysmon.since_ns >=
		    (nr_going ? BLOCKED_NS : LOOK_FIRST_NS))
			nr_marked += found_blocked(w);
	}
	return nr_marked;
}

/* ---- the thread ---- */

/* Returns the old state; PL__SYSMON_OVER does not change any more. */
static uint32_t sysmon_set_state(uint32_t word)
{
	uint32_t old = load_relaxed(&pl__rt.sysmon);

	do {
		if (old == word || old == PL__SYSMON_OVER)
			break;
	} while (!atomic_compare_exchange_weak(&pl__rt.sysmon, &old, word));
	return old;
}

/*
 * The backlog follows sysmon's word.  Of two threads here, the one that stores
 * last has read the last word, or finds it changed and stores again.
 */
static void crew_publish_backlog(void)
{
	uint32_t word;

	if (!pl__rt.lots.nr_members)
		return;
	do {
		word = atomic_load(&pl__rt.sysmon);
		PL_INJECT("backlog");
		pl__crew_set_backlog(&pl__rt.lots, word == PL__SYSMON_AWAKE);
	} while (atomic_load(&pl__rt.sysmon) != word);
}

/* Returns the old state; if that was not AWAKE, sets the crew's backlog. */
static uint32_t sysmon_set_awake(void)
{
	uint32_t old = sysmon_set_state(PL__SYSMON_AWAKE);

	if (old != PL__SYSMON_AWAKE && old != PL__SYSMON_OVER)
		crew_publish_backlog();
	return old;
}

/* Sets AWAKE from another thread, and ends sysmon's sleep. */
static uint32_t sysmon_wake(void)
{
	uint32_t old = sysmon_set_awake();

	if (old == PL__SYSMON_ASLEEP)
		pl__sysmon_end_sleep();
	return old;
}

/*
 * From ASLEEP to NO_BACKLOG: sysmon has workers to look at, though no task
 * waits.
 */
static bool sysmon_set_no_backlog(void)
{
	uint32_t asleep = PL__SYSMON_ASLEEP;

	return atomic_compare_exchange_strong(&pl__rt.sysmon, &asleep,
					      PL__SYSMON_NO_BACKLOG);
}

static uint64_t last_look_ns(uint64_t now)
{
	if (!load_relaxed(&pl__rt.nr_seen) ||
	    sysmon.nr_last_looks == LAST_LOOKS)
		return UINT64_MAX;
	return now + (LOOK_LAST_NS << sysmon.nr_last_looks++);
}

/* Sleeps until a task is queued without a notification, or a worker has I/O. */
static void sleep_long(uint64_t now)
{
	uint64_t deadline_ns = last_look_ns(now);
	bool is_no_backlog;

	/* [sysmon-a] pairs with [sysmon-b] in pl__sysmon_notify(). */
	if (sysmon_set_state(PL__SYSMON_ASLEEP) == PL__SYSMON_OVER)
		return;
	crew_publish_backlog();
	pl__full_barrier();
	PL_INJECT("sysmon-a");
	PL_INJECT("held-a");
	/*
	 * [orphan-a] pairs with [orphan-b] in pl__sysmon_notify_io(), [held-a]
	 * with [held-b] in pl__sysmon_notify_held().
	 */
	while (!pl__work_anywhere() && !pl__orphan_ring_is_due() &&
	       !pl__relief_is_due() &&
	       load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP &&
	       !pl__sysmon_sleep(PL__SYSMON_ASLEEP, deadline_ns) &&
	       pl__now_ns() < deadline_ns)
		;
	if (pl__work_anywhere())
		sysmon_set_awake();
	else
		sysmon_set_no_backlog();
	is_no_backlog = load_relaxed(&pl__rt.sysmon) == PL__SYSMON_NO_BACKLOG;
	sysmon.woken_ns = pl__now_ns();
	if (sysmon.woken_ns - now > LOOK_LAST_NS)
		sysmon.interval_ns = is_no_backlog ? LOOK_IO_NS : LOOK_FIRST_NS;
}

static uint64_t own_cpu_ns(void)
{
	return pl__thread_cpu_ns(pthread_self());
}

static void sleep_short(uint64_t cpu_ns)
{
	uint64_t least = (own_cpu_ns() - cpu_ns) * LOOK_COSTS;
	uint32_t word;

	if (sysmon.interval_ns < least)
		sysmon.interval_ns = least;
	if (sysmon.interval_ns > LOOK_LAST_NS)
		sysmon.interval_ns = LOOK_LAST_NS;
	word = load_relaxed(&pl__rt.sysmon);
	if (word != PL__SYSMON_OVER)
		pl__sysmon_sleep(word, pl__now_ns() + sysmon.interval_ns);
	sysmon.interval_ns *= 2;
}

/* Starts a worker in reserve, so that the next notification finds it parked. */
static void keep_reserve(void)
{
	if ((load_relaxed(&pl__rt.nr_seen) ||
	     load_relaxed(&pl__rt.nr_crew_blocked)) &&
	    !load_relaxed(&pl__rt.nr_idle) &&
	    !load_relaxed(&pl__rt.nr_starting))
		pl__worker_start(false);
}

/*
 * If no worker of the crew is parked, the kernel has none to wake.  So sysmon
 * counts the workers that were blocked at two looks in a row, and a worker is
 * started for these; counting at one look would start one for each page fault.
 */
static bool look_at_crew(bool has_work)
{
	uint32_t now = pl__crew_nr_blocked(&pl__rt.lots), nr = now;
	bool has_news;

	if (nr > sysmon.nr_crew_blocked)
		nr = sysmon.nr_crew_blocked;
	sysmon.nr_crew_blocked = now;
	has_news = nr > load_relaxed(&pl__rt.nr_crew_blocked);
	store_relaxed(&pl__rt.nr_crew_blocked, nr);
	/* Where too few run, submitters notify workers themselves. */
	if (has_work && !pl__is_short())
		pl__sysmon_notify_slow();
	if (has_news)
		counter_inc(&pl__rt.nr_blocks);
	return has_news || now > nr;
}

/* A worker with I/O in flight may run again at any time, and stall. */
static bool has_none_to_look_at(void)
{
	return !pl__nr_running() && !pl__orphan_ring_may_be_due();
}

static void sysmon_look(void)
{
	bool is_late = sysmon.interval_ns >= LOOK_LAST_NS, has_work;
	uint64_t now = pl__now_ns(), cpu_ns = own_cpu_ns();
	uint32_t nr_marked =
		sysmon_look_at_all(now) + pl__orphan_ring_scan(now);

	pl__locations_follow(now);
	has_work = pl__work_anywhere();
	nr_marked += pl__relief_scan(now, has_work);
	if (has_work) {
		sysmon.nr_last_looks = 0;
		pl__search_check(now);
	}
	if (look_at_crew(has_work) || nr_marked) {
		sysmon.interval_ns = LOOK_FIRST_NS;
		is_late = false;
	}
	if (nr_marked || pl__crew_nr_blocked(&pl__rt.lots)) {
		pl__full_barrier();
		pl__notify_if_work();
	}
	keep_reserve();
	pl__sysmon_report(now, has_work);
	if (!has_work && !pl__orphan_ring_is_due() && !pl__relief_is_due() &&
	    (is_late || has_none_to_look_at()))
		sleep_long(now);
	else
		sleep_short(cpu_ns);
}

static void *sysmon_main(void *arg)
{
	pl__thread_name("pl-sysmon");
	pl__thread_slack(1);
	pl__self_is_own();
	while (load_relaxed(&pl__rt.sysmon) != PL__SYSMON_OVER)
		sysmon_look();
	return arg;
}

bool pl__sysmon_notify_slow(void)
{
	uint32_t old;

	/* Another worker may have taken what was queued. */
	if (!pl__work_anywhere())
		return false;
	old = sysmon_wake();
	return pl__rt.lots.nr_members &&
	       (old == PL__SYSMON_NO_BACKLOG || old == PL__SYSMON_ASLEEP);
}

void pl__sysmon_kick(void)
{
	if (sysmon_set_no_backlog())
		pl__sysmon_end_sleep();
}

bool pl__sysmon_clear_backlog(void)
{
	uint32_t awake = PL__SYSMON_AWAKE;

	if (!pl__rt.lots.nr_members)
		return false;
	if (load_relaxed(&pl__rt.sysmon) != awake ||
	    !atomic_compare_exchange_strong(&pl__rt.sysmon, &awake,
					    PL__SYSMON_NO_BACKLOG))
		return false;
	/* [backlog-a] pairs with [backlog-b] in pl__sysmon_notify(). */
	PL_INJECT("backlog-a");
	crew_publish_backlog();
	pl__full_barrier();
	if (!pl__work_anywhere())
		return false;
	/* Sysmon may have gone to sleep before the task was queued. */
	sysmon_wake();
	return true;
}

int pl__sysmon_start(void)
{
	sysmon.woken_ns = pl__now_ns();
	sysmon.interval_ns = LOOK_FIRST_NS;
	sysmon.nr_crew_blocked = 0;
	sysmon.nr_last_looks = 0;
	pl__sysmon_report_reset();
	pl__relief_reset();
	pl__forecast_reset();
	store_relaxed(&pl__rt.nr_blocks, 0);
	store_relaxed(&pl__rt.nr_all_blocked, 0);
	if (!pl__rt.has_sysmon) {
		atomic_store(&pl__rt.sysmon, PL__SYSMON_AWAKE);
		return 0;
	}
	atomic_store(&pl__rt.sysmon, PL__SYSMON_NO_BACKLOG);
	return pl__thread_start(&sysmon.thread, sysmon_main, NULL);
}

void pl__sysmon_stop(void)
{
	if (!pl__rt.has_sysmon)
		return;
	atomic_store(&pl__rt.sysmon, PL__SYSMON_OVER);
	pl__sysmon_end_sleep();
	pthread_join(sysmon.thread, NULL);
}
