/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * own_wait: a thread waits for the library, not for what its task calls
 *
 * A worker that sleeps until it has a lock of the library, or memory for a
 * stack, looks as if its task had blocked it.  More workers are of no use then:
 * they would wait for the same.  So such waits say so, for sysmon to see.
 * While one gets memory the page faults of others wait, too.
 */
#ifndef PL_OWN_WAIT_H
#define PL_OWN_WAIT_H

#include "base/base.h"

/* Of one thread, which alone writes. */
struct pl__own_waits {
	_Atomic uint32_t	depth;	/* 0: it waits for nothing */
	_Atomic uint32_t	memory;	/* the part that is for memory */
	uint32_t		nr;	/* that have begun */
};

/* Those of the calling thread are counted in @waits, or nowhere: NULL. */
void pl__own_waits_count_in(struct pl__own_waits *waits);

/* No task is switched to in between; they may be nested. */
void pl__own_wait_begin(void);
void pl__own_wait_end(void);
void pl__memory_wait_begin(void);
void pl__memory_wait_end(void);

#endif /* PL_OWN_WAIT_H */
