/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon_wake: the word of sysmon's state, the bell, and the backlog
 */
#include "base/inject.h"
#include "base/sys.h"
#include "pace/notify.h"
#include "queue/ready.h"

static struct {
	int			event_plus_1;	/* W: eventfd, or 0 */
	_Atomic uint32_t	is_polling;
} bell;

/* ---- the word ---- */

uint32_t pl__sysmon_set_state(uint32_t word)
{
	uint32_t old = load_relaxed(&pl__rt.sysmon);

	do {
		if (old == word || old == PL__SYSMON_OVER)
			break;
	} while (!atomic_compare_exchange_weak(&pl__rt.sysmon, &old, word));
	return old;
}

/*
 * Of two threads here, the one that stores last has read the last word, or
 * finds it changed and stores again.
 */
void pl__crew_publish_backlog(void)
{
	struct pl__group *g;
	uint32_t word, i;

	if (!pl__rt.main.lots.nr_members)
		return;
	do {
		word = atomic_load(&pl__rt.sysmon);
		PL_INJECT("backlog");
		pl__for_each_group(g, i)
			pl__crew_set_backlog(&g->lots,
					     word == PL__SYSMON_AWAKE);
	} while (atomic_load(&pl__rt.sysmon) != word);
}

uint32_t pl__sysmon_set_awake(void)
{
	uint32_t old = pl__sysmon_set_state(PL__SYSMON_AWAKE);

	if (old != PL__SYSMON_AWAKE && old != PL__SYSMON_OVER)
		pl__crew_publish_backlog();
	return old;
}

bool pl__sysmon_set_no_backlog(void)
{
	uint32_t asleep = PL__SYSMON_ASLEEP;

	return atomic_compare_exchange_strong(&pl__rt.sysmon, &asleep,
					      PL__SYSMON_NO_BACKLOG);
}

/* ---- the bell ---- */

int pl__sysmon_bell(void)
{
	if (!bell.event_plus_1)
		bell.event_plus_1 = pl__eventfd() + 1;
	if (bell.event_plus_1 < 0)
		bell.event_plus_1 = 0;
	return bell.event_plus_1 - 1;
}

bool pl__sysmon_poll_begin(uint32_t word)
{
	/* [orphan-c] pairs with [orphan-d] in pl__sysmon_end_sleep(). */
	atomic_store(&bell.is_polling, true);
	PL_INJECT("orphan-c");
	return atomic_load(&pl__rt.sysmon) == word;
}

void pl__sysmon_poll_end(void)
{
	atomic_store(&bell.is_polling, false);
}

void pl__sysmon_end_sleep(void)
{
	static const uint64_t one = 1;

	pl__futex_wake(&pl__rt.sysmon, 1);
	PL_INJECT("orphan-d");
	/* [orphan-d] pairs with [orphan-c] in pl__sysmon_poll_begin(). */
	if (atomic_load(&bell.is_polling))
		pl__fd_write(bell.event_plus_1 - 1, &one, sizeof(one));
}

void pl__sysmon_bell_close(void)
{
	if (bell.event_plus_1)
		pl__close(bell.event_plus_1 - 1);
	bell.event_plus_1 = 0;
	store_relaxed(&bell.is_polling, false);
}

/* ---- wakes it ---- */

/* Sets AWAKE from another thread, and ends sysmon's sleep. */
static uint32_t sysmon_wake(void)
{
	uint32_t old = pl__sysmon_set_awake();

	if (old == PL__SYSMON_ASLEEP)
		pl__sysmon_end_sleep();
	return old;
}

bool pl__sysmon_notify_slow(struct pl__group *g)
{
	uint32_t old;

	/* Another worker may have taken what was queued. */
	if (!pl__work_anywhere(g))
		return false;
	old = sysmon_wake();
	return g->lots.nr_members &&
	       (old == PL__SYSMON_NO_BACKLOG || old == PL__SYSMON_ASLEEP);
}

void pl__sysmon_kick(void)
{
	if (pl__sysmon_set_no_backlog())
		pl__sysmon_end_sleep();
}

/*
 * While the backlog was clear a worker of theirs may have blocked, for which
 * the kernel has woken none.
 */
static void notify_others(struct pl__group *own)
{
	struct pl__group *g;
	uint32_t i;

	pl__for_each_group(g, i)
		if (g != own)
			pl__notify_if_work(g);
}

bool pl__sysmon_clear_backlog(struct pl__group *g)
{
	uint32_t awake = PL__SYSMON_AWAKE;

	if (!g->lots.nr_members)
		return false;
	/* The backlog is of all groups. */
	if (load_relaxed(&pl__rt.sysmon) != awake || pl__work_but_in(g) ||
	    !atomic_compare_exchange_strong(&pl__rt.sysmon, &awake,
					    PL__SYSMON_NO_BACKLOG))
		return false;
	/* [backlog-a] pairs with [backlog-b] in pl__sysmon_notify(). */
	PL_INJECT("backlog-a");
	pl__crew_publish_backlog();
	pl__full_barrier();
	if (!pl__work_but_in(NULL))
		return false;
	/* Sysmon may have gone to sleep before the task was queued. */
	sysmon_wake();
	notify_others(g);
	return pl__work_anywhere(g);
}
