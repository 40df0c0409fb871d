/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "base/own_wait.h"
#include "base/atfork.h"

static __thread struct pl__own_waits *own_waits PL_TLS_EARLY;

__pl_noinline void pl__own_waits_count_in(struct pl__own_waits *waits)
{
	own_waits = waits;
}

static void add(_Atomic uint32_t *counter, uint32_t nr)
{
	store_relaxed(counter, load_relaxed(counter) + nr);
}

__pl_noinline void pl__own_wait_begin(void)
{
	struct pl__own_waits *o = own_waits;

	if (!o)
		return;
	add(&o->depth, 1);
	o->nr++;
}

__pl_noinline void pl__own_wait_end(void)
{
	struct pl__own_waits *o = own_waits;

	if (o)
		add(&o->depth, -1U);
}

__pl_noinline void pl__memory_wait_begin(void)
{
	pl__own_wait_begin();
	if (own_waits)
		add(&own_waits->memory, 1);
}

__pl_noinline void pl__memory_wait_end(void)
{
	if (own_waits)
		add(&own_waits->memory, -1U);
	pl__own_wait_end();
}

static void own_wait_atfork_child(void)
{
	own_waits = NULL;
}

PL_ATFORK_CHILD(own_wait_atfork_child);
