/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * notify: an idle worker is made to run because there is work
 *
 *	idle worker			submitter
 *	nr_idle++		[idle-a]	queue a task
 *	nr_searching-- if it searched	full barrier	[idle-b]
 *	full barrier			if (nr_searching) return
 *	look in every queue		if (nr_idle) signal the lots
 *	park
 *
 * Invariant: a task that waits while too few run has a worker notified for it,
 * or a searcher.  Either the idle worker sees the task or the submitter sees
 * nr_idle; otherwise the worker parks, the submitter wakes none, and the task
 * waits.
 *
 * At most one worker searches.  A submitter that notifies raises nr_searching
 * for the worker that it wakes.  A submitter that sees a searcher does not
 * notify; so a worker that stops searching rechecks every queue, and notifies
 * again if there is more, on behalf of all submitters that left their tasks to
 * it.
 */
#ifndef PL_NOTIFY_H
#define PL_NOTIFY_H

#include "base/base.h"

/* Called after tasks were queued: notifies a worker, if too few run. */
void pl__notify_one(void);

/*
 * Notifies if any task waits: others may have left more to the caller than it
 * takes.
 */
void pl__notify_if_work(void);

/* The caller stops searching; it has to look in every queue afterwards. */
struct pl__worker;
void pl__stop_searching(struct pl__worker *w);

/* Wakes all parked workers; each looks for a task, and parks again. */
void pl__notify_all(void);

#endif /* PL_NOTIFY_H */
