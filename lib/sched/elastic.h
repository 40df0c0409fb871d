/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * elastic: as many workers run as the load needs, up to the target
 *
 * A second worker for what one could do costs a wake, a sleep and cold caches
 * for each batch of events.  So `active` workers are meant to run, from 1 to
 * the target, and sysmon sets that number.  All else follows from it: a
 * submitter notifies while fewer run, and wakes sysmon otherwise; a worker
 * above it is surplus, see rt.h.  sysmon raises the number where tasks wait for
 * longer than 0.1 ms, or where none is taken at all; and lowers it where
 * the workers use no more processor time than fewer could.  If fewer take as
 * many tasks, or get as much processor time, it keeps to them for a while:
 * processors that others use, or a quota, are no use to more workers.
 *
 * A submitter of several tasks raises the number itself, where such batches
 * needed it before:
 *
 *	sysmon				submitter of a batch
 *	word = ASLEEP			active = more
 *	full barrier	[elastic-a]	full barrier		[elastic-b]
 *	if (active is 1)		if (word is ASLEEP)
 *		sleep without a deadline	wake sysmon
 *
 * Invariant: sysmon does not sleep without a deadline while the number is above
 * one.  Otherwise it is never lowered again.
 */
#ifndef PL_ELASTIC_H
#define PL_ELASTIC_H

#include "base/base.h"

/* Why the number was changed; pl_runtime(3) has a counter of each. */
enum pl__elastic_why {
	PL__RAISED_WAITS,	/* tasks waited for long */
	PL__RAISED_STUCK,	/* they waited behind one that computes */
	PL__RAISED_BATCH,	/* many were spawned at once */
	PL__RAISED_BACK,	/* fewer were tried, and did less */
	PL__LOWERED_UNUSED,	/* fewer suffice for what was used */
	PL__LOWERED_TRIAL,	/* to see whether fewer do as much */
	PL__NR_ELASTIC_WHY
};

/*
 * While no sysmon and no worker runs, and there are lots: the number follows
 * the load, or is the target.
 */
void pl__elastic_start(bool is_elastic);

/* Tasks that all workers have taken; wraps around, as each one's count does. */
uint32_t pl__nr_ticks(void);

/* The target has changed. */
void pl__elastic_follow(void);

/*
 * sysmon: sets the number; true: raised, and notified.  @has_work: tasks wait.
 */
bool pl__elastic_look(uint64_t now, bool has_work);

/* sysmon: the time until the next look, @ns at most. */
uint64_t pl__elastic_interval(uint64_t ns, bool has_work);

/* sysmon: sleeps no longer though no task waits; @deadline_ns or earlier. */
uint64_t pl__elastic_deadline(uint64_t now, uint64_t deadline_ns);

/*
 * @nr tasks were queued at once, and are about to be notified for.  Where such
 * batches needed more workers than ran, the number is raised for this one.
 */
void pl__elastic_batch(uint32_t nr);

#endif /* PL_ELASTIC_H */
