/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * lend: the rings of workers that are held up, polled by others
 */
#ifndef PL_LEND_H
#define PL_LEND_H

#include "sched/sched.h"

/* Of the watcher's: how many rings became ripe. */
uint32_t pl__lend_look(uint64_t now);

/* There are rings whose owners may be held up any time. */
bool pl__lend_is_due(void);
bool pl__lend_may_be_due(void);		/* the same, once they run tasks */

/*
 * Sleeps as long as the watcher's word is @word; true: since a lent ring has
 * cause, it is to look.
 */
bool pl__lend_sleep(uint32_t word, uint64_t deadline_ns);

/* The watcher's word has changed: ends its sleep. */
void pl__lend_wake(void);
void pl__lend_stop(void);

/* Polls the ring of @victim, if it is ripe: @w, the caller, has helped then. */
void pl__lend_help(struct pl__worker *w, struct pl__worker *victim);

/* The kernel may have requests that @w submitted for others. */
bool pl__lend_keeps(struct pl__worker *w);

#endif /* PL_LEND_H */
