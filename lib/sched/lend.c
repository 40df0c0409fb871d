/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * lend: the rings of workers that are held up
 *
 * What completes on a ring is seen by its owner between two tasks.  If a task
 * blocks that, or computes for long, others look in its place.  So while a
 * worker with I/O in flight runs tasks, the watcher looks whether it goes on to
 * the next; if not, its ring is lent.  Then it is one more queue to steal from:
 * ripe at once, as there may be requests that were not submitted, and again
 * whenever the kernel says that something is complete, which the watcher waits
 * for.
 *
 *	OWN --held up--> RIPE --helped--> LENT --readable--> RIPE
 *	 ^                |                |
 *	 +--- goes on ----+----------------+
 *
 * Only the watcher lends and takes back.  But who finds the lock taken, most
 * likely by an owner who has come back, takes back as well: what that is about
 * to add may have been counted when the ring was lent, so the watcher is to
 * look again.
 *
 * The watcher sleeps for ever only if there is no such worker whose ring is not
 * lent, or has got more requests since:
 *
 *	watcher				worker
 *	word = ASLEEP		[lend-a]	RUNS, or I/O in flight
 *	full barrier			full barrier		[lend-b]
 *	look for one			if (word is ASLEEP)
 *	if (none)			    word = UNTOLD, wake it
 *		sleep
 *
 * Its sleep ends by a futex; or by an eventfd, if it waits for rings as well:
 *
 *	watcher				whoever wakes it
 *	is_polling = true	[lend-c]	word = another
 *	if (word is as it was)	[lend-c]	if (is_polling)	[lend-d]
 *		sleep				write the eventfd
 *
 * All four are seq_cst: one of the two sees the other.
 */
#include "sched/lend.h"
#include "base/fork.h"
#include "base/inject.h"
#include "ring/ring.h"
#include "base/sys.h"

#include <poll.h>
#include <sys/syscall.h>

/* In the same task for so long, it is held up; ripe so often at most. */
#define HELD_NS		(1000 * 1000ULL)

/* Without a descriptor or memory to wait with. */
#define BLIND_NS	(5 * 1000 * 1000ULL)

/* W: the watcher's thread, and who stops it. */
static struct {
	struct pollfd		*fds;		/* W: one more than workers */
	int			event_plus_1;	/* W: eventfd, or 0 */
	_Atomic uint32_t	is_polling;
} lend;

/* ---- who is held up ---- */

static bool is_in_task(struct pl__worker *w)
{
	uint32_t duty = load_relaxed(&w->duty);

	return duty == PL__RUNS || duty == PL__BLOCKED;
}

static struct pl__ring *ring_of(struct pl__worker *w)
{
	return load_acquire(&w->ring_seen);
}

static bool is_busy(struct pl__worker *w)
{
	struct pl__ring *ring = ring_of(w);

	return ring && pl__ring_is_busy(ring);
}

static bool is_at_risk(struct pl__worker *w)
{
	return is_busy(w) && is_in_task(w);
}

static bool is_held_up(struct pl__worker *w, uint64_t now)
{
	struct pl__watched *s = &w->watched;
	uint32_t tick = load_relaxed(&w->tick);

	if (!is_at_risk(w)) {
		s->held_ns = 0;
		return false;
	}
	if (!s->held_ns || s->held_tick != tick) {
		s->held_ns = now;
		s->held_tick = tick;
		return false;
	}
	return now - s->held_ns >= HELD_NS;
}

/* It is not lent, or there are requests since it became ripe. */
static bool has_more(struct pl__worker *w)
{
	return load_relaxed(&w->lent) == PL__OWN ||
	       pl__ring_nr_added(ring_of(w)) != w->watched.ripe_nr;
}

/* True: it has become ripe. */
static bool look_at(struct pl__worker *w, uint64_t now)
{
	struct pl__watched *s = &w->watched;
	bool was_readable = s->is_readable;

	s->is_readable = false;
	if (!is_held_up(w, now)) {
		if (load_relaxed(&w->lent) != PL__OWN)
			atomic_store(&w->lent, PL__OWN);
		return false;
	}
	if (!was_readable && !has_more(w))
		return false;
	s->ripe_ns = now;
	s->ripe_nr = pl__ring_nr_added(ring_of(w));
	return atomic_exchange(&w->lent, PL__RIPE) != PL__RIPE;
}

uint32_t pl__lend_look(uint64_t now)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, nr_ripe = 0;

	for (i = 0; i < nr; i++)
		nr_ripe += look_at(pl__rt.workers[i], now);
	return nr_ripe;
}

bool pl__lend_is_due(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++)
		if (is_at_risk(pl__rt.workers[i]) &&
		    has_more(pl__rt.workers[i]))
			return true;
	return false;
}

bool pl__lend_may_be_due(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++)
		if (is_busy(pl__rt.workers[i]))
			return true;
	return false;
}

void pl__lend_help(struct pl__worker *w, struct pl__worker *victim)
{
	uint32_t ripe = PL__RIPE, lent = PL__LENT;

	if (!atomic_compare_exchange_strong(&victim->lent, &ripe, PL__LENT))
		return;
	w->has_helped = true;
	if (pl__ring_help(ring_of(victim)))
		return;
	atomic_compare_exchange_strong(&victim->lent, &lent, PL__OWN);
	pl__watch_io();
}

/*
 * The kernel cancels what a thread submitted when that ends.  Which requests
 * these are is not kept, so all have to be through for once.
 */
bool pl__lend_keeps(struct pl__worker *w)
{
	if (w->has_helped)
		w->has_helped = pl__lend_may_be_due();
	return w->has_helped;
}

/* ---- the watcher's sleep ---- */

static bool can_poll(void)
{
	if (!lend.fds)
		lend.fds = pl__alloc((pl__rt.cfg.max_workers + 1) *
				     sizeof(*lend.fds));
	if (lend.fds && !lend.event_plus_1)
		lend.event_plus_1 = pl__eventfd() + 1;
	if (lend.event_plus_1 < 0)
		lend.event_plus_1 = 0;
	return lend.fds && lend.event_plus_1;
}

/* One that was ripe a moment ago is waited for later. */
static uint32_t fill_in(uint64_t now, uint64_t *deadline_ns)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, n = 0;
	struct pl__worker *w;

	for (i = 0; i < nr; i++) {
		w = pl__rt.workers[i];
		if (load_relaxed(&w->lent) != PL__LENT)
			continue;
		if (now - w->watched.ripe_ns < HELD_NS) {
			if (*deadline_ns > w->watched.ripe_ns + HELD_NS)
				*deadline_ns = w->watched.ripe_ns + HELD_NS;
			continue;
		}
		lend.fds[++n] = (struct pollfd){
			.fd = pl__ring_fd(ring_of(w)),
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
		if (load_relaxed(&w->lent) != PL__LENT)
			continue;
		for (n = 1; n <= nr_fds; n++)
			if (lend.fds[n].fd == pl__ring_fd(ring_of(w)))
				w->watched.is_readable |= lend.fds[n].revents;
		is_any |= w->watched.is_readable;
	}
	return is_any;
}

static bool mark_all_readable(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++)
		pl__rt.workers[i]->watched.is_readable = true;
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

	ret = pl__syscall(SYS_ppoll, lend.fds, nr_fds + 1,
			  deadline_ns == UINT64_MAX ? NULL : &ts, NULL);
	/* As if there were more than the process may open. */
	if (ret < 0 && ret != -EINTR) {
		pl__sleep_ns(BLIND_NS);
		return mark_all_readable();
	}
	if (ret <= 0)
		return false;
	if (lend.fds[0].revents)
		pl__fd_read(lend.fds[0].fd, &value, sizeof(value));
	return note_readable(nr_fds);
}

static bool is_any_lent(void)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;

	for (i = 0; i < nr; i++)
		if (load_relaxed(&pl__rt.workers[i]->lent) == PL__LENT)
			return true;
	return false;
}

/* As long as there is nothing to wait for rings with, they are looked at. */
static bool sleep_blind(uint32_t word, uint64_t deadline_ns)
{
	uint64_t soon = pl__now_ns() + BLIND_NS;

	pl__futex_wait(&pl__rt.watcher, word,
		       deadline_ns < soon ? deadline_ns : soon);
	return mark_all_readable();
}

bool pl__lend_sleep(uint32_t word, uint64_t deadline_ns)
{
	bool has_cause = false;
	uint32_t nr;

	if (likely(!is_any_lent())) {
		pl__futex_wait(&pl__rt.watcher, word, deadline_ns);
		return false;
	}
	if (!can_poll())
		return sleep_blind(word, deadline_ns);
	nr = fill_in(pl__now_ns(), &deadline_ns);
	lend.fds[0] = (struct pollfd){
		.fd = lend.event_plus_1 - 1, .events = POLLIN,
	};
	/* [lend-c] pairs with [lend-d] in pl__lend_wake(). */
	atomic_store(&lend.is_polling, true);
	PL_INJECT("lend-c");
	if (atomic_load(&pl__rt.watcher) == word)
		has_cause = poll_until(nr, deadline_ns);
	atomic_store(&lend.is_polling, false);
	return has_cause;
}

void pl__lend_wake(void)
{
	static const uint64_t one = 1;

	pl__futex_wake(&pl__rt.watcher, 1);
	PL_INJECT("lend-d");
	/* [lend-d] pairs with [lend-c] in pl__lend_sleep(). */
	if (atomic_load(&lend.is_polling))
		pl__fd_write(lend.event_plus_1 - 1, &one, sizeof(one));
}

void pl__lend_stop(void)
{
	if (lend.event_plus_1)
		pl__close(lend.event_plus_1 - 1);
	lend.event_plus_1 = 0;
	pl__free(lend.fds);
	lend.fds = NULL;
}

/* Nobody polls in a child. */
static void forget(void)
{
	pl__lend_stop();
	store_relaxed(&lend.is_polling, false);
}

PL_IN_CHILD(forget);
