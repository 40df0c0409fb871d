/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Waiting on a word; all blocking calls are built on it.
 */
#ifndef PARKLOT_WORD_H
#define PARKLOT_WORD_H

#include "base.h"

PL_BEGIN_DECLS

/**
 * struct pl_word - a 32-bit word that can be waited on; bthread's butex
 *
 * The waiters are kept outside the word, by its address, so that it may be
 * freed as soon as the last waiter was woken.
 */
struct pl_word {
	PL_ATOMIC_U32	value;
	uint32_t	reserved;
};

/**
 * pl_word_wait() - wait as long as @w->value is @expected
 *
 * The comparison and the beginning of the wait are one step to pl_word_wake():
 * a caller that changes the value and then wakes, wakes all waiters that saw
 * the old value.  As with futexes the caller checks its condition again: if the
 * memory was in use before, as this or another object, a wake of that object
 * may arrive late.
 *
 * Return: 0 when woken; -EAGAIN if the value differed; -ETIMEDOUT, -EINTR,
 * -ECANCELED; -ENOMEM if there is no memory for a deadline.
 */
PL_API int pl_word_wait(struct pl_word *w, uint32_t expected,
			uint64_t deadline_ns);

/**
 * pl_word_wake() - wake up to @nr waiters, the longest waiting first
 *
 * Does not touch *@w: only its address matters.
 *
 * Return: the number of waiters woken.
 */
PL_API int pl_word_wake(struct pl_word *w, uint32_t nr);

/**
 * pl_word_requeue() - wake @nr_wake waiters of @from, move @nr_move to @to
 *
 * Moved waiters keep their deadlines and wait as if they had called
 * pl_word_wait() on @to; no value is compared.
 *
 * Return: the number of waiters woken or moved; -EINVAL if @from is @to.
 */
PL_API int pl_word_requeue(struct pl_word *from, struct pl_word *to,
			   uint32_t nr_wake, uint32_t nr_move);

PL_END_DECLS

#ifdef __cplusplus
static_assert(sizeof(struct pl_word) == 8, "layout is shared with C");

static inline uint32_t pl_word_load(const struct pl_word *w)
{
	return __atomic_load_n(&w->value, __ATOMIC_SEQ_CST);
}

static inline void pl_word_store(struct pl_word *w, uint32_t value)
{
	__atomic_store_n(&w->value, value, __ATOMIC_SEQ_CST);
}

static inline uint32_t pl_word_add(struct pl_word *w, uint32_t n)
{
	return __atomic_fetch_add(&w->value, n, __ATOMIC_SEQ_CST);
}
#else
_Static_assert(sizeof(struct pl_word) == 8, "layout is shared with C++");
_Static_assert(sizeof(PL_ATOMIC_U32) == 4, "layout is shared with C++");
#endif

#endif /* PARKLOT_WORD_H */
