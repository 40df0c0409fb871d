/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon_sleep: sysmon sleeps until its word changes or a ring is ready
 *
 * A futex ends its sleep; or an eventfd, if sysmon waits for rings as well:
 *
 *	sysmon				waker
 *	is_polling = true	[orphan-c]	word = new
 *	if (word is unchanged)	[orphan-c]	if (is_polling)	[orphan-d]
 *		sleep				write the eventfd
 *
 * Invariant: sysmon does not sleep in poll() after its word has changed.  All
 * four accesses are seq_cst, so either sysmon finds the new word or the waker
 * finds is_polling; otherwise sysmon sleeps through the wakeup.
 */
#include "sched/sysmon_sleep.h"
#include "base/atfork.h"
#include "base/inject.h"
#include "base/sys.h"
#include "ring/ring.h"
#include "sched/orphan_ring.h"

#include <poll.h>
#include <sys/syscall.h>

/* Interval if sysmon has no descriptor or no memory to wait for rings with. */
#define BLIND_NS	(5 * 1000 * 1000ULL)

/* W: sysmon's thread, and the thread that stops it. */
static struct {
	struct pollfd		*fds;		/* W: one more than workers */
	int			event_plus_1;	/* W: eventfd, or 0 */
	_Atomic uint32_t	is_polling;
} sleeper;

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

/*
 * Lists the orphaned rings; a ring that was ready a moment ago is left out, and
 * lowers the deadline instead.
 */
static uint32_t fill_in(uint64_t now, uint64_t *deadline_ns)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i, n = 0;
	struct pl__worker *w;

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
		sleeper.fds[++n] = (struct pollfd){
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
			if (sleeper.fds[n].fd ==
			    pl__ring_fd(pl__orphan_ring_of(w)))
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

/* A child of fork() has no sysmon that polls. */
static void sysmon_sleep_atfork_child(void)
{
	pl__sysmon_sleep_fini();
	store_relaxed(&sleeper.is_polling, false);
}

PL_ATFORK_CHILD(sysmon_sleep_atfork_child);
