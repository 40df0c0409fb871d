/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * orphan_ring: the rings of workers that are held up
 *
 * What completes on a ring is seen by its owner between two tasks.  If a task
 * blocks that, or computes for long, others look in its place.  So while a
 * worker with I/O in flight runs tasks, sysmon looks whether it goes on to
 * the next; if not, its ring is orphaned.  Then it is one more queue to steal
 * from: ready at once, as there may be requests that were not submitted, and
 * again whenever the kernel says that something is complete, which sysmon waits
 * for.
 *
 *	OWNED --stalled--> ORPHAN_READY --polled by a thief--> ORPHANED
 *	 ^                  |        ^                          |  |
 *	 +----- goes on ----+        +-------- readable --------+  |
 *	 +----- goes on -------------------------------------------+
 *
 * Only sysmon orphans and takes back.  But who finds the lock taken, most
 * likely by an owner who has come back, takes back as well: what that is about
 * to add may have been counted when the ring was orphaned, so sysmon is to
 * look again.
 *
 * Sysmon sleeps for ever only if there is no such worker whose ring is not
 * orphaned, or has got more requests since:
 *
 *	sysmon				worker
 *	word = ASLEEP		[orphan-a]	RUNS, or I/O in flight
 *	full barrier			full barrier		[orphan-b]
 *	look for one			if (word is ASLEEP)
 *	if (none)			    word = NO_BACKLOG, wake it
 *		sleep
 *
 * Its sleep ends by a futex; or by an eventfd, if it waits for rings as well:
 *
 *	sysmon				whoever wakes it
 *	is_polling = true	[orphan-c]	word = another
 *	if (word is as it was)	[orphan-c]	if (is_polling)	[orphan-d]
 *		sleep				write the eventfd
 *
 * All four are seq_cst: one of the two sees the other.
 */
#include "sched/orphan_ring.h"
#include "base/atfork.h"
#include "base/inject.h"
#include "ring/ring.h"
#include "base/sys.h"

#include <poll.h>
#include <sys/syscall.h>

/* In the same task for so long, it is held up; ready so often at most. */
#define STALLED_NS	(1000 * 1000ULL)

/* Without a descriptor or memory to wait with. */
#define BLIND_NS	(5 * 1000 * 1000ULL)

/* W: sysmon's thread, and who stops it. */
static struct {
	struct pollfd		*fds;		/* W: one more than workers */
	int			event_plus_1;	/* W: eventfd, or 0 */
	_Atomic uint32_t	is_polling;
} sleeper;

/* ---- who is held up ---- */

static bool is_in_task(struct pl__worker *w)
{
	uint32_t duty = load_relaxed(&w->duty);

	return duty == PL__RUNS || duty == PL__BLOCKED;
}

static struct pl__ring *orphan_ring_of(struct pl__worker *w)
{
	return load_acquire(&w->ring_seen);
}

static bool is_busy(struct pl__worker *w)
{
	struct pl__ring *ring = orphan_ring_of(w);

	return ring && pl__ring_is_busy(ring);
}

static bool is_at_risk(struct pl__worker *w)
{
	return is_busy(w) && is_in_task(w);
}

static bool is_stalled(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	uint32_t tick = load_relaxed(&w->tick);

	if (!is_at_risk(w)) {
		s->stalled_since_ns = 0;
		return false;
	}
	if (!s->stalled_since_ns || s->stalled_tick != tick) {
		s->stalled_since_ns = now;
		s->stalled_tick = tick;
		return false;
	}
	return now - s->stalled_since_ns >= STALLED_NS;
}

/* It is not orphaned, or there are requests since it became ready. */
static bool has_more(struct pl__worker *w)
{
	return load_relaxed(&w->ring_state) == PL__OWNED ||
	       pl__ring_nr_added(orphan_ring_of(w)) != w->sysmon.ready_nr;
}

/* True: it has become ready. */
static bool orphan_ring_look_at(struct pl__worker *w, uint64_t now)
{
	struct pl__sysmon_view *s = &w->sysmon;
	bool was_readable = s->is_readable;

	s->is_readable = false;
	if (!is_stalled(w, now)) {
		if (load_relaxed(&w->ring_state) != PL__OWNED)
			atomic_store(&w->ring_state, PL__OWNED);
		return false;
	}
	if (!was_readable && !has_more(w))
		return false;
	s->ready_ns = now;
	s->ready_nr = pl__ring_nr_added(orphan_ring_of(w));
	return atomic_exchange(&w->ring_state,
			       PL__ORPHAN_READY) != PL__ORPHAN_READY;
}

uint32_t pl__orphan_ring_scan(uint64_t now)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, nr_ready = 0;

	for (i = 0; i < nr; i++)
		nr_ready += orphan_ring_look_at(pl__rt.workers[i], now);
	return nr_ready;
}

bool pl__orphan_ring_is_due(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++)
		if (is_at_risk(pl__rt.workers[i]) &&
		    has_more(pl__rt.workers[i]))
			return true;
	return false;
}

bool pl__orphan_ring_may_be_due(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++)
		if (is_busy(pl__rt.workers[i]))
			return true;
	return false;
}

void pl__ring_reap_orphan(struct pl__worker *w, struct pl__worker *victim)
{
	uint32_t ready = PL__ORPHAN_READY, orphaned = PL__ORPHANED;

	if (!atomic_compare_exchange_strong(&victim->ring_state, &ready,
					    PL__ORPHANED))
		return;
	w->has_reaped_orphan = true;
	if (pl__ring_poll_for_owner(orphan_ring_of(victim)))
		return;
	atomic_compare_exchange_strong(&victim->ring_state, &orphaned,
				       PL__OWNED);
	pl__sysmon_notify_io();
}

/*
 * The kernel cancels what a thread submitted when that ends.  Which requests
 * these are is not kept, so all have to be through for once.
 */
bool pl__orphan_ring_keeps(struct pl__worker *w)
{
	if (w->has_reaped_orphan)
		w->has_reaped_orphan = pl__orphan_ring_may_be_due();
	return w->has_reaped_orphan;
}

/* ---- sysmon's sleep ---- */

static bool can_poll(void)
{
	if (!sleeper.fds)
		sleeper.fds = pl__alloc((pl__rt.cfg.max_workers + 1) *
					sizeof(*sleeper.fds));
	if (sleeper.fds && !sleeper.event_plus_1)
		sleeper.event_plus_1 = pl__eventfd() + 1;
	if (sleeper.event_plus_1 < 0)
		sleeper.event_plus_1 = 0;
	return sleeper.fds && sleeper.event_plus_1;
}

/* One that was ready a moment ago is waited for later. */
static uint32_t fill_in(uint64_t now, uint64_t *deadline_ns)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, n = 0;
	struct pl__worker *w;

	for (i = 0; i < nr; i++) {
		w = pl__rt.workers[i];
		if (load_relaxed(&w->ring_state) != PL__ORPHANED)
			continue;
		if (now - w->sysmon.ready_ns < STALLED_NS) {
			if (*deadline_ns > w->sysmon.ready_ns + STALLED_NS)
				*deadline_ns = w->sysmon.ready_ns + STALLED_NS;
			continue;
		}
		sleeper.fds[++n] = (struct pollfd){
			.fd = pl__ring_fd(orphan_ring_of(w)),
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
			if (sleeper.fds[n].fd == pl__ring_fd(orphan_ring_of(w)))
				w->sysmon.is_readable |= sleeper.fds[n].revents;
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

	ret = pl__syscall(SYS_ppoll, sleeper.fds, nr_fds + 1,
			  deadline_ns == UINT64_MAX ? NULL : &ts, NULL);
	/* As if there were more than the process may open. */
	if (ret < 0 && ret != -EINTR) {
		pl__sleep_ns(BLIND_NS);
		return orphan_ring_all_readable();
	}
	if (ret <= 0)
		return false;
	if (sleeper.fds[0].revents)
		pl__fd_read(sleeper.fds[0].fd, &value, sizeof(value));
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

/* As long as there is nothing to wait for rings with, they are looked at. */
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
	sleeper.fds[0] = (struct pollfd){
		.fd = sleeper.event_plus_1 - 1, .events = POLLIN,
	};
	/* [orphan-c] pairs with [orphan-d] in pl__sysmon_end_sleep(). */
	atomic_store(&sleeper.is_polling, true);
	PL_INJECT("orphan-c");
	if (atomic_load(&pl__rt.sysmon) == word)
		has_cause = poll_until(nr, deadline_ns);
	atomic_store(&sleeper.is_polling, false);
	return has_cause;
}

void pl__sysmon_end_sleep(void)
{
	static const uint64_t one = 1;

	pl__futex_wake(&pl__rt.sysmon, 1);
	PL_INJECT("orphan-d");
	/* [orphan-d] pairs with [orphan-c] in pl__sysmon_sleep(). */
	if (atomic_load(&sleeper.is_polling))
		pl__fd_write(sleeper.event_plus_1 - 1, &one, sizeof(one));
}

void pl__sysmon_sleep_fini(void)
{
	if (sleeper.event_plus_1)
		pl__close(sleeper.event_plus_1 - 1);
	sleeper.event_plus_1 = 0;
	pl__free(sleeper.fds);
	sleeper.fds = NULL;
}

/* Nobody polls in a child. */
static void sysmon_sleep_atfork_child(void)
{
	pl__sysmon_sleep_fini();
	store_relaxed(&sleeper.is_polling, false);
}

PL_ATFORK_CHILD(sysmon_sleep_atfork_child);
