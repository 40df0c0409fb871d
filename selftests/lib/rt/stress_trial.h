/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A trial: players go on while something goes wrong; then they all end, the
 * books balance, and all works.  The calling thread plays no part, so that it
 * can say what hangs.  stress_player.h and stress_books.h are included before.
 */
#ifndef SELFTESTS_STRESS_TRIAL_H
#define SELFTESTS_STRESS_TRIAL_H

#include <unistd.h>

#define NR_THREADS	3

static pthread_t player_thread[NR_THREADS];
static uint32_t trial_workers;

/* Nothing may wait for good; if it does, it is named. */
#define MUST_END(condition) do { \
	ASSERT_TRUE(UNTIL_NO_MORE(condition, (uint64_t)nr_ended)) { \
		say_where(); \
	} \
} while (0)

/* A stack of the first thread cannot grow without memory: it does so now. */
static void __attribute__((noinline)) touch_stack(void)
{
	volatile char bytes[256 << 10];
	size_t i;

	for (i = 0; i < sizeof(bytes); i += 1024)
		bytes[i] = 0;
}

static void begin_trial(uint32_t nr_workers, uint64_t seed)
{
	uint64_t from = seed * 0x9e3779b97f4a7c15ULL | 1;
	int i;

	TH_LOG("--seed %llu --workers %u", (unsigned long long)seed,
	       nr_workers);
	touch_stack();
	for (i = 0; i < NR_PAIRS; i++)
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]));
	trial_workers = most_workers = nr_workers;
	if (seed % 2)
		start_fixed(nr_workers, nr_workers + 4);
	else
		start_with(nr_workers, nr_workers + 4);
	may_change = nr_workers > 1;
	run_in_task(probe_io, NULL);
	open_sync();
	open_block();
	for (i = 0; i < NR_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&player_thread[i], NULL,
			thread_main,
			(void *)(uintptr_t)(next_random(&from) | 1)));
	MUST_END(nr_ended >= 100);
}

static void end_players(void)
{
	int i;

	is_over = 1;
	pl_flush();
	MUST_END(nr_threads_ended == NR_THREADS);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(player_thread[i], NULL);
}

/* ---- all works: tasks spawned in need run at one time, with their I/O ---- */

#define MAX_MET		200

static atomic_int nr_met, nr_to_meet;
static struct pl_word may_meet;

/* Ends before those that meet, and passes its stack on. */
static void pass(void *arg)
{
	spin_ns(300 * NSEC_PER_USEC);
}

/* The stop may end it. */
static void meet(void *arg)
{
	int *fd = pair[(uintptr_t)arg % NR_PAIRS];
	ssize_t n;
	char c = 'x';

	atomic_fetch_add(&nr_met, 1);
	while (!pl_word_wait(&may_meet, 0, PL_FOREVER))
		;
	n = pl_write(fd[1], &c, 1);
	EXPECT_TRUE(n == 1 || n == -ECANCELED);
	n = n == 1 ? pl_read(fd[0], &c, 1) : n;
	EXPECT_TRUE(n == 1 || n == -ECANCELED);
}

static void empty_pairs(void)
{
	char bytes[4096];
	int i;

	for (i = 0; i < NR_PAIRS; i++)
		while (recv(pair[i][0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
}

/* As many as are not refused, within @ns. */
static void spawn_meeting(struct player *p, uint64_t ns)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	uint64_t end = pl_now() + ns;
	bool is_short;

	empty_pairs();
	atomic_store(&nr_met, 0);
	atomic_store(&nr_to_meet, 0);
	atomic_store(&may_meet.value, 0);
	opts.stack = pick(p, 3);
	while (pl_now() < end && nr_to_meet < MAX_MET) {
		is_short = pick(p, 2);
		if (!pl_spawn(NULL, is_short ? pass : meet,
			      (void *)(uintptr_t)nr_to_meet, &opts))
			nr_to_meet += !is_short;
	}
	pl_flush();
	while (pl_now() < end)
		breathe();
}

/* All have started by now, and none has ended. */
static void expect_meeting(void)
{
	MUST_END(nr_met == nr_to_meet);
	/* A player that is late would read what they write. */
	MUST_END(nr_alive == 0);
	atomic_store(&may_meet.value, 1);
	pl_word_wake(&may_meet, UINT32_MAX);
	MUST_END(rt_stat().tasks_alive == 0);
}

static atomic_uint nr_computing;

static void compute(void *arg)
{
	atomic_fetch_add(&nr_computing, 1);
	EXPECT_TRUE(UNTIL_BUSY(nr_computing == trial_workers));
}

/* All workers run at one time. */
static void expect_all_workers(void)
{
	uint32_t i;

	/* A player that is late would set another number. */
	MUST_END(nr_alive == 0);
	atomic_store(&nr_computing, 0);
	EXPECT_EQ(0, pl_runtime_set_workers(trial_workers));
	for (i = 0; i < trial_workers; i++)
		spawn(compute, NULL);
	MUST_END(nr_computing == trial_workers);
	MUST_END(rt_stat().tasks_alive == 0);
}

#endif /* SELFTESTS_STRESS_TRIAL_H */
