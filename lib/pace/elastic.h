/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * elastic: as many workers run as pay, up to the target
 *
 * `active` workers are meant to run: the target at first.  All else follows
 * from it: a submitter notifies while fewer run, and wakes sysmon otherwise; a
 * worker above it is surplus (pace.h).  A second worker for what one could do
 * costs a wake, a sleep and cold caches for each batch of events, and takes a
 * processor from what sends them; but a tree of tasks takes half of the time.
 * No rule tells the two apart, so sysmon tries:
 *
 *	RESTS -> MEASURES -> SETTLES -> TRIES -> RESTS
 *	         10 ms       2 ms       10 ms
 *
 * It tries half as many where these could use as much processor time, and twice
 * as many where all is used, or tasks wait for 0.1 ms.  More are kept if they
 * take more tasks; or as many, these wait shorter, and fewer would not save 15
 * percent of the processor time.  A verdict holds for 20 ms, one against more
 * for 0.3 s, and each of the same kind for four times as long, up to 2 s.
 * After 0.1 s with nothing to do all run again.
 *
 * Where fewer run than may, it does not wait for a trial: it raises the number
 * where tasks wait for 0.1 ms, or, if fewer have won one, for 1 ms and twice as
 * long as then; or behind a task that computes.
 */
#ifndef PL_ELASTIC_H
#define PL_ELASTIC_H

#include "base/base.h"

/*
 * While no sysmon and no worker runs, and there are lots: the number is the
 * target, and stays so unless it is elastic.
 */
void pl__elastic_start(bool is_elastic);

/* Looks for a task of all workers; wraps around, as each one's count does. */
uint32_t pl__nr_ticks(void);

/* The target has changed: so many run. */
void pl__elastic_follow(void);

/*
 * sysmon: sets the number; true: raised, and notified.  @has_work: tasks wait.
 */
bool pl__elastic_look(uint64_t now, bool has_work);

/* sysmon: the time until the next look, @ns at most. */
uint64_t pl__elastic_interval(uint64_t ns, bool has_work);

#endif /* PL_ELASTIC_H */
