/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tasks and threads wait at may be freed by the first that can know that
 * all others are done with it, though they may not have returned yet; and
 * threads may use all of it before the runtime starts.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <sys/mman.h>

/* ---- memory that is noticed to be touched once it is free ---- */

#define FREED_PAGE	65536	/* the largest there is */

static void *page_at(void *addr, int prot, int flags)
{
	void *p = mmap(addr, FREED_PAGE, prot,
		       flags | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	return p;
}

static void *new_zeroed(size_t size)
{
	if (RT_ASAN || RT_TSAN)
		return calloc(1, size);
	return page_at(NULL, PROT_READ | PROT_WRITE, 0);
}

/* Sanitizers see it; where there is none, its page is never used again. */
static void free_for_good(void *p)
{
	if (RT_ASAN || RT_TSAN)
		free(p);
	else
		page_at(p, PROT_NONE, MAP_FIXED);
}

/* ---- what is freed, and how its users know ---- */

struct box {
	union {
		struct pl_mutex		mutex;
		struct pl_rwlock	rwlock;
		struct pl_barrier	barrier;
		struct pl_once		once;
		struct pl_latch		latch;
		struct pl_sem		sem;
		struct pl_word		word;
	};
	int		nr_owners;	/* under its lock */
	atomic_int	nr_inside;
};

#define NR_OWNERS	5

struct kind {
	int	nr_users;
	void	(*prepare)(struct box *b);
	bool	(*use)(struct box *b, int nth);	/* returns true: free it */
};

static void prepare_nothing(struct box *b)
{
	(void)b;
}

static bool leave_last(struct box *b)
{
	return atomic_fetch_sub(&b->nr_inside, 1) == 1;
}

static bool drop_under_mutex(struct box *b, int nth)
{
	bool is_last;

	(void)nth;
	pl_mutex_lock(&b->mutex);
	is_last = !--b->nr_owners;
	pl_mutex_unlock(&b->mutex);
	return is_last;
}

static bool drop_under_rwlock(struct box *b, int nth)
{
	bool is_last;

	(void)nth;
	pl_rwlock_rdlock(&b->rwlock);
	EXPECT_LE(1, b->nr_owners);
	pl_rwlock_rdunlock(&b->rwlock);
	/* Comes again if it had to give up. */
	while (pl_rwlock_wrlock_until(&b->rwlock, pl_now() + 20000))
		pl_yield();
	is_last = !--b->nr_owners;
	pl_rwlock_wrunlock(&b->rwlock);
	return is_last;
}

static void lock_to_write(struct box *b)
{
	pl_rwlock_wrlock(&b->rwlock);
}

static void lock_to_read(struct box *b)
{
	pl_rwlock_rdlock(&b->rwlock);
}

static bool write_after_another(struct box *b, int nth)
{
	if (!nth)
		pl_rwlock_wrlock(&b->rwlock);
	pl_rwlock_wrunlock(&b->rwlock);
	return !nth;
}

static bool write_after_reader(struct box *b, int nth)
{
	if (!nth)
		return write_after_another(b, nth);
	pl_rwlock_rdunlock(&b->rwlock);
	return false;
}

static bool read_after_writer(struct box *b, int nth)
{
	if (nth)
		return write_after_another(b, nth);
	pl_rwlock_rdlock(&b->rwlock);
	pl_rwlock_rdunlock(&b->rwlock);
	return true;
}

static void expect_all(struct box *b)
{
	EXPECT_EQ(0, pl_barrier_init(&b->barrier, NR_OWNERS));
}

static bool meet(struct box *b, int nth)
{
	(void)nth;
	EXPECT_LE(0, pl_barrier_wait(&b->barrier));
	return leave_last(b);
}

static void make(void *arg)
{
	pl_yield();
	EXPECT_EQ(0, pl_sleep(NSEC_PER_USEC));
	atomic_fetch_add((atomic_int *)arg, 1);
}

static bool make_once(struct box *b, int nth)
{
	static atomic_int nr_made;

	(void)nth;
	EXPECT_EQ(0, pl_once(&b->once, make, &nr_made));
	return leave_last(b);
}

static void count_up(struct box *b)
{
	EXPECT_EQ(0, pl_latch_init(&b->latch, NR_OWNERS - 1));
}

static bool wait_at_latch(struct box *b, int nth)
{
	if (nth)
		EXPECT_EQ(0, pl_latch_done(&b->latch));
	else
		EXPECT_EQ(0, pl_latch_wait(&b->latch));
	return !nth;
}

static bool take_unit(struct box *b, int nth)
{
	if (nth)
		EXPECT_EQ(0, pl_sem_post(&b->sem, 1));
	else
		EXPECT_EQ(0, pl_sem_wait(&b->sem));
	return !nth;
}

static bool wait_for_word(struct box *b, int nth)
{
	if (nth) {
		atomic_store(&b->word.value, 1);
		pl_word_wake(&b->word, 1);
		return false;
	}
	while (!atomic_load(&b->word.value))
		pl_word_wait(&b->word, 0, PL_FOREVER);
	return true;
}

static const struct kind of_mutex = {
	NR_OWNERS, prepare_nothing, drop_under_mutex,
}, of_rwlock = {
	NR_OWNERS, prepare_nothing, drop_under_rwlock,
}, of_writer_after_writer = {
	2, lock_to_write, write_after_another,
}, of_writer_after_reader = {
	2, lock_to_read, write_after_reader,
}, of_reader_after_writer = {
	2, lock_to_write, read_after_writer,
}, of_barrier = {
	NR_OWNERS, expect_all, meet,
}, of_once = {
	NR_OWNERS, prepare_nothing, make_once,
}, of_latch = {
	NR_OWNERS, count_up, wait_at_latch,
}, of_sem = {
	2, prepare_nothing, take_unit,
}, of_word = {
	2, prepare_nothing, wait_for_word,
};

FIXTURE(freed) { char unused; };
FIXTURE_VARIANT(freed) { const struct kind *kind; };
FIXTURE_VARIANT_ADD(freed, mutex) { &of_mutex };
FIXTURE_VARIANT_ADD(freed, rwlock) { &of_rwlock };
FIXTURE_VARIANT_ADD(freed, writer_after_writer) { &of_writer_after_writer };
FIXTURE_VARIANT_ADD(freed, writer_after_reader) { &of_writer_after_reader };
FIXTURE_VARIANT_ADD(freed, reader_after_writer) { &of_reader_after_writer };
FIXTURE_VARIANT_ADD(freed, barrier) { &of_barrier };
FIXTURE_VARIANT_ADD(freed, once) { &of_once };
FIXTURE_VARIANT_ADD(freed, latch) { &of_latch };
FIXTURE_VARIANT_ADD(freed, sem) { &of_sem };
FIXTURE_VARIANT_ADD(freed, word) { &of_word };

FIXTURE_SETUP(freed) { rt_begin(_metadata); }
FIXTURE_TEARDOWN(freed) { rt_end(); }

/* ---- all of them ---- */

static atomic_int nr_freed;

struct user {
	const struct kind	*kind;
	struct box		*box;
	int			nth;
};

static void use_and_free(void *arg)
{
	struct user *user = arg, u = *user;

	free(user);
	if (u.kind->use(u.box, u.nth)) {
		free_for_good(u.box);
		atomic_fetch_add(&nr_freed, 1);
	}
}

static struct user *new_user(const struct kind *kind, struct box *b, int nth)
{
	struct user *u = malloc(sizeof(*u));

	ASSERT_NE(NULL, u);
	*u = (struct user){ kind, b, nth };
	return u;
}

static struct box *new_box(const struct kind *kind)
{
	struct box *b = new_zeroed(sizeof(*b));

	ASSERT_NE(NULL, b);
	b->nr_owners = NR_OWNERS;
	b->nr_inside = NR_OWNERS;
	kind->prepare(b);
	return b;
}

/* One user is this thread, each in its turn; a task is on a worker's stack. */
TEST_F(freed, last_user_may_free_it)
{
	const struct kind *k = variant->kind;
	int i, n, nr = scaled(1000);
	struct box *b;

	for (i = 0; i < nr; i++) {
		b = new_box(k);
		for (n = 1; n < k->nr_users; n++)
			spawn_as(n == 1 && i % 7 == 0 ? PL_STACK_WORKER :
				 PL_STACK_NORMAL, use_and_free,
				 new_user(k, b, (i + n) % k->nr_users));
		if (i % 3)
			spin_ns(i % 3 * 5000);
		use_and_free(new_user(k, b, i % k->nr_users));
	}
	EXPECT_TRUE(UNTIL(nr_freed == nr));
}

TEST_F(freed, threads_use_it_before_the_runtime_starts)
{
	static struct mixed m[NR_OWNERS];
	const struct kind *k = variant->kind;
	int i, n, nr = scaled(200);
	struct box *b;

	for (i = 0; i < nr; i++) {
		b = new_box(k);
		for (n = 0; n < k->nr_users; n++)
			mixed_start(&m[n], 0, 1, use_and_free,
				    new_user(k, b, n));
		for (n = 0; n < k->nr_users; n++)
			mixed_join(&m[n]);
		EXPECT_EQ(i + 1, nr_freed);
	}
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

TEST_HARNESS_MAIN
