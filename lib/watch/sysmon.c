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
 * waits and none is taken sysmon does not poll, except for a few looks at
 * growing intervals while a worker counts as blocked: it may have been about to
 * compute.
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
 * A worker that sysmon finds blocked it marks so, see pace.h.
 */
#include "run/run.h"
#include "pace/pace.h"
#include "pace/kept.h"
#include "queue/place.h"
#include "watch/watch.h"
#include "base/inject.h"
#include "base/sys.h"

#include <fcntl.h>
#include <string.h>

#define LOOK_EACH_NS	(40 * 1000ULL)	/* blocked: so much for each worker */

/*
 * A worker has slept for so long, if others make progress: with less, workers
 * would take turns all the time.
 */
#define BLOCKED_NS	(1000 * 1000ULL)
#define ALONE_NS	(50 * 1000ULL)	/* the same if none makes progress */
/* The same for a wait of the library's own: others would wait for that, too. */
#define OWN_WAIT_NS	(20 * 1000 * 1000ULL)
#define CPU_PART	4	/* it sleeps if it used less than this part */

/* The only instance.  W: sysmon's thread.  R: written while no sysmon runs. */
static struct {
	pthread_t		thread;		/* R */
	uint64_t		woken_ns; /* W: views from before are void */
	/* W: at this look some worker that runs waits for memory */
	bool			has_memory_waits;
} sysmon;

/* ---- one worker ---- */

static void note(struct pl__worker *w, uint64_t now, uint64_t cpu_ns)
{
	w->sysmon.tick = load_relaxed(&w->tick);
	w->sysmon.cpu_ns = cpu_ns;
	w->sysmon.since_ns = now;
}

/* At this look, or since. */
static bool waits_for_own(struct pl__worker *w)
{
	return w->sysmon.waits_for_own || load_relaxed(&w->own_waits.depth);
}

static bool looks_blocked(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	uint64_t cpu_ns = pl__tid_cpu_ns(load_relaxed(&w->tid));

	s->waits_for_own = load_relaxed(&w->own_waits.depth);
	pl__since_ran_ms(w, cpu_ns, now);
	if (s->since_ns >= sysmon.woken_ns &&
	    s->tick == load_relaxed(&w->tick) &&
	    (cpu_ns - s->cpu_ns) * CPU_PART < now - s->since_ns &&
	    pl__sysmon_is_asleep(w))
		return true;
	note(w, now, cpu_ns);
	return false;
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
	    ns < LOOK_EACH_NS * load_relaxed(&w->group->nr_started))
		return false;
	cpu_ns = pl__tid_cpu_ns(tid);
	used_ns = cpu_ns - s->cpu_ns;
	pl__since_ran_ms(w, cpu_ns, now);
	note(w, now, cpu_ns);
	is_busy = is_same && used_ns * CPU_PART >= ns;
	if (!used_ns || (!is_busy && pl__is_spare(w)) ||
	    pl__sysmon_is_asleep(w))
		return false;
	if (is_busy)
		return true;
	nr_sleeps = pl__sysmon_nr_sleeps(tid);
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

/* False: it has taken another task since @tick. */
static bool learn_routine(struct pl__worker *w, uint32_t tick, enum pl__run run)
{
	void (*fn)(void *arg) = routine_of(w);

	if (load_acquire(&w->tick) != tick)
		return false;
	if (fn)
		pl__forecast_add(fn, run);
	return true;
}

void pl__sysmon_learn(struct pl__worker *w, uint32_t tick, enum pl__run run)
{
	if ((load_relaxed(&w->sysmon.learned) == run &&
	     load_relaxed(&w->sysmon.learned_tick) == tick) ||
	    !learn_routine(w, tick, run))
		return;
	store_relaxed(&w->sysmon.learned_tick, tick);
	store_release(&w->sysmon.learned, (uint8_t)run);
}

/*
 * Nothing is known of a task that it has taken since the look.  The routine is
 * learned first: who sees that too few run may take a task of it at once.
 */
static bool mark_blocked(struct pl__worker *w, bool is_own)
{
	if (load_acquire(&w->tick) != w->sysmon.tick)
		return false;
	if (!is_own)
		learn_routine(w, w->sysmon.tick, PL__RUN_BLOCKS);
	store_relaxed(&w->sysmon.is_own_wait, is_own);
	if (pl__duty(w, PL__SEEN_ASLEEP) == PL__NR_DUTIES)
		return false;
	counter_inc(&pl__rt.nr_blocks);
	return true;
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
	if (pl__is_blocked(w))
		pl__take_back(w);
	if (!pl__is_running(w) ||
	    load_relaxed(&w->sysmon.learned) == PL__RUN_BLOCKS ||
	    !pl__crew_nr_blocked(&w->group->lots))
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
	if (pl__is_running(w)) {
		w->sysmon.may_be_blocked = looks_blocked(w, now);
		return !w->sysmon.may_be_blocked;
	}
	if (pl__is_blocked(w)) {
		if (!is_back(w, now))
			return false;
		pl__take_back(w);
		return true;
	}
	w->sysmon.since_ns = 0;
	return false;
}

/*
 * Returns how many are marked: one, or none where the crew counts.  A wait of
 * the library's own says nothing of the task, nor may one beside a worker that
 * gets memory: it may be a page fault.
 */
static uint32_t found_blocked(struct pl__worker *w)
{
	bool is_own = waits_for_own(w) || sysmon.has_memory_waits;

	if (!is_counted_by_crew(w))
		return mark_blocked(w, is_own);
	if (is_own)
		return 0;
	pl__sysmon_learn(w, w->sysmon.tick, PL__RUN_BLOCKS);
	return 0;
}

/* After what time a worker that sleeps counts as blocked. */
static uint64_t blocked_ns(struct pl__worker *w, bool is_any_going)
{
	if (waits_for_own(w))
		return OWN_WAIT_NS;
	return is_any_going ? BLOCKED_NS : ALONE_NS;
}

/* How many workers have now been blocked for so long that others are to run. */
static uint32_t sysmon_look_at_all(struct pl__group *g, uint64_t now)
{
	uint32_t nr = load_acquire(&g->nr_started), i, nr_going = 0;
	uint32_t nr_marked = 0;
	struct pl__worker *w;

	for (i = 0; i < nr; i++)
		nr_going += sysmon_look_at(g->workers[i], now);
	for (i = 0; i < nr; i++) {
		w = g->workers[i];
		if (w->sysmon.may_be_blocked &&
		    now - w->sysmon.since_ns >= blocked_ns(w, nr_going))
			nr_marked += found_blocked(w);
	}
	return nr_marked;
}

/* ---- the thread ---- */

/* Tasks wait, or would if their worker stalled now. */
static bool is_any_due(void)
{
	struct pl__group *g;
	uint32_t i;

	pl__for_each_group(g, i)
		if (pl__work_anywhere(g) || pl__orphan_ring_is_due(g) ||
		    pl__relief_is_due(g))
			return true;
	return false;
}

/* Sleeps until a task is queued without a notification, or a worker has I/O. */
static void sleep_long(uint64_t now)
{
	uint64_t deadline_ns = pl__pace_last_look(now);
	struct pl__group *g;
	uint32_t i;

	/* [sysmon-a] pairs with [sysmon-b] in pl__sysmon_notify(). */
	if (pl__sysmon_set_state(PL__SYSMON_ASLEEP) == PL__SYSMON_OVER)
		return;
	pl__crew_publish_backlog();
	pl__full_barrier();
	PL_INJECT("sysmon-a");
	PL_INJECT("compute-a");
	PL_INJECT("kept-a");
	/* [kept-a] pairs with [kept-b] in kept.c. */
	pl__for_each_group(g, i)
		pl__kept_tell(g);
	/*
	 * [orphan-a] pairs with [orphan-b] in pl__sysmon_notify_io(),
	 * [compute-a] with [compute-b] in pl__sysmon_notify_compute().
	 */
	while (!is_any_due() &&
	       load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP &&
	       !pl__sysmon_sleep(PL__SYSMON_ASLEEP, deadline_ns) &&
	       pl__now_ns() < deadline_ns)
		;
	if (pl__work_but_in(NULL))
		pl__sysmon_set_awake();
	else
		pl__sysmon_set_no_backlog();
	sysmon.woken_ns = pl__now_ns();
	pl__pace_wake(sysmon.woken_ns - now,
		      load_relaxed(&pl__rt.sysmon) != PL__SYSMON_NO_BACKLOG);
}

static uint64_t own_cpu_ns(void)
{
	return pl__thread_cpu_ns(pthread_self());
}

static void sleep_short(uint64_t cpu_ns)
{
	uint64_t ns = pl__pace_next(own_cpu_ns() - cpu_ns);
	uint32_t word = load_relaxed(&pl__rt.sysmon);

	if (word != PL__SYSMON_OVER)
		pl__sysmon_sleep(word, pl__now_ns() + ns);
}

/* Starts a worker in reserve, so that the next notification finds it parked. */
static void keep_reserve(struct pl__group *g)
{
	if ((load_relaxed(&g->nr_seen) ||
	     load_relaxed(&g->nr_crew_blocked)) &&
	    !load_relaxed(&g->nr_idle) &&
	    !load_relaxed(&g->nr_starting))
		pl__worker_start(g, false);
}

/*
 * If no worker of the crew is parked, the kernel has none to wake.  So sysmon
 * counts the workers that were blocked at two looks in a row, and a worker is
 * started for these; counting at one look would start one for each page fault.
 */
static bool look_at_crew(struct pl__group *g, bool has_work)
{
	uint32_t now = pl__crew_nr_blocked(&g->lots), nr = now;
	bool has_news;

	if (nr > g->crew_blocked)
		nr = g->crew_blocked;
	g->crew_blocked = now;
	has_news = nr > load_relaxed(&g->nr_crew_blocked);
	store_relaxed(&g->nr_crew_blocked, nr);
	/* Where too few run, submitters notify workers themselves. */
	if (has_work && !pl__is_short(g))
		pl__sysmon_notify_slow(g);
	if (has_news)
		counter_inc(&pl__rt.nr_blocks);
	return has_news || now > nr;
}

/* Of any group: what one waits for keeps others from it. */
static bool has_memory_waits(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	struct pl__worker *w;

	for (i = 0; i < nr; i++) {
		w = pl__rt.workers[i];
		if (pl__is_running(w) && load_relaxed(&w->own_waits.memory))
			return true;
	}
	return false;
}

/* What a look found, of all groups. */
struct look {
	bool		has_work;
	bool		has_news;	/* others are to follow soon */
	/* a worker runs; or has I/O in flight, so that it may, and stall */
	bool		has_workers;
};

static void look_at_group(struct pl__group *g, uint64_t now, struct look *l)
{
	uint32_t nr_marked = sysmon_look_at_all(g, now) +
			     pl__orphan_ring_scan(g, now);
	bool has_work;

	pl__kept_look(g);
	has_work = pl__work_anywhere(g);
	nr_marked += pl__stalled_scan(g, now, has_work);
	if (has_work)
		pl__search_check(g, now);
	nr_marked += pl__elastic_look(g, now, has_work);
	l->has_news |= look_at_crew(g, has_work) || nr_marked;
	if (nr_marked || pl__crew_nr_blocked(&g->lots))
		pl__notify_missing(g);
	keep_reserve(g);
	pl__sysmon_report(g, now, has_work);
	l->has_work |= has_work;
	l->has_workers |= pl__nr_running(g) || pl__orphan_ring_may_be_due(g);
}

static void sysmon_look(void)
{
	uint64_t now = pl__now_ns(), cpu_ns = own_cpu_ns();
	struct look l = { .has_work = false };
	struct pl__group *g;
	uint32_t i;

	pl__locations_follow(now);
	sysmon.has_memory_waits = has_memory_waits();
	pl__for_each_group(g, i)
		look_at_group(g, now, &l);
	if (l.has_work)
		pl__pace_renew();
	if (l.has_news)
		pl__pace_hurry();
	if (pl__pace_may_sleep(!l.has_workers) && !is_any_due())
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

int pl__sysmon_start(void)
{
	sysmon.woken_ns = pl__now_ns();
	pl__pace_start();
	store_relaxed(&pl__rt.nr_stalls, 0);
	store_relaxed(&pl__rt.nr_stalls_over, 0);
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

uint64_t pl__sysmon_nr_sleeps(int tid)
{
	static const char field[] = "\nvoluntary_ctxt_switches:";
	char path[40], status[4096], *p;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	if (pl__read_file(path, status, sizeof(status)) <= 0)
		return 0;
	p = strstr(status, field);
	return p ? strtoull(p + sizeof(field) - 1, NULL, 10) : 0;
}
