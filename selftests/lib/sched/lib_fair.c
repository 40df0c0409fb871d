/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long what is ready waits while others keep the workers busy: not in
 * time but in tasks taken meanwhile, as parklot-scheduling(7) promises; and in
 * which order events run.
 *
 * A storm is tasks that spawn others, or yield, without end, and count.  It
 * gives up long after what is measured should have run.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(fair)

/*
 * Of parklot-scheduling(7): one of so many is the oldest spawned; an event,
 * once it was looked for; comes from another's queue.
 */
#define EVERY		64
#define EVENT_EVERY	8
#define OTHERS_EVERY	1024

#define NR_MARKS	50
#define NR_YIELDERS	20

static atomic_long nr_taken;
static atomic_int is_over, nr_storms, nr_left;
static uint64_t end_ns;			/* of storms, at the latest */

/* No more workers than that: one that takes part would count as well. */
static void begin(uint32_t nr_workers, int nr_marks)
{
	end_ns = pl_now() + stuck_ns() / 2;
	atomic_store(&nr_left, nr_marks);
	start_with(nr_workers, nr_workers);
}

/* ---- what is measured ---- */

struct mark {
	atomic_long	ready, ran;	/* at so many tasks taken */
	atomic_int	nr_runs;
	struct pl_word	word;
};

static struct mark marks[NR_MARKS];

/* Ready now, at the latest: the waker may itself come late. */
static void mark_ready(struct mark *m)
{
	atomic_store(&m->ready, atomic_load(&nr_taken));
}

static void mark_ran(struct mark *m)
{
	atomic_store(&m->ran, atomic_load(&nr_taken));
	atomic_fetch_add(&m->nr_runs, 1);
	if (atomic_fetch_sub(&nr_left, 1) == 1)
		atomic_store(&is_over, 1);
}

static void run_mark(void *arg)
{
	mark_ran(arg);
}

static long waited(struct mark *m)
{
	return atomic_load(&m->ran) - atomic_load(&m->ready);
}

/* ---- storms ---- */

/* Whether one more is to come after the one that asks. */
static bool goes_on(void)
{
	long nr = atomic_fetch_add(&nr_taken, 1);

	return !atomic_load(&is_over) && (nr % 256 || pl_now() < end_ns);
}

static void spawn_next(void *arg)
{
	if (goes_on())
		spawn(spawn_next, arg);
	else
		atomic_fetch_sub(&nr_storms, 1);
}

static void yield_on(void *arg)
{
	(void)arg;
	while (goes_on())
		pl_yield();
	atomic_fetch_sub(&nr_storms, 1);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void spawn_urgent(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	(void)arg;
	opts.flags = PL_SPAWN_URGENT;
	while (goes_on())
		EXPECT_EQ(0, pl_spawn(NULL, nothing, NULL, &opts));
	atomic_fetch_sub(&nr_storms, 1);
}

static void begin_storm(void (*fn)(void *arg), int nr)
{
	atomic_fetch_add(&nr_storms, nr);
	while (nr--)
		spawn(fn, NULL);
}

/* ---- in the queue ---- */

struct storm {
	void	(*fn)(void *arg);
	int	nr;
};

/* The marks lie below all that comes, the first of them lowest. */
static void queue_marks(void *arg)
{
	struct storm *s = arg;
	int i;

	for (i = 0; i < NR_MARKS; i++) {
		spawn(run_mark, &marks[i]);
		mark_ready(&marks[i]);
	}
	begin_storm(s->fn, s->nr);
}

static void storm_on_marks(void (*fn)(void *arg), int nr)
{
	struct storm s = { fn, nr };

	begin(1, NR_MARKS);
	run_in_task(queue_marks, &s);
	ASSERT_TRUE(UNTIL(!nr_storms && !nr_left));
}

static void expect_in_turn(void)
{
	int i;

	for (i = 0; i < NR_MARKS; i++)
		EXPECT_GE(EVERY * (i + 1), waited(&marks[i]));
}

TEST_F(fair, spawn_storm_runs_the_oldest_task_at_intervals)
{
	storm_on_marks(spawn_next, 1);
	expect_in_turn();
}

TEST_F(fair, many_spawn_storms_run_the_oldest_task_at_intervals)
{
	storm_on_marks(spawn_next, NR_YIELDERS);
	expect_in_turn();
}

TEST_F(fair, urgent_storm_runs_the_oldest_task_at_intervals)
{
	storm_on_marks(spawn_urgent, 1);
	expect_in_turn();
}

TEST_F(fair, yield_storm_runs_all_earlier_tasks)
{
	int i;

	storm_on_marks(yield_on, NR_YIELDERS);
	for (i = 0; i < NR_MARKS; i++)
		EXPECT_GE(NR_MARKS + NR_YIELDERS, waited(&marks[i]));
}

/* ---- from outside ---- */

static void wake(struct mark *m)
{
	atomic_fetch_add(&m->word.value, 1);
	pl_word_wake(&m->word, 1);
	mark_ready(m);
}

static void wake_by_timer(void *arg)
{
	wake(arg);
	atomic_fetch_sub(&nr_storms, 1);
}

static void at_once_by_timer(struct mark *m)
{
	atomic_fetch_add(&nr_storms, 1);
	ASSERT_EQ(0, pl_timer_add(NULL, pl_now(), wake_by_timer, m));
}

static void wait_again(void *arg)
{
	struct mark *m = arg;
	uint32_t i;

	for (i = 0; !is_over; i++) {
		while (atomic_load(&m->word.value) == i)
			pl_word_wait(&m->word, i, PL_FOREVER);
		mark_ran(m);
	}
}

/* The longest that one that parks again and again had to wait. */
static long longest_of(struct storm *s, void (*make_ready)(struct mark *m))
{
	int nr = scaled(200), i;
	long most = 0;

	begin(1, nr);
	begin_storm(s->fn, s->nr);
	spawn(wait_again, &marks[0]);
	for (i = 0; i < nr; i++) {
		EXPECT_TRUE(UNTIL(nr_waiters(&marks[0].word) == 1));
		make_ready(&marks[0]);
		EXPECT_TRUE(UNTIL(marks[0].nr_runs == i + 1 &&
				  nr_storms <= s->nr));
		most = waited(&marks[0]) > most ? waited(&marks[0]) : most;
	}
	ASSERT_TRUE(UNTIL(!nr_storms));
	return most;
}

/* Once the inbox is looked at, then before what was ready then. */
TEST_F(fair, task_woken_by_a_thread_runs_in_a_spawn_storm)
{
	struct storm s = { spawn_next, 2 };

	EXPECT_GE(EVERY * (1 + 2 + 1), longest_of(&s, wake));
}

TEST_F(fair, task_woken_by_a_thread_runs_in_a_yield_storm)
{
	struct storm s = { yield_on, NR_YIELDERS };

	EXPECT_GE(2 * (NR_YIELDERS + 1), longest_of(&s, wake));
}

TEST_F(fair, task_woken_by_a_timer_runs_in_a_spawn_storm)
{
	struct storm s = { spawn_next, 2 };

	EXPECT_GE(EVERY * (1 + 2 + 1), longest_of(&s, at_once_by_timer));
}

TEST_F(fair, task_woken_by_a_timer_runs_in_a_yield_storm)
{
	struct storm s = { yield_on, NR_YIELDERS };

	EXPECT_GE(2 * (NR_YIELDERS + 1), longest_of(&s, at_once_by_timer));
}

static void spawn_outside(struct mark *m)
{
	atomic_store(&m->nr_runs, 0);
	spawn(run_mark, m);
	mark_ready(m);
}

TEST_F(fair, task_spawned_by_a_thread_runs_in_a_spawn_storm)
{
	int nr = scaled(200), i;

	begin(1, nr);
	begin_storm(spawn_next, 2);
	for (i = 0; i < nr; i++) {
		spawn_outside(&marks[0]);
		ASSERT_TRUE(UNTIL(marks[0].nr_runs == 1));
		EXPECT_GE(EVERY * (1 + 2 + 1), waited(&marks[0]));
	}
	ASSERT_TRUE(UNTIL(!nr_storms));
}

/* ---- from outside, beside a long task ---- */

#define NR_THREADS	10

static atomic_int is_holding;

static void hold_on(void *arg)
{
	(void)arg;
	atomic_store(&is_holding, 1);
	EXPECT_TRUE(UNTIL_BUSY(is_over));
}

static void *spawn_by_thread(void *arg)
{
	spawn_outside(arg);
	return NULL;
}

/*
 * Threads are numbered one after the other: each worker is that of some, if it
 * were for their numbers.
 */
TEST_F(fair, task_spawned_by_a_thread_does_not_wait_behind_a_long_one)
{
	pthread_t thread;
	int i;

	begin(2, NR_THREADS);
	spawn(hold_on, NULL);
	ASSERT_TRUE(UNTIL(is_holding));
	begin_storm(spawn_next, 2);
	for (i = 0; i < NR_THREADS; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, spawn_by_thread,
					    &marks[i]));
		pthread_join(thread, NULL);
		ASSERT_TRUE(UNTIL(marks[i].nr_runs == 1));
		EXPECT_GE(EVERY * (1 + 2 + 1), waited(&marks[i]));
	}
	ASSERT_TRUE(UNTIL(!nr_storms));
}

static void read_one(void *arg)
{
	char c;

	EXPECT_EQ(1, pl_read(*(int *)arg, &c, 1));
	atomic_store(&is_over, 1);
}

/* When the kernel has done its part is not for us to count. */
TEST_F(fair, task_that_reads_runs_in_a_yield_storm)
{
	int fds[2];

	begin(1, 0);
	ASSERT_EQ(0, pipe(fds));
	begin_storm(yield_on, 2);
	spawn(read_one, &fds[0]);
	ASSERT_EQ(1, write(fds[1], "", 1));
	ASSERT_TRUE(UNTIL(!nr_storms));
	EXPECT_GT(end_ns, pl_now());
	close(fds[0]);
	close(fds[1]);
}

/* ---- order of events ---- */

/*
 * The events of one look run before those of a later look, though each makes
 * more ready meanwhile.
 */
#define NR_LOOK		10	/* events of one look */
#define NR_FILLERS	100	/* so that the worker looks meanwhile */

static struct mark fillers;
static atomic_int nr_in_turn, is_first_sent, is_second_sent;
static int turns[2 * NR_LOOK], pipes[2 * NR_LOOK][2];

static void fill(void *arg)
{
	(void)arg;
	EXPECT_TRUE(UNTIL_BUSY(is_second_sent));
	mark_ran(&fillers);
}

static void take_turn(int i)
{
	int turn = atomic_fetch_add(&nr_in_turn, 1), j;

	turns[i] = turn;
	for (j = 0; !turn && j < NR_FILLERS; j++)
		spawn(fill, NULL);
	atomic_fetch_sub(&nr_left, 1);
}

static void wait_turn(void *arg)
{
	struct mark *m = arg;

	while (!atomic_load(&m->word.value))
		pl_word_wait(&m->word, 0, PL_FOREVER);
	take_turn((int)(m - marks));
}

static void read_turn(void *arg)
{
	struct mark *m = arg;
	char c;

	EXPECT_EQ(1, pl_read(pipes[m - marks][0], &c, 1));
	take_turn((int)(m - marks));
}

static void hold_until_sent(void *arg)
{
	EXPECT_TRUE(UNTIL_BUSY(atomic_load((atomic_int *)arg)));
}

static void send_by_wake(int i)
{
	wake(&marks[i]);
}

static void send_by_pipe(int i)
{
	EXPECT_EQ(1, write(pipes[i][1], "", 1));
}

static void expect_looks_in_order(void (*wait)(void *arg), void (*send)(int i))
{
	int i, max_first = 0, min_second = 2 * NR_LOOK;

	begin(1, 2 * NR_LOOK + NR_FILLERS);
	for (i = 0; i < 2 * NR_LOOK; i++)
		spawn(wait, &marks[i]);
	for (i = 0; i < 2 * NR_LOOK && wait == wait_turn; i++)
		ASSERT_TRUE(UNTIL(nr_waiters(&marks[i].word) == 1));
	ASSERT_TRUE(wait == wait_turn ||
		    UNTIL(rt_stat().io_in_flight == 2 * NR_LOOK));
	spawn(hold_until_sent, &is_first_sent);
	for (i = 0; i < NR_LOOK; i++)
		send(i);
	atomic_store(&is_first_sent, 1);
	ASSERT_TRUE(UNTIL(nr_in_turn));
	for (; i < 2 * NR_LOOK; i++)
		send(i);
	atomic_store(&is_second_sent, 1);
	ASSERT_TRUE(UNTIL(!nr_left));

	for (i = 0; i < NR_LOOK; i++) {
		max_first = turns[i] > max_first ? turns[i] : max_first;
		if (turns[i + NR_LOOK] < min_second)
			min_second = turns[i + NR_LOOK];
	}
	EXPECT_GT(min_second, max_first);
}

TEST_F(fair, woken_task_runs_before_those_woken_later)
{
	int i;

	expect_looks_in_order(wait_turn, send_by_wake);
	for (i = 0; i < 2 * NR_LOOK; i++)
		EXPECT_EQ(i, turns[i]);
}

TEST_F(fair, task_with_completed_read_runs_before_later_ones)
{
	int i;

	for (i = 0; i < 2 * NR_LOOK; i++)
		ASSERT_EQ(0, pipe(pipes[i]));
	expect_looks_in_order(read_turn, send_by_pipe);
	for (i = 0; i < 2 * NR_LOOK; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

TEST_F(fair, many_woken_tasks_run_at_intervals_in_a_spawn_storm)
{
	int i;

	begin(1, NR_MARKS);
	for (i = 0; i < NR_MARKS; i++)
		spawn(wait_again, &marks[i]);
	for (i = 0; i < NR_MARKS; i++)
		ASSERT_TRUE(UNTIL(nr_waiters(&marks[i].word) == 1));
	begin_storm(spawn_next, 2);
	for (i = 0; i < NR_MARKS; i++)
		wake(&marks[i]);
	ASSERT_TRUE(UNTIL(!nr_storms && !nr_left));
	for (i = 0; i < NR_MARKS; i++) {
		EXPECT_GE(EVERY + EVENT_EVERY * (i + 3), waited(&marks[i]));
		atomic_fetch_add(&marks[i].word.value, 1);
		pl_word_wake(&marks[i].word, 1);
	}
}

/* Each is ready again at once, by an event. */
static void read_on(void *arg)
{
	int *fds = arg;
	char c;

	while (goes_on()) {
		EXPECT_EQ(1, write(fds[1], "", 1));
		EXPECT_EQ(1, pl_read(fds[0], &c, 1));
	}
	atomic_fetch_sub(&nr_storms, 1);
}

static void queue_marks_below_events(void *arg)
{
	int i;

	for (i = 0; i < 2 * NR_LOOK; i++) {
		ASSERT_EQ(0, pipe(pipes[i]));
		atomic_fetch_add(&nr_storms, 1);
		spawn(read_on, pipes[i]);
	}
	queue_marks(arg);
}

TEST_F(fair, event_storm_runs_the_oldest_task_at_intervals)
{
	struct storm s = { spawn_next, 1 };
	int i;

	begin(1, NR_MARKS);
	run_in_task(queue_marks_below_events, &s);
	ASSERT_TRUE(UNTIL(!nr_storms && !nr_left));
	for (i = 0; i < NR_MARKS; i++)
		EXPECT_GE(EVERY * (2 * NR_LOOK + i + 1), waited(&marks[i]));
	for (i = 0; i < 2 * NR_LOOK; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

/* ---- behind a task that does not end ---- */

/* The storm is taken to the other worker, as this one has no time. */
static void hold_mark(void *arg)
{
	struct storm *s = arg;
	long before;

	begin_storm(s->fn, s->nr);
	before = nr_taken;
	EXPECT_TRUE(UNTIL_BUSY(nr_taken > before + 1000));
	spawn(run_mark, &marks[0]);
	mark_ready(&marks[0]);
	EXPECT_TRUE(UNTIL_BUSY(marks[0].nr_runs || !nr_storms));
	EXPECT_EQ(1, marks[0].nr_runs);
}

static void expect_taken_over(void (*fn)(void *arg), int nr)
{
	struct storm s = { fn, nr };

	begin(2, 1);
	run_in_task(hold_mark, &s);
	EXPECT_GE(OTHERS_EVERY * 2, waited(&marks[0]));
	ASSERT_TRUE(UNTIL(!nr_storms));
}

TEST_F(fair, task_behind_a_long_one_is_stolen_in_a_spawn_storm)
{
	expect_taken_over(spawn_next, 1);
}

TEST_F(fair, task_behind_a_long_one_is_stolen_in_a_yield_storm)
{
	expect_taken_over(yield_on, 2);
}

/* ---- timers ---- */

static void add_again(void *arg)
{
	(void)arg;
	if (!is_over && pl_now() < end_ns)
		EXPECT_EQ(0, pl_timer_add(NULL, 0, add_again, NULL));
	else
		atomic_fetch_sub(&nr_storms, 1);
}

static void end_storm(void *arg)
{
	(void)arg;
	atomic_store(&is_over, 1);
}

TEST_F(fair, old_timers_do_not_delay_a_due_one)
{
	begin(1, 0);
	atomic_store(&nr_storms, 1);
	EXPECT_EQ(0, pl_timer_add(NULL, 0, add_again, NULL));
	EXPECT_EQ(0, pl_timer_add(NULL, in_ms(20), end_storm, NULL));
	ASSERT_TRUE(UNTIL(!nr_storms));
	EXPECT_GT(end_ns, pl_now());
}

TEST_HARNESS_MAIN
