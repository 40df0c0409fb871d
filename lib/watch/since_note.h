/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * since_note: when something was first seen as it is
 *
 * A key of what was seen, and the ms at which it was: one word, so that looks
 * of several threads cannot mix.  plstat reads such words of other processes.
 */
#ifndef PL_SINCE_NOTE_H
#define PL_SINCE_NOTE_H

#include "base/base.h"

/*
 * Of a worker's tick and its task's address.  Ticks alone do not tell tasks
 * apart that follow each other without a look at the queues.
 */
static inline uint32_t pl__since_task_key(uint32_t tick, uint64_t task)
{
	return tick + (uint32_t)(task / PL_CACHELINE) * 2654435761U;
}

static inline uint64_t pl__since_note(uint32_t key, uint64_t now_ns)
{
	return (uint64_t)key << 32 | (uint32_t)(now_ns / 1000000);
}

static inline bool pl__since_is_of(uint64_t note, uint32_t key)
{
	return note && note >> 32 == key;
}

/* ms since the @note; 0 if that is of something else. */
static inline uint32_t pl__since_ms(uint64_t note, uint32_t key,
				    uint64_t now_ns)
{
	int32_t ms = (int32_t)((uint32_t)(now_ns / 1000000) - (uint32_t)note);

	return pl__since_is_of(note, key) && ms > 0 ? (uint32_t)ms : 0;
}

#endif /* PL_SINCE_NOTE_H */
