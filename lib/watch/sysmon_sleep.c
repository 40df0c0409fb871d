/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "watch/watch.h"
#include "pace/notify.h"
#include "base/atfork.h"
#include "base/inject.h"
#include "base/sys.h"
#include "ring/ring.h"
#include "run/run.h"
#include "pace/pace.h"
#include "queue/rt.h"

#include <poll.h>
#include <sys/syscall.h>

/* Interval if sysmon has no descriptor or no memory to wait for rings with. */
#define BLIND_NS	(5 * 1000 * 1000ULL)

/* W: sysmon's thread, and the thread that stops it. */
static struct pollfd *fds;
static uint32_t nr_fds_most;

/* One more than workers. */
static bool can_poll(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started) + 1;

	if (nr > nr_fds_most) {
		pl__free(fds);
		nr_fds_most = 2 * nr;
		fds = pl__alloc(nr_fds_most * sizeof(*fds));
	}
	if (!fds)
		nr_fds_most = 0;
	return fds && pl__sysmon_bell() >= 0;
}

/*
 * Lists the orphaned rings; a ring that was ready a moment ago is left out, and
 * lowers the deadline instead.
 */
static uint32_t fill_in(uint64_t now, uint64_t *deadline_ns)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, n = 0;
	struct pl__worker *w;

	/* More may have been started since there was room. */
	if (nr > nr_fds_most - 1)
		nr = nr_fds_most - 1;
	for (i = 0; i < nr; i++) {
		w = pl__rt.workers[i];
		if (load_relaxed(&w->ring_state) != PL__ORPHANED)
			continue;
		if (now - w->sysmon.ready_ns < PL__STALLED_NS) {
			if (*deadline_ns > w->sysmon.ready_ns + PL__STALLED_NS)
				*deadline_ns = w->sysmon.ready_ns +
					       PL__STALLED_NS;
			continue;
		}
		fds[++n] = (struct pollfd){
			.fd = pl__ring_fd(pl__orphan_ring_of(w)),
			.events = POLLIN,
		};
	}
	return n;
}

static bool note_readable(uint32_t nr_fds)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, n;
	struct pl__worker *w;
	bool is_any = false;

	for (i = 0; i < nr; i++) {
		w = pl__rt.workers[i];
		if (load_relaxed(&w->ring_state) != PL__ORPHANED)
			continue;
		for (n = 1; n <= nr_fds; n++)
			if (fds[n].fd ==
			    pl__ring_fd(pl__orphan_ring_of(w)))
				w->sysmon.is_readable |= fds[n].revents;
		is_any |= w->sysmon.is_readable;
	}
	return is_any;
}

static bool orphan_ring_all_readable(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++)
		pl__rt.workers[i]->sysmon.is_readable = true;
	return true;
}

static bool poll_until(uint32_t nr_fds, uint64_t deadline_ns)
{
	uint64_t now = pl__now_ns();
	uint64_t ns = deadline_ns > now ? deadline_ns - now : 0, value;
	struct timespec ts = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};
	long ret;

	ret = pl__syscall(SYS_ppoll, fds, nr_fds + 1,
			  deadline_ns == UINT64_MAX ? NULL : &ts, NULL);
	/*
	 * As if there were more rings than descriptors that the process may
	 * open.
	 */
	if (ret < 0 && ret != -EINTR) {
		pl__sleep_ns(BLIND_NS);
		return orphan_ring_all_readable();
	}
	if (ret <= 0)
		return false;
	if (fds[0].revents)
		pl__fd_read(fds[0].fd, &value, sizeof(value));
	return note_readable(nr_fds);
}

static bool is_any_orphaned(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++)
		if (load_relaxed(&pl__rt.workers[i]->ring_state) ==
		    PL__ORPHANED)
			return true;
	return false;
}

/* Without descriptors to wait for rings with, polls them at intervals. */
static bool sleep_blind(uint32_t word, uint64_t deadline_ns)
{
	uint64_t soon = pl__now_ns() + BLIND_NS;

	pl__futex_wait(&pl__rt.sysmon, word,
		       deadline_ns < soon ? deadline_ns : soon);
	return orphan_ring_all_readable();
}

bool pl__sysmon_sleep(uint32_t word, uint64_t deadline_ns)
{
	bool has_cause = false;
	uint32_t nr;

	if (likely(!is_any_orphaned())) {
		pl__futex_wait(&pl__rt.sysmon, word, deadline_ns);
		return false;
	}
	if (!can_poll())
		return sleep_blind(word, deadline_ns);
	nr = fill_in(pl__now_ns(), &deadline_ns);
	fds[0] = (struct pollfd){
		.fd = pl__sysmon_bell(), .events = POLLIN,
	};
	if (pl__sysmon_poll_begin(word))
		has_cause = poll_until(nr, deadline_ns);
	pl__sysmon_poll_end();
	return has_cause;
}

void pl__sysmon_sleep_fini(void)
{
	pl__sysmon_bell_close();
	pl__free(fds);
	fds = NULL;
	nr_fds_most = 0;
}

/* A child of fork() has no sysmon that polls. */
PL_ATFORK_CHILD(pl__sysmon_sleep_fini);

#define LOOK_FIRST_NS	(50 * 1000ULL)
#define LOOK_LAST_NS	(5 * 1000 * 1000ULL)
#define LOOK_IO_NS	(1000 * 1000ULL) /* first interval if no task waits */
#define LIVELY_NS	(2 * 1000 * 1000ULL) /* longest, of a lively one */
#define LAST_LOOKS	6	/* at blocked workers, at growing intervals */
#define LOOK_COSTS	8	/* looks take at most this part of the time */

/* The only instance. */
static struct {
	uint64_t	interval_ns;	/* length of the next sleep */
	uint32_t	nr_last_looks;	/* since a task waited */
	uint32_t	ticks;	/* tasks taken, until the last look */
	bool		is_lively;	/* some were since the look before */
} pace;

void pl__pace_start(void)
{
	pace.interval_ns = LOOK_FIRST_NS;
	pace.nr_last_looks = 0;
	pace.ticks = 0;
	pace.is_lively = false;
}

void pl__pace_hurry(void)
{
	pace.interval_ns = LOOK_FIRST_NS;
}

void pl__pace_wake(uint64_t ns, bool has_work)
{
	if (ns > LOOK_LAST_NS)
		pace.interval_ns = has_work ? LOOK_FIRST_NS : LOOK_IO_NS;
}

/* Looks for a task of all workers; wraps around, as each one's count does. */
static uint32_t nr_ticks(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, sum = 0;

	for (i = 0; i < nr; i++)
		sum += load_relaxed(&pl__rt.workers[i]->tick);
	return sum;
}

bool pl__pace_may_sleep(bool has_none_to_look_at)
{
	uint32_t ticks = nr_ticks();

	pace.is_lively = ticks != pace.ticks;
	pace.ticks = ticks;
	return !pace.is_lively &&
	       (has_none_to_look_at || pace.interval_ns >= LOOK_LAST_NS);
}

uint64_t pl__pace_next(uint64_t spent_ns)
{
	uint64_t least = spent_ns * LOOK_COSTS, ns;
	struct pl__group *g;
	uint32_t i;

	if (pace.interval_ns < least)
		pace.interval_ns = least;
	if (pace.interval_ns > LOOK_LAST_NS)
		pace.interval_ns = LOOK_LAST_NS;
	if (least > LOOK_LAST_NS)
		least = LOOK_LAST_NS;
	ns = pace.interval_ns;
	pl__for_each_group(g, i)
		ns = pl__elastic_interval(g, ns);
	pace.interval_ns *= 2;
	if (pace.is_lively && ns > LIVELY_NS)
		ns = LIVELY_NS;
	return ns < least ? least : ns;
}

void pl__pace_renew(void)
{
	pace.nr_last_looks = 0;
}

/* A worker counts as blocked, as sysmon saw. */
static bool is_any_seen(void)
{
	struct pl__group *g;
	uint32_t i;

	pl__for_each_group(g, i)
		if (load_relaxed(&g->nr_seen))
			return true;
	return false;
}

uint64_t pl__pace_last_look(uint64_t now)
{
	if (!is_any_seen() || pace.nr_last_looks == LAST_LOOKS)
		return UINT64_MAX;
	return now + (LOOK_LAST_NS << pace.nr_last_looks++);
}
