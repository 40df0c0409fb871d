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
#define SIM_SHORT_READS
#include "kselftest_harness.h"

#include "manual_run.h"
#include "rt.h"

#include "stress_player.h"
#include "stress_books.h"

static atomic_uint nr_held;

static void hold_worker(void *arg)
{
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

/*
 * Not a player, since each may wait for tasks that wait for others in turn, and
 * those spawn more as long as it is not over.
 */
static void *end_in_time(void *arg)
{
	uint64_t end = *(uint64_t *)arg;

	while (pl_now() < end)
		usleep(1000);
	is_over = 1;
	return NULL;
}

static void stress(uint32_t nr_workers, uint64_t ns, uint64_t seed)
{
	struct player p = { seed * 0x9e3779b97f4a7c15ULL | 1, false };
	pthread_t thread[3], ender;
	uint64_t end;
	int i;

	TH_LOG("--seconds %g --seed %llu --workers %u", (double)ns / 1e9,
	       (unsigned long long)seed, nr_workers);
	for (i = 0; i < NR_PAIRS; i++)
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]));
	if (nr_workers)
		start_with(nr_workers, trial.is_short ? nr_workers : 0);
	may_change = nr_workers > 1;
	if (nr_workers > most_workers) {
		most_workers = nr_workers;
		start_all(nr_workers);
	}
	run_in_task(probe_io, NULL);
	open_sync();
	open_block();
	end = pl_now() + ns;
	ASSERT_EQ(0, pthread_create(&ender, NULL, end_in_time, &end));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, thread_main,
			(void *)(uintptr_t)(next_random(&p.seed) | 1)));
	while (!is_over)
		act(&p);
	pl_flush();
	pthread_join(ender, NULL);
	ASSERT_TRUE(UNTIL_NO_MORE(nr_threads_ended == 3,
				  (uint64_t)nr_ended)) {
		say_where();
	}
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	check_books();
}

/* ---- as a test, and by hand ---- */

static uint64_t test_ns = LOAD_NS(500 * NSEC_PER_MSEC);
static uint64_t test_seed;
static uint64_t test_workers;	/* 0: as many as the environment says */

static uint64_t seed_of_now(void)
{
	return test_seed ? test_seed : new_seed();
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

/* What the others wait for runs in between, on no other worker. */
TEST_F(stress, deadlines_shorter_than_a_switch_let_all_tasks_end)
{
	trial.is_short = true;
	stress(1, test_ns, seed_of_now());
}

/* A waiter that never sleeps keeps the only worker unless it yields. */
TEST_F(stress, deadlines_in_the_past_let_the_owner_run)
{
	trial.is_short = true;
	trial.is_past = true;
	stress(1, test_ns, seed_of_now());
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
