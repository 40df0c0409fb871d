/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon: workers that their tasks block in the kernel
 *
 * Nobody is told that a task calls read() on an empty pipe, or touches a page
 * that is on a disk.  So a thread looks, while tasks wait, at the workers that
 * should run.  One that is still at the same task, had next to no processor
 * since, and sleeps, is blocked: it is counted in nr_blocked, so that another
 * one runs in its place.  Back from its call it says so itself when it comes to
 * its next task; or sysmon does, who sees it compute.  One that computes,
 * or waits for a processor, is not blocked, however long that takes.
 *
 * The more goes on by itself, the longer it is between two looks.  When no
 * task waits there are none, but a few ever rarer ones while somebody counts as
 * blocked: it may have been about to compute.
 *
 *	sysmon				whoever queued a task
 *	word = ASLEEP		[sysmon-a]	queue it
 *	full barrier			full barrier	[idle-b]
 *	look in every queue		if (enough run, it seems)
 *	if (none has a task)		    if (word is ASLEEP)	[sysmon-b]
 *		sleep				wake it
 *
 * One of the two sees the other.  Where too few run, another worker is called
 * instead; it looks in every queue afterwards, and so stands for who called.
 *
 * Workers that have joined the device's crew are not looked at: the kernel
 * counts them when they block, and calls a parked one while there is a backlog.
 * That is so while sysmon is AWAKE.  NO_BACKLOG is the same without one, from
 * when a worker parks for want of work until somebody would wake sysmon:
 *
 *	worker that parks		whoever queued a task
 *	word = NO_BACKLOG	[backlog-a]	queue it
 *	backlog = 0			full barrier	[idle-b]
 *	full barrier			if (word is NO_BACKLOG)	[backlog-b]
 *	if (a queue has a task)		    word = AWAKE, backlog = 1
 *		word = AWAKE,		    if (too few run)
 *		backlog = 1			call for help
 *
 * The kernel counts who blocks, then looks at the backlog; whoever raises that
 * looks at the count afterwards.  What is left to sysmon is to start a
 * worker where none is parked.
 *
 * Counts go up before a worker is said to be blocked, and down after that was
 * taken back, by whoever did it:
 *
 *	sysmon				worker
 *	nr_blocked++			if (duty: BLOCKED to RUNS)  [duty-b]
 *	if (not: RUNS to BLOCKED)	    nr_blocked--
 *		nr_blocked--  [duty-a]
 */
#include "sched/sched.h"
#include "sched/orphan_ring.h"
#include "sched/sysmon_report.h"
#include "sched/sysmon_sleep.h"
#include "base/inject.h"
#include "base/sys.h"

#include <fcntl.h>
#include <string.h>

#define LOOK_FIRST_NS	(50 * 1000ULL)
#define LOOK_LAST_NS	(5 * 1000 * 1000ULL)
#define LOOK_IO_NS	(1000 * 1000ULL) /* at first, where no task waits */
#define LAST_LOOKS	6	/* at who is blocked, ever later */
#define LOOK_COSTS	8	/* they take less than a part of so many */

/* Blocked for so long, if others go on: or all change places all the time. */
#define BLOCKED_NS	(1000 * 1000ULL)
#define CPU_PART	4	/* who has less than a part of so many sleeps */

/* There is one.  W: its thread.  R: while none runs. */
static struct {
	pthread_t		thread;		/* R */
	uint64_t		woken_ns;	/* W: all older is forgotten */
	uint64_t		interval_ns;	/* W */
	uint32_t		nr_crew_blocked; /* W: at the last look */
	uint32_t		nr_last_looks;	/* W: since a task waited */
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
	fd = pl__open(path, O_RDONLY);
	w->sysmon.stat_tid = tid;
	if (fd >= 0)
		store_relaxed(&w->sysmon.stat_plus_1, fd + 1);
	return fd;
}

/*
 * In the kernel, and not for want of a processor.  Without /proc, or a
 * descriptor, it must do that it has not used one.
 */
static bool is_asleep(struct pl__worker *w)
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
	/* "pid (name) S ...", and the name may have anything in it. */
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

	if (s->since_ns >= sysmon.woken_ns &&
	    s->tick == load_relaxed(&w->tick) &&
	    (cpu_ns - s->cpu_ns) * CPU_PART < now - s->since_ns &&
	    is_asleep(w))
		return true;
	note(w, now, cpu_ns);
	return false;
}

static bool is_back(struct pl__worker *w)
{
	uint64_t cpu_ns = pl__tid_cpu_ns(load_relaxed(&w->tid));

	if (cpu_ns == w->sysmon.cpu_ns)
		return false;
	w->sysmon.cpu_ns = cpu_ns;
	return !is_asleep(w);
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
		return true;
	}
	atomic_fetch_sub(&pl__rt.nr_seen, 1);
	atomic_fetch_sub(&pl__rt.nr_blocked, 1);
	return false;
}

/* ---- all of them ---- */

/* True: it goes on, or is about to. */
static bool sysmon_look_at(struct pl__worker *w, uint64_t now)
{
	w->sysmon.may_be_blocked = false;
	if (load_relaxed(&w->crew_word)) {
		/* It may have joined while we took it for blocked. */
		pl__unblocked(w);
		return false;
	}
	switch (load_relaxed(&w->duty)) {
	case PL__RUNS:
		w->sysmon.may_be_blocked = looks_blocked(w, now);
		return !w->sysmon.may_be_blocked;
	case PL__BLOCKED:
		if (!is_back(w))
			return false;
		pl__unblocked(w);
		return true;
	default:
		w->sysmon.since_ns = 0;
		return false;
	}
}

/* How many have blocked for so long that others are to run instead. */
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
			nr_marked += mark_blocked(w);
	}
	return nr_marked;
}

/* ---- the thread ---- */

/* What it was; it stays so when the runtime ends. */
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
 * The backlog is what the word says.  Two may come here at a time; the one who
 * stores last has seen the last word, or looks again.
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

/* What it was; if it was not awake, the crew is told as well. */
static uint32_t sysmon_set_awake(void)
{
	uint32_t old = sysmon_set_state(PL__SYSMON_AWAKE);

	if (old != PL__SYSMON_AWAKE && old != PL__SYSMON_OVER)
		crew_publish_backlog();
	return old;
}

/* The same by others: it may have to be woken for that. */
static uint32_t sysmon_wake(void)
{
	uint32_t old = sysmon_set_awake();

	if (old == PL__SYSMON_ASLEEP)
		pl__sysmon_end_sleep();
	return old;
}

/* There is somebody to look at, though no task waits. */
static bool sysmon_rouse(void)
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

/* Until a task is queued that nobody is called for, or a worker has I/O. */
static void sleep_long(uint64_t now)
{
	uint64_t deadline_ns = last_look_ns(now);
	bool is_roused;

	/* [sysmon-a] pairs with [sysmon-b] in pl__sysmon_notify(). */
	if (sysmon_set_state(PL__SYSMON_ASLEEP) == PL__SYSMON_OVER)
		return;
	crew_publish_backlog();
	pl__full_barrier();
	PL_INJECT("sysmon-a");
	/* [orphan-a] pairs with [orphan-b] in pl__sysmon_notify_io(). */
	while (!pl__work_anywhere() && !pl__orphan_ring_is_due() &&
	       load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP &&
	       !pl__sysmon_sleep(PL__SYSMON_ASLEEP, deadline_ns) &&
	       pl__now_ns() < deadline_ns)
		;
	if (pl__work_anywhere())
		sysmon_set_awake();
	else
		sysmon_rouse();
	is_roused = load_relaxed(&pl__rt.sysmon) == PL__SYSMON_NO_BACKLOG;
	sysmon.woken_ns = pl__now_ns();
	if (sysmon.woken_ns - now > LOOK_LAST_NS)
		sysmon.interval_ns = is_roused ? LOOK_IO_NS : LOOK_FIRST_NS;
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

/* So that the next one to be called need not be started first. */
static void keep_reserve(void)
{
	if ((load_relaxed(&pl__rt.nr_seen) ||
	     load_relaxed(&pl__rt.nr_crew_blocked)) &&
	    !load_relaxed(&pl__rt.nr_idle) &&
	    !load_relaxed(&pl__rt.nr_starting))
		pl__worker_start(false);
}

/*
 * The crew has nobody to call if none is parked.  One is started for whom it
 * counts as blocked for as long as from one look to the next: each page fault
 * would have one otherwise.
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
	/* Where too few run, others are called the usual way. */
	if (has_work && !pl__is_short())
		pl__sysmon_notify_slow();
	if (has_news)
		counter_inc(&pl__rt.nr_blocks);
	return has_news || now > nr;
}

/* Who has I/O in flight may run again at any time, and be held up. */
static bool is_nobody_to_look_at(void)
{
	return !pl__nr_running() && !pl__orphan_ring_may_be_due();
}

static void sysmon_look(void)
{
	bool is_late = sysmon.interval_ns >= LOOK_LAST_NS, has_work;
	uint64_t now = pl__now_ns(), cpu_ns = own_cpu_ns();
	uint32_t nr_marked =
		sysmon_look_at_all(now) + pl__orphan_ring_scan(now);

	has_work = pl__work_anywhere();
	if (has_work)
		sysmon.nr_last_looks = 0;
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
	if (!has_work && !pl__orphan_ring_is_due() &&
	    (is_late || is_nobody_to_look_at()))
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

	/* What was queued may have been taken. */
	if (!pl__work_anywhere())
		return false;
	old = sysmon_wake();
	return pl__rt.lots.nr_members &&
	       (old == PL__SYSMON_NO_BACKLOG || old == PL__SYSMON_ASLEEP);
}

void pl__sysmon_kick(void)
{
	if (sysmon_rouse())
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
	/* It may have gone to sleep since, before there was anything. */
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
