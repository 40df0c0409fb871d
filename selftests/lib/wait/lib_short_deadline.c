/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Deadlines that are past before the waiter could have switched away: a task
 * that waits like that in a loop still lets ready tasks run, among them the
 * one that would end its wait.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(short_deadline)

static struct pl_mutex mutex, outer;
static struct pl_cond cond;
static struct pl_sem sem;
static struct pl_rwlock lock;
static struct pl_word word;
static struct pl_latch latch;
static struct pl_chan *chan;
static atomic_int has_waiter, is_ended;
static pl_task_t joined;

/* One kind of wait: tried until @end has run. */
struct kind {
	const char	*name;
	void		(*begin)(void);
	int		(*wait)(uint64_t deadline_ns);
	void		(*end)(void);
};

static void take_mutex(void)
{
	pl_mutex_lock(&mutex);
}

static int wait_mutex(uint64_t deadline_ns)
{
	int ret = pl_mutex_lock_until(&mutex, deadline_ns);

	if (!ret)
		pl_mutex_unlock(&mutex);
	return ret;
}

static void give_mutex(void)
{
	pl_mutex_unlock(&mutex);
}

static int wait_sem(uint64_t deadline_ns)
{
	return pl_sem_wait_until(&sem, deadline_ns);
}

static void give_sem(void)
{
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
}

static int wait_cond(uint64_t deadline_ns)
{
	int ret;

	pl_mutex_lock(&outer);
	ret = pl_cond_wait_until(&cond, &outer, deadline_ns);
	pl_mutex_unlock(&outer);
	return is_ended ? 0 : ret;
}

static void give_cond(void)
{
	pl_cond_broadcast(&cond);
}

static int wait_word(uint64_t deadline_ns)
{
	int ret = pl_word_wait(&word, 0, deadline_ns);

	return ret == -EAGAIN ? 0 : ret;
}

static void give_word(void)
{
	atomic_store(&word.value, 1);
	pl_word_wake(&word, 1);
}

static void take_lock(void)
{
	pl_rwlock_wrlock(&lock);
}

static int wait_rdlock(uint64_t deadline_ns)
{
	int ret = pl_rwlock_rdlock_until(&lock, deadline_ns);

	if (!ret)
		pl_rwlock_rdunlock(&lock);
	return ret;
}

static int wait_wrlock(uint64_t deadline_ns)
{
	int ret = pl_rwlock_wrlock_until(&lock, deadline_ns);

	if (!ret)
		pl_rwlock_wrunlock(&lock);
	return ret;
}

static void give_lock(void)
{
	pl_rwlock_wrunlock(&lock);
}

static void take_latch(void)
{
	EXPECT_EQ(0, pl_latch_init(&latch, 1));
}

static int wait_latch(uint64_t deadline_ns)
{
	return pl_latch_wait_until(&latch, deadline_ns);
}

static void give_latch(void)
{
	EXPECT_EQ(0, pl_latch_done(&latch));
}

static void make_chan(void)
{
	ASSERT_EQ(0, pl_chan_create(&chan, 1));
}

static int wait_chan(uint64_t deadline_ns)
{
	void *msg;

	return pl_chan_recv_until(chan, &msg, deadline_ns);
}

static void give_chan(void)
{
	EXPECT_EQ(0, pl_chan_send(chan, &chan));
}

static void do_nothing(void)
{
}

/* The task that is joined is the one that ends the wait. */
static int wait_join(uint64_t deadline_ns)
{
	return pl_join_until(joined, deadline_ns);
}

static int wait_sleep(uint64_t deadline_ns)
{
	EXPECT_EQ(0, pl_sleep_until(deadline_ns));
	return is_ended ? 0 : -ETIMEDOUT;
}

static const struct kind kinds[] = {
	{ "mutex", take_mutex, wait_mutex, give_mutex },
	{ "sem", do_nothing, wait_sem, give_sem },
	{ "cond", do_nothing, wait_cond, give_cond },
	{ "word", do_nothing, wait_word, give_word },
	{ "rdlock", take_lock, wait_rdlock, give_lock },
	{ "wrlock", take_lock, wait_wrlock, give_lock },
	{ "latch", take_latch, wait_latch, give_latch },
	{ "chan", make_chan, wait_chan, give_chan },
	{ "join", do_nothing, wait_join, do_nothing },
	{ "sleep", do_nothing, wait_sleep, do_nothing },
};

static void end_wait(void *arg)
{
	const struct kind *k = arg;

	EXPECT_TRUE(UNTIL(has_waiter));
	k->end();
	is_ended = 1;
}

static void wait_in_a_loop(void *arg)
{
	const struct kind *k = arg;
	struct patience p = { 0, 0 };
	uint32_t i = 0;
	int ret;

	has_waiter = 1;
	do {
		ret = k->wait(pl_now());
		i++;
	} while (ret == -ETIMEDOUT && is_patient(&p));
	if (ret)
		TH_LOG("%s: %u waits expired", k->name, i);
	EXPECT_EQ(0, ret);
}

/* Keeps a worker to itself. */
static void compute(void *arg)
{
	while (!atomic_load((atomic_bool *)arg))
		pl__cpu_relax();
}

/* The waiter runs first; with one worker it has the only one. */
static void run_both(void *arg)
{
	pl_task_t waiter;

	has_waiter = is_ended = 0;
	((const struct kind *)arg)->begin();
	joined = spawn(end_wait, arg);
	waiter = spawn(wait_in_a_loop, arg);
	join(waiter);
	join(joined);
}

static void try_all(void)
{
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		run_as(PL_STACK_NORMAL, run_both, (void *)&kinds[i]);
	EXPECT_EQ(0, pl_chan_destroy(chan));
}

TEST_F(short_deadline, expired_waits_let_the_task_that_ends_them_run)
{
	start_with(1, 1);
	try_all();
}

/* The other worker computes, so that no thief comes for the second task. */
TEST_F(short_deadline, expired_waits_do_so_beside_a_busy_worker)
{
	atomic_bool may_end = false;
	pl_task_t busy;

	start_with(2, 2);
	busy = spawn(compute, &may_end);
	try_all();
	may_end = true;
	join(busy);
}

TEST_HARNESS_MAIN
