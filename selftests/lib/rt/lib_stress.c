/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything at once, at random, for a while; then the books must balance.
 *
 *	lib_stress [--seconds N] [--seed S] [--workers W]
 *
 * or LIB_STRESS_SECONDS, LIB_STRESS_SEED and LIB_STRESS_WORKERS in the
 * environment. With none of these it is a test like any other, short, on 1, 2
 * and 4 workers. What happens next is a function of the seed, as far as the
 * machine's own scheduling lets it; the line printed at the start repeats it.
 */
#include "kselftest_harness.h"

#include "manual_run.h"
#include "rt.h"

#include <sys/socket.h>

#define NR_WORDS	8
#define NR_MUTEXES	4
#define NR_PAIRS	8
#define MAX_ALIVE	2000

static struct pl_word word[NR_WORDS];
static struct pl_mutex mutex[NR_MUTEXES];
static struct pl_cond cond[NR_MUTEXES];
static long inside[NR_MUTEXES], entered[NR_MUTEXES];	/* under mutex */
static atomic_long nr_entered;
static int pair[NR_PAIRS][2];

static atomic_int is_over, has_io, may_change;
static uint32_t most_workers = 8;
static atomic_long nr_begun, nr_ended, nr_alive, nr_fired, nr_deleted, nr_added;
static atomic_long nr_written, nr_read;

/* The latest handles, of which many are stale. */
static _Atomic pl_task_t recent[64];

/*
 * A task that runs on a worker's stack and waits keeps that worker.  If such
 * tasks waited without a deadline for what a ready task has, they could take
 * every worker there can be, and the ready task would never run.
 */
struct player {
	uint64_t	seed;
	bool		has_worker;	/* on its stack: no other runs there */
};

static uint32_t pick(struct player *p, uint32_t nr)
{
	return (uint32_t)(next_random(&p->seed) >> 20) % nr;
}

static bool is_expected(int ret)
{
	return !ret || ret == -ETIMEDOUT || ret == -EINTR ||
	       ret == -ECANCELED || ret == -EAGAIN;
}

#define EXPECT_SANE(call) do { \
	int __ret = (int)(call); \
	if (!is_expected(__ret)) \
		EXPECT_EQ(0, __ret); \
} while (0)

/* One of three is shorter than a switch, or over before the wait begins. */
static uint64_t soon(struct player *p)
{
	return pl_now() + pick(p, pick(p, 3) ? 200000 : 5000);
}

/* As long as that a waiter that others overtook is handed the mutex. */
static void hold_long(struct player *p)
{
	if (!p->has_worker && !pick(p, 100))
		EXPECT_SANE(pl_sleep(1200 * NSEC_PER_USEC));
}

/* ---- what a player may do ---- */

static void do_sleep(struct player *p)
{
	uint64_t deadline = soon(p);
	int ret = pl_sleep_until(deadline);

	EXPECT_SANE(ret);
	if (!ret)
		EXPECT_LE(deadline, pl_now());
}

static void do_word(struct player *p)
{
	struct pl_word *w = &word[pick(p, NR_WORDS)];
	struct pl_word *to = &word[pick(p, NR_WORDS)];

	switch (pick(p, 4)) {
	case 0:
		EXPECT_SANE(pl_word_wait(w, atomic_load(&w->value), soon(p)));
		break;
	case 1:
		EXPECT_LE(0, pl_word_wake(w, pick(p, 4)));
		break;
	case 2:
		atomic_fetch_add(&w->value, 1);
		EXPECT_LE(0, pl_word_wake(w, UINT32_MAX));
		break;
	case 3:
		EXPECT_EQ(w == to, pl_word_requeue(w, to, pick(p, 2),
						   pick(p, 4)) == -EINVAL);
		break;
	}
}

static void do_mutex(struct player *p)
{
	int i = (int)pick(p, NR_MUTEXES), ret;

	ret = pick(p, 2) && !p->has_worker ?
	      (pl_mutex_lock(&mutex[i]), 0) :
	      pl_mutex_lock_until(&mutex[i], soon(p));
	EXPECT_SANE(ret);
	if (ret)
		return;
	EXPECT_EQ(0, inside[i]++);
	entered[i]++;
	atomic_fetch_add(&nr_entered, 1);
	if (!pick(p, 8))
		pl_yield();
	hold_long(p);
	EXPECT_EQ(1, inside[i]--);
	if (!pick(p, 4) && !p->has_worker)
		EXPECT_SANE(pl_cond_wait_until(&cond[i], &mutex[i], soon(p)));
	pl_mutex_unlock(&mutex[i]);
	if (pick(p, 2))
		pl_cond_signal(&cond[i]);
	else
		pl_cond_broadcast(&cond[i]);
}

static void fire(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_fired, 1);
	pl_word_wake(&word[0], 1);
}

static void do_timer(struct player *p)
{
	pl_timer_t t;
	int ret;

	ret = pl_timer_add(&t, pick(p, 4) ? soon(p) : pl_now() + STUCK_NS * 60,
			   fire, NULL);
	EXPECT_SANE(ret);
	if (ret)
		return;
	atomic_fetch_add(&nr_added, 1);
	if (pick(p, 2))
		pl_yield();
	ret = pl_timer_del(t);
	if (!ret)
		atomic_fetch_add(&nr_deleted, 1);
	else
		EXPECT_TRUE(ret == -EBUSY || ret == -ENOENT);
}

static void do_io(struct player *p)
{
	char buf[64] = { 0 };
	int *fd = pair[pick(p, NR_PAIRS)];
	ssize_t n;

	if (!has_io)
		return;
	if (pick(p, 2)) {
		n = pl_write_until(fd[1], buf, 1 + pick(p, 64), soon(p));
		atomic_fetch_add(&nr_written, n > 0 ? n : 0);
	} else {
		n = pl_read_until(fd[0], buf, 1 + pick(p, 64), soon(p));
		atomic_fetch_add(&nr_read, n > 0 ? n : 0);
	}
	EXPECT_SANE(n > 0 ? 0 : n);
}

static void do_handle(struct player *p)
{
	pl_task_t t = recent[pick(p, ARRAY_SIZE(recent))];
	int ret;

	if (!t)
		return;
	switch (pick(p, 8)) {
	case 0:
		ret = pl_cancel(t);
		EXPECT_TRUE(!ret || ret == -ESRCH);
		break;
	case 1:
	case 2:
		ret = pl_interrupt(t);
		EXPECT_TRUE(!ret || ret == -ESRCH);
		break;
	default:
		ret = pl_join_until(t, soon(p));
		EXPECT_TRUE(is_expected(ret) || ret == -EDEADLK);
		break;
	}
}

static void live(void *arg);

/* In the seed that a task is given. */
#define SEED_OK		1ULL	/* it is not 0 */
#define SEED_WORKER	2ULL	/* on its worker's stack, or may be */

static void do_spawn(struct player *p)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	uint64_t seed = next_random(&p->seed) | SEED_OK;
	pl_task_t t;
	int ret;

	if (nr_alive >= MAX_ALIVE || is_over)
		return;
	opts.stack = pick(p, 16) ? pick(p, 3) : PL_STACK_WORKER;
	if (opts.stack == PL_STACK_WORKER)
		seed |= SEED_WORKER;
	opts.flags = pick(p, 4);
	opts.name = "stress";
	atomic_fetch_add(&nr_alive, 1);
	atomic_fetch_add(&nr_begun, 1);
	ret = pl_spawn(&t, live, (void *)(uintptr_t)seed, &opts);
	EXPECT_SANE(ret);
	if (ret) {
		atomic_fetch_sub(&nr_alive, 1);
		atomic_fetch_sub(&nr_begun, 1);
		return;
	}
	recent[pick(p, ARRAY_SIZE(recent))] = t;
	if (pick(p, 2))
		pl_flush();
}

#include "stress_sync.h"

static void do_workers(struct player *p)
{
	if (may_change && !pick(p, 64))
		EXPECT_EQ(0, pl_runtime_set_workers(1 + pick(p, most_workers)));
}

static void (*const acts[])(struct player *p) = {
	do_sleep, do_word, do_word, do_mutex, do_mutex, do_timer, do_io,
	do_handle, do_spawn, do_spawn, do_rwlock, do_sem, do_latch, do_once,
	do_chan, do_key, do_queue, do_workers,
};

static void act(struct player *p)
{
	uint32_t i = pick(p, ARRAY_SIZE(acts) + 1);

	if (i == ARRAY_SIZE(acts))
		pl_yield();
	else
		acts[i](p);
}

static void live(void *arg)
{
	struct player p = { (uintptr_t)arg, (uintptr_t)arg & SEED_WORKER };
	int i, nr = (int)pick(&p, 20);

	for (i = 0; i < nr; i++)
		act(&p);
	atomic_fetch_add(&nr_ended, 1);
	atomic_fetch_sub(&nr_alive, 1);
	if (pick(&p, 2))
		pl_exit();
}

static void *thread_main(void *arg)
{
	struct player p = { (uintptr_t)arg, false };

	while (!is_over)
		act(&p);
	pl_flush();
	return NULL;
}

/* ---- the books ---- */

static void probe_io(void *arg)
{
	char c;

	(void)arg;
	has_io = pl_read(-1, &c, 1) == -EBADF;
}

static void say_where(void)
{
	struct pl_stat st = rt_stat();
	int i;

	TH_LOG("%u tasks, %u timers, %u in flight; %u workers, %u running, %u parked, %u blocked",
	       st.tasks_alive, st.timers_alive, st.io_in_flight, st.workers,
	       st.workers_running, st.workers_parked, st.workers_blocked);
	for (i = 0; i < NR_WORDS; i++)
		TH_LOG("%d wait on word %d", nr_waiters(&word[i]), i);
	for (i = 0; i < NR_MUTEXES; i++)
		TH_LOG("mutex %d: value %u, %d waiters; cond: %d waiters", i,
		       mutex[i].word.value, nr_waiters(&mutex[i].word),
		       nr_waiters(&cond[i].seq));
}

static void check_books(void)
{
	struct pl_stat st;
	long sum = 0;
	int i;

	/* Each wait has a deadline: all tasks end. */
	ASSERT_TRUE(UNTIL(nr_alive == 0)) {
		say_where();
	}
	EXPECT_TRUE(UNTIL(rt_stat().tasks_alive == 0));
	check_sync();
	EXPECT_TRUE(UNTIL(rt_stat().tasks_alive == 0));
	EXPECT_EQ(nr_begun, nr_ended);
	st = rt_stat();
	EXPECT_EQ(st.tasks_spawned, st.tasks_ended);
	EXPECT_EQ(st.io_submitted, st.io_completed);
	EXPECT_EQ(0, st.io_in_flight);
	for (i = 0; i < NR_MUTEXES; i++) {
		EXPECT_EQ(0, pl_mutex_trylock(&mutex[i]));
		EXPECT_EQ(0, inside[i]);
		sum += entered[i];
	}
	EXPECT_EQ(nr_entered, sum);
	EXPECT_LE(nr_read, nr_written);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_GE(nr_added, nr_fired + nr_deleted);
	TH_LOG("%ld tasks, %ld locks, %ld timers, %ld bytes", (long)nr_ended,
	       (long)nr_entered, (long)nr_added, (long)nr_read);
}

static atomic_uint nr_held;

static void hold_worker(void *arg)
{
	(void)arg;
	atomic_fetch_add(&nr_held, 1);
	while (!atomic_load(&is_over))
		usleep(1000);
}

/* Many are not started by chance: one task for each, which holds it. */
static void start_all(uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, pl_spawn(NULL, hold_worker, NULL, NULL));
	EXPECT_TRUE(UNTIL(nr_held == nr));
	EXPECT_LE(nr, rt_stat().workers);
	atomic_store(&is_over, 1);
	EXPECT_TRUE(UNTIL(rt_stat().tasks_alive == 0));
	atomic_store(&is_over, 0);
}

static void stress(uint32_t nr_workers, uint64_t ns, uint64_t seed)
{
	struct player p = { seed * 0x9e3779b97f4a7c15ULL | 1, false };
	pthread_t thread[3];
	uint64_t end;
	int i;

	TH_LOG("--seconds %g --seed %llu --workers %u", (double)ns / 1e9,
	       (unsigned long long)seed, nr_workers);
	for (i = 0; i < NR_PAIRS; i++)
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]));
	if (nr_workers)
		start_with(nr_workers, 0);
	may_change = nr_workers > 1;
	if (nr_workers > most_workers) {
		most_workers = nr_workers;
		start_all(nr_workers);
	}
	run_in_task(probe_io, NULL);
	open_sync();
	end = pl_now() + ns;
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, thread_main,
			(void *)(uintptr_t)(next_random(&p.seed) | 1)));
	while (pl_now() < end)
		act(&p);
	is_over = 1;
	pl_flush();
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	check_books();
}

/* ---- as a test, and by hand ---- */

static uint64_t test_ns = 500 * NSEC_PER_MSEC;
static uint64_t test_seed;
static uint64_t test_workers;	/* 0: as many as the environment says */

static uint64_t seed_of_now(void)
{
	return test_seed ? test_seed : pl_now() / 1000;
}

RT_FIXTURE(stress)

TEST_F(stress, books_balance_on_one_worker)
{
	stress(1, test_ns, seed_of_now());
}

TEST_F(stress, books_balance_on_two_workers)
{
	stress(2, test_ns, seed_of_now());
}

TEST_F(stress, books_balance_on_four_workers)
{
	stress(4, test_ns, seed_of_now());
}

TEST_F_TIMEOUT(stress, random_load_keeps_the_books_balanced, 24 * 3600)
{
	stress((uint32_t)test_workers, test_ns, seed_of_now());
}

int main(int argc, char **argv)
{
	static const struct setting settings[] = {
		{ "--seconds", "LIB_STRESS_SECONDS", &test_ns, NSEC_PER_SEC },
		{ "--seed", "LIB_STRESS_SEED", &test_seed, 1 },
		{ "--workers", "LIB_STRESS_WORKERS", &test_workers, 1 },
	};

	return manual_run_main(argc, argv,
			       "random_load_keeps_the_books_balanced",
			       settings, ARRAY_SIZE(settings));
}
