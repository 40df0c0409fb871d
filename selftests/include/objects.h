/* SPDX-License-Identifier: GPL-2.0-only */
/* Objects of the library that a test leaves behind. */
#ifndef SELFTESTS_OBJECTS_H
#define SELFTESTS_OBJECTS_H

#include "base/inject.h"
#include "ctx/self.h"
#include "queue/task.h"

static int64_t objects_before;

/*
 * More than before, but for values by key, which the calling thread has until
 * it ends.
 */
static inline int64_t objects_left(void)
{
	int64_t nr = 0;
#ifdef PL_TEST_FAULT
	struct pl__task *t = pl__self_thread();

	nr = load_relaxed(&pl__nr_objects) - objects_before -
	     (t && t->locals);
#endif
	return nr;
}

static inline void objects_begin(void)
{
	objects_before += objects_left();
}

#endif /* SELFTESTS_OBJECTS_H */
