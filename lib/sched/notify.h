/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * notify: an idle worker is made to run because there is work
 *
 * Calling for help:
 *
 *	idle worker			whoever queued a task
 *	nr_idle++		[idle-a]	queue it
 *	nr_searching-- if it was		full barrier	[idle-b]
 *	full barrier			if (nr_searching) leave it to that one
 *	look in every queue		if (nr_idle) signal the lots
 *	park
 *
 * Either the idle one sees the task, or the other sees that it is idle.  One
 * worker at a time searches: nr_searching is a token, taken by who calls for
 * help and passed to whom it wakes.  Who lays it down looks in every queue
 * afterwards, and calls again if there is more, on behalf of all who left it
 * to him.
 */
#ifndef PL_NOTIFY_H
#define PL_NOTIFY_H

#include "base/base.h"

/* Tasks were queued: calls for help, if too few run. */
void pl__notify_one(void);

/* The same if there are any: what was left to us may be more than we take. */
void pl__notify_if_work(void);

/* The caller searches: it looks in every queue afterwards. */
struct pl__worker;
void pl__stop_searching(struct pl__worker *w);

/* Has all that are parked look for a task, and park once more. */
void pl__notify_all(void);

#endif /* PL_NOTIFY_H */
