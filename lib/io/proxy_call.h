/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * proxy_call: a call that blocks, made by a task of the library's for a caller,
 * which may abandon it
 *
 * Nothing ends a call of the C library.  So a caller that gives up, at its
 * deadline or when it is interrupted, leaves the call to the task that makes
 * it, which destroys it afterwards.  Until then all that the call uses has to
 * be its own: a copy of each argument, and memory for each result.
 */
#ifndef PL_PROXY_CALL_H
#define PL_PROXY_CALL_H

#include "base/list.h"
#include "queue/task.h"

/* L: the lock of its queue is held. */
struct pl__proxy_call {
	/* I: makes the call, in a task of the library's */
	void			(*run)(struct pl__proxy_call *c);
	/* I: frees the call, and the result that it may have */
	void			(*destroy)(struct pl__proxy_call *c);
	struct pl__list		link;		/* L: in the queue */
	bool			is_begun;	/* L: a task makes the call */
	bool			is_abandoned;	/* L: by its caller */
	struct pl__proxies	*of;		/* I: in whose queue it was */
	_Atomic uint32_t	done;	/* L: what the caller waits on */
};

/*
 * Has a task named @name make the call @c, which is zero but for its functions,
 * and waits for it; @what is shown meanwhile.  0: it was made, and is the
 * caller's again; else -errno, and @c is, or will be, destroyed.
 */
int pl__proxy_call(struct pl__proxy_call *c, const char *name,
		   enum pl__for what, uint64_t deadline_ns);

/*
 * The most such calls that are made at a time in the caller's group; the
 * runtime has to run.
 */
uint32_t pl__proxy_calls_max(void);

#endif /* PL_PROXY_CALL_H */
