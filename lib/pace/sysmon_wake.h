/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon_wake: makes sysmon look at the workers
 *
 * A submitter that finds enough workers running does not notify, but they may
 * be blocked: so it wakes sysmon.  The word of sysmon's state, on which it
 * sleeps, is drawn in sysmon.c.
 *
 * A futex ends its sleep; or an eventfd, the bell, if sysmon waits for rings as
 * well, by poll(2):
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
#ifndef PL_SYSMON_WAKE_H
#define PL_SYSMON_WAKE_H

#include "queue/rt.h"
#include "base/inject.h"

/*
 * The slow path of pl__sysmon_notify(); true: recheck, as the crew had not
 * counted blocked workers yet.
 */
bool pl__sysmon_notify_slow(void);

/* Makes sysmon look at the workers, though no task waits. */
void pl__sysmon_kick(void);

/*
 * A worker that parks for want of work clears the backlog; true: now there is
 * work.
 */
bool pl__sysmon_clear_backlog(void);

/*
 * The submitter has queued tasks, issued a full barrier, and counted enough
 * running workers.  Wakes sysmon; true: count them again.
 */
static inline bool pl__sysmon_notify(void)
{
	/* [sysmon-b] pairs with [sysmon-a], [backlog-b] with [backlog-a]. */
	return unlikely(load_relaxed(&pl__rt.sysmon) != PL__SYSMON_AWAKE) &&
	       pl__sysmon_notify_slow();
}

/*
 * The caller has I/O in flight and runs tasks, or is about to.  Wakes sysmon,
 * which orphans the ring if the caller stalls.
 */
static inline void pl__sysmon_notify_io(void)
{
	/* [orphan-b] pairs with [orphan-a] in sysmon.c. */
	pl__full_barrier();
	PL_INJECT("orphan-b");
	if (unlikely(load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP))
		pl__sysmon_kick();
}

/*
 * The caller has set a task aside that is to compute when others do so no more.
 * Wakes sysmon, which raises the limit in time, or finds that one of these
 * blocks.
 */
static inline void pl__sysmon_notify_compute(void)
{
	/* [compute-b] pairs with [compute-a] in sysmon.c. */
	pl__full_barrier();
	PL_INJECT("compute-b");
	if (unlikely(load_relaxed(&pl__rt.sysmon) == PL__SYSMON_ASLEEP))
		pl__sysmon_kick();
}

/* ---- for sysmon ---- */

/* Returns the old state; PL__SYSMON_OVER does not change any more. */
uint32_t pl__sysmon_set_state(uint32_t word);

/* From ASLEEP to NO_BACKLOG: it is to look, though no task waits. */
bool pl__sysmon_set_no_backlog(void);

/* Returns the old state; if that was not AWAKE, sets the crew's backlog. */
uint32_t pl__sysmon_set_awake(void);

/* The backlog of the crew follows sysmon's word. */
void pl__crew_publish_backlog(void);

/* Ends sysmon's sleep, after its word has changed. */
void pl__sysmon_end_sleep(void);

/* The descriptor to poll beside others, or -errno. */
int pl__sysmon_bell(void);

/* It is about to poll the bell; false: its word is @word no more. */
bool pl__sysmon_poll_begin(uint32_t word);
void pl__sysmon_poll_end(void);

/* While no sysmon runs. */
void pl__sysmon_bell_close(void);

#endif /* PL_SYSMON_WAKE_H */
