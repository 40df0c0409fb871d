/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "watch/sysmon_sleep.h"
#include "pace/sysmon_wake.h"
#include "base/atfork.h"
#include "base/inject.h"
#include "base/sys.h"
#include "ring/ring.h"
#include "run/orphan_ring.h"

#include <poll.h>
#include <sys/syscall.h>

/* Interval if sysmon has no descriptor or no memory to wait for rings with. */
#define BLIND_NS	(5 * 1000 * 1000ULL)

/* One more than workers.  W: sysmon's thread, and the thread that stops it. */
static struct pollfd *fds;

static bool can_poll(void)
{
	if (!fds)
		fds = pl__alloc((pl__rt.cfg.max_workers + 1) * sizeof(*fds));
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
}

/* A child of fork() has no sysmon that polls. */
PL_ATFORK_CHILD(pl__sysmon_sleep_fini);
