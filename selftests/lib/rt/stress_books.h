/* SPDX-License-Identifier: GPL-2.0-only */
/* What must balance when the players have ended; after stress_player.h. */
#ifndef SELFTESTS_STRESS_BOOKS_H
#define SELFTESTS_STRESS_BOOKS_H

static void probe_io(void *arg)
{
	char c;

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
	TH_LOG("%d of 3 threads have ended, %ld tasks have not",
	       nr_threads_ended, (long)nr_alive);
	pl_dump(STDERR_FILENO);
}

/* If it hangs, it names what has not ended. */
static void stop_by_deadline(void)
{
	EXPECT_EQ(0, pl_runtime_stop_until(pl_now() + stuck_ns(), NULL));
}

static void check_books(void)
{
	struct pl_stat st;
	long sum = 0;
	int i;

	/* Each wait has a deadline: all tasks end. */
	ASSERT_TRUE(UNTIL_NO_MORE(nr_alive == 0, (uint64_t)nr_ended)) {
		say_where();
	}
	EXPECT_TRUE(UNTIL(rt_stat().tasks_alive == 0));
	check_sync();
	check_block();
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
	stop_by_deadline();
	EXPECT_GE(nr_added, nr_fired + nr_deleted);
	TH_LOG("%ld tasks, %ld locks, %ld timers, %ld bytes", (long)nr_ended,
	       (long)nr_entered, (long)nr_added, (long)nr_read);
}

#endif /* SELFTESTS_STRESS_BOOKS_H */
