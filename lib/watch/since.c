/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "watch/since.h"
#include "watch/since_note.h"

static uint32_t since_look(_Atomic uint64_t *seen, uint32_t key,
			   uint64_t now_ns)
{
	uint64_t old = load_relaxed(seen);

	if (!pl__since_is_of(old, key))
		atomic_compare_exchange_strong(seen, &old,
					       pl__since_note(key, now_ns));
	return pl__since_ms(old, key, now_ns);
}

__attribute__((noinline, no_sanitize_thread))
static uint32_t task_key(struct pl__worker *w)
{
	uintptr_t t = (uintptr_t)*(struct pl__task *volatile *)&w->current;

	return pl__since_task_key(load_relaxed(&w->tick), t);
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
