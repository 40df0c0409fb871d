/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * bucket: the waiters of some words, selected by address, under one lock
 */
#ifndef PL_BUCKET_H
#define PL_BUCKET_H

#include "base/list.h"
#include "base/lock.h"

#define PL__BUCKET_BITS	16

/* 32 bytes: two in a cache line; a process touches few of them. */
struct pl__bucket {
	struct pl__lock		lock;
	struct pl__list		waiters;	/* L: longest waiting first */
} __pl_aligned(32);

extern struct pl__bucket pl__buckets[1U << PL__BUCKET_BITS];

static inline struct pl__bucket *pl__bucket_of(_Atomic uint32_t *word)
{
	uint64_t key = PL_NUMBER_OF(word) >> 2;

	return &pl__buckets[key * 0x9e3779b97f4a7c15ULL >>
			    (64 - PL__BUCKET_BITS)];
}

static inline struct pl__bucket *pl__bucket_lock(_Atomic uint32_t *word)
{
	struct pl__bucket *b = pl__bucket_of(word);

	pl__lock(&b->lock);
	if (unlikely(!b->waiters.next))
		list_init(&b->waiters);
	return b;
}

#endif /* PL_BUCKET_H */
