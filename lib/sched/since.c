/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/since.h"

/*
 * A key of what was seen, and the ms at which it was: one word, so that looks
 * of several threads cannot mix.
 */
static uint32_t since_look(_Atomic uint64_t *seen, uint32_t key,
			   uint64_t now_ns)
{
	uint32_t now = (uint32_t)(now_ns / 1000000);
	uint64_t old = load_relaxed(seen);
	int32_t ms = (int32_t)(now - (uint32_t)old);

	if (old && old >> 32 == key)
		return ms > 0 ? (uint32_t)ms : 0;
	atomic_compare_exchange_strong(seen, &old, (uint64_t)key << 32 | now);
	return 0;
}

/*
 * Ticks alone do not tell tasks apart that follow each other without a look at
 * the queues.
 */
__attribute__((noinline, no_sanitize_thread))
static uint32_t task_key(struct pl__worker *w)
{
	uintptr_t t = (uintptr_t)*(struct pl__task *volatile *)&w->current;

	return load_relaxed(&w->tick) +
	       (uint32_t)(t / PL_CACHELINE) * 2654435761U;
}

uint32_t pl__since_task_ms(struct pl__worker *w, uint64_t now_ns)
{
	return since_look(&w->sysmon.task_since, task_key(w), now_ns);
}

uint32_t pl__since_ran_ms(struct pl__worker *w, uint64_t cpu_ns,
			  uint64_t now_ns)
{
	return since_look(&w->sysmon.ran_since, (uint32_t)cpu_ns, now_ns);
}
