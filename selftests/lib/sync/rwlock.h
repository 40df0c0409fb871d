/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of pl_rwlock share; rt.h is included before this.
 */
#ifndef SELFTESTS_RWLOCK_H
#define SELFTESTS_RWLOCK_H

/* Bits of its word. */
#define RW_WRITER	(1U << 31)
#define RW_WAITED_FOR	(1U << 30)
#define RW_WRITER_WAITS	(1U << 29)
#define RW_WOKEN	(1U << 28)
#define RW_IMPATIENT	(1U << 27)

static struct pl_rwlock lock;

static inline int nr_in_ring(const struct pl__list *first)
{
	const struct pl__list *pos = first;
	int nr = 0;

	if (first)
		do {
			nr++;
			pos = pos->next;
		} while (pos != first);
	return nr;
}

/* How many are queued, left alone. */
static inline int nr_rw_queued(struct pl_rwlock *l)
{
	struct pl__lock *queues = container_of(&l->lock, struct pl__lock,
					       state);
	int nr;

	pl__lock(queues);
	nr = nr_in_ring(l->readers);
	nr += nr_in_ring(l->writers);
	pl__unlock(queues);
	return nr;
}

/* Free, without a queued waiter, and the word says so. */
static inline void check_free(void)
{
	EXPECT_EQ(0, lock.word.value);
	EXPECT_EQ(0, nr_rw_queued(&lock));
	EXPECT_EQ(0, pl_rwlock_trywrlock(&lock));
	pl_rwlock_wrunlock(&lock);
}

#endif /* SELFTESTS_RWLOCK_H */
