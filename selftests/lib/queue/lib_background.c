/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PL_SPAWN_BACKGROUND: tasks that run when nothing else is ready, each time
 * they become ready.
 *
 * A background task may run before others only if background_late counts it.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "background.h"
#include "dump.h"

BLOCKED_FIXTURE(background)

#define NR_SOME		10
#define BACKGROUND	1000	/* numbers of background tasks, from here on */

/* ---- order ---- */

/* In which order tasks ran, one worker. */
static int nr_placed;
static int place[128];

static void take_place(void *arg)
{
	place[nr_placed++] = (int)(intptr_t)arg;
}

/* How many background tasks overtook others. */
static int nr_overtaking(void)
{
	int i, nr_others = 0, nr = 0;

	for (i = nr_placed - 1; i >= 0; i--) {
		if (place[i] < BACKGROUND)
			nr_others++;
		else if (nr_others)
			nr++;
	}
	return nr;
}

static void expect_order(void)
{
	EXPECT_GE((int)rt_stat().background_late, nr_overtaking());
}

static void spawn_both(void *arg)
{
	intptr_t i;

	for (i = 0; i < NR_SOME; i++)
		spawn_background(take_place, (void *)(BACKGROUND + i));
	for (i = 0; i < NR_SOME; i++)
		spawn(take_place, (void *)i);
}

TEST_TIMED(tasks_run_after_all_others_and_oldest_first,
	   "counts what the scheduler did meanwhile")
TEST_F(background, tasks_run_after_all_others_and_oldest_first)
{
	int i;

	start_with(1, 1);
	run_in_task(spawn_both, NULL);
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(2 * NR_SOME, nr_placed);
	expect_order();
	if (!rt_stat().background_late)
		for (i = 0; i < NR_SOME; i++)
			EXPECT_EQ(BACKGROUND + i, place[NR_SOME + i]);
}

static void spawn_with_child(void *arg)
{
	take_place(arg);
	spawn(take_place, NULL);
}

static void spawn_parents(void *arg)
{
	intptr_t i;

	for (i = 0; i < NR_SOME; i++)
		spawn_background(spawn_with_child, (void *)(BACKGROUND + i));
}

/* Each child comes right after its parent, before the next parent. */
TEST_F(background, children_of_background_tasks_are_not_background)
{
	int i;

	start_with(1, 1);
	run_in_task(spawn_parents, NULL);
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(2 * NR_SOME, nr_placed);
	if (!rt_stat().background_late)
		for (i = 0; i < 2 * NR_SOME; i += 2)
			EXPECT_EQ(0, place[i + 1]);
}

/* ---- background again ---- */

#define NR_OTHERS	100
#define NR_TRIES	10

static struct pl_word word;
static int fds[2];
static pl_task_t joined;

static void wait_word(void *arg)
{
	while (!atomic_load(&word.value) &&
	       pl_word_wait(&word, 0, PL_FOREVER) != -ECANCELED)
		;
}

/* A background task waits as @wait says, and is woken by @wake. */
struct again {
	void	(*wait)(void);
	void	(*wake)(void);
};

static void wait_and_take_place(void *arg)
{
	struct again *a = arg;

	nr_begun = 1;
	a->wait();
	take_place((void *)(intptr_t)BACKGROUND);
}

/* What a task wakes last would run first, and an event among the others. */
static void wake_beside_others(void *arg)
{
	struct again *a = arg;
	int i;

	if (nr_placed)
		return;
	for (i = 0; i < NR_OTHERS; i++)
		spawn(take_place, NULL);
	a->wake();
}

/* In some tries the machine may be late. */
static void check_again(struct again *a)
{
	int i, nr_early = 0, nr_valid = 0;
	pl_task_t t;

	start_with(1, 1);
	for (i = 0; i < NR_TRIES; i++) {
		nr_placed = 0;
		nr_begun = 0;
		atomic_store(&word.value, 0);
		joined = spawn(wait_word, NULL);
		t = spawn_background(wait_and_take_place, a);
		ASSERT_TRUE(UNTIL(nr_begun && is_all_parked()));
		run_in_task(wake_beside_others, a);
		join(t);
		pl_cancel(joined);
		ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
		nr_valid += nr_placed > 1;
		nr_early += nr_overtaking();
	}
	EXPECT_LT(0, nr_valid);
	EXPECT_GE((int)rt_stat().background_late, nr_early);
}

static void sleep_on_word(void)
{
	wait_word(NULL);
}

static void wake_word(void)
{
	atomic_store(&word.value, 1);
	pl_word_wake(&word, UINT32_MAX);
}

static void join_it(void)
{
	join(joined);
}

static void sleep_a_little(void)
{
	EXPECT_EQ(0, pl_sleep(20 * NSEC_PER_MSEC));
}

/* Its timer fires meanwhile, and the others come after that. */
static void compute_a_little(void)
{
	spin_ns(25 * NSEC_PER_MSEC);
}

static void read_pair(void)
{
	char c;

	EXPECT_EQ(1, pl_read(fds[0], &c, 1));
}

static void write_pair(void)
{
	EXPECT_EQ(1, write(fds[1], "x", 1));
}

FIXTURE(again) { char unused; };
FIXTURE_VARIANT(again) { struct again a; };
FIXTURE_VARIANT_ADD(again, woken) { { sleep_on_word, wake_word } };
/* Else the joiner would be the next to run. */
FIXTURE_VARIANT_ADD(again, joined) { { join_it, wake_word } };
FIXTURE_VARIANT_ADD(again, slept) { { sleep_a_little, compute_a_little } };
FIXTURE_VARIANT_ADD(again, read) { { read_pair, write_pair } };

FIXTURE_SETUP(again)
{
	blocked_begin(_metadata);
	ASSERT_EQ(0, pipe(fds));
}

FIXTURE_TEARDOWN(again) { rt_end(); }

TEST_TIMED(again,
	   "one of several tries; both ends of a race must be seen; time that passed")
TEST_F(again, task_that_waited_is_background_again)
{
	struct again a = variant->a;

	check_again(&a);
}

/* ---- yields ---- */

static atomic_int nr_rounds[2];

static void yield_in_turn(void *arg)
{
	atomic_int *mine = arg;
	int i;

	for (i = 0; i < 1000; i++) {
		atomic_fetch_add(mine, 1);
		pl_yield();
		EXPECT_GE(2, abs(nr_rounds[0] - nr_rounds[1]));
	}
}

static void spawn_two_that_yield(void *arg)
{
	spawn_background(yield_in_turn, &nr_rounds[0]);
	spawn_background(yield_in_turn, &nr_rounds[1]);
}

static void yield_until_over(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	while (!may_go)
		pl_yield();
	take_place((void *)(intptr_t)BACKGROUND);
}

static void set_over(void *arg)
{
	take_place(arg);
	may_go = 1;
}

TEST_F(background, yield_lets_other_tasks_run)
{
	start_with(1, 1);
	spawn_background(yield_until_over, NULL);
	spawn_background(yield_until_over, NULL);
	EXPECT_TRUE(UNTIL(nr_begun == 2));
	spawn(set_over, NULL);
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(3, nr_placed);
	EXPECT_EQ(0, place[0]);
}

TEST_TIMED(yield_lets_other_background_tasks_run,
	   "counts what the scheduler did meanwhile")
TEST_F(background, yield_lets_other_background_tasks_run)
{
	start_with(1, 1);
	run_in_task(spawn_two_that_yield, NULL);
	ASSERT_TRUE(UNTIL(!rt_stat().tasks_alive));
}

/* ---- cancel, stop, limit ---- */

static void sleep_until_cancelled(void *arg)
{
	EXPECT_TRUE(pl_cancelled());
	EXPECT_EQ(-ECANCELED, pl_sleep(3600 * NSEC_PER_SEC));
	count(arg);
}

static void spawn_and_cancel(void *arg)
{
	pl_task_t t[NR_SOME];
	int i;

	for (i = 0; i < NR_SOME; i++)
		t[i] = spawn_background(sleep_until_cancelled, NULL);
	for (i = 0; i < NR_SOME; i++)
		EXPECT_EQ(0, pl_cancel(t[i]));
	EXPECT_EQ(NR_SOME, rt_stat().background_ready);
}

TEST_F(background, tasks_cancelled_before_they_run_see_it)
{
	start_with(1, 1);
	run_in_task(spawn_and_cancel, NULL);
	ASSERT_TRUE(UNTIL(nr_ran == NR_SOME));
}

static void yield_until_cancelled(void *arg)
{
	intptr_t i;

	for (i = 0; i < 1000; i++)
		spawn_background(i % 2 ? count : sleep_and_count, NULL);
	atomic_fetch_add(&nr_begun, 1);
	while (!pl_cancelled())
		pl_yield();
}

TEST_F(background, stop_runs_those_that_wait)
{
	start_with(1, 1);
	spawn(yield_until_cancelled, NULL);
	ASSERT_TRUE(UNTIL(nr_begun == 1));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(1000, nr_ran);
	start_with(1, 1);
	EXPECT_EQ(0, rt_stat().background_ready);
}

#define MAX_TASKS	4

/* Keeps its place until a spawn has found them all taken. */
static void keep_place(void *arg)
{
	EXPECT_TRUE(UNTIL(rt_stat().spawns_waited));
	count(arg);
}

TEST_F(background, tasks_count_against_max_tasks)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	int i;

	set_env("PARKLOT_WORKERS", 2);
	cfg.max_tasks = MAX_TASKS;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	for (i = 0; i < MAX_TASKS; i++)
		spawn_background(keep_place, NULL);
	for (; i < 2000; i++)
		spawn_flags(PL_SPAWN_BACKGROUND | PL_SPAWN_WAIT,
			    yield_sleep_and_count, (void *)(intptr_t)1);
	ASSERT_TRUE(UNTIL(nr_ran == 2000));
	EXPECT_LT(0, rt_stat().spawns_waited);
	EXPECT_EQ(0, rt_stat().spawns_refused);
}

/* ---- what shows them ---- */

static void spawn_in_used_slots(void *arg)
{
	pl_task_t t[NR_SOME];
	int i;

	for (i = 0; i < NR_SOME; i++)
		t[i] = spawn_background(count, arg);
	for (i = 0; i < NR_SOME; i++)
		join(t[i]);
	for (i = 0; i < 2 * NR_SOME; i++)
		spawn(count, arg);
	EXPECT_EQ(0, rt_stat().background_ready);
}

TEST_F(background, slot_of_an_ended_task_is_not_background)
{
	start_with(1, 1);
	run_in_task(spawn_in_used_slots, NULL);
	ASSERT_TRUE(UNTIL(nr_ran == 3 * NR_SOME));
}

static void spawn_and_look(void *arg)
{
	struct pl_queue_delay *qd = arg;
	int i;

	for (i = 0; i < NR_SOME; i++)
		spawn_background(count, NULL);
	EXPECT_EQ(NR_SOME, rt_stat().background_ready);
	/* It was itself measured. */
	EXPECT_EQ(0, pl_queue_delay(qd));
}

/* A server that sheds load by it would do so for background tasks. */
TEST_F(background, queue_delay_does_not_count_them)
{
	struct pl_queue_delay qd = PL_QUEUE_DELAY_INIT;

	start_with(1, 1);
	run_in_task(spawn_and_look, &qd);
	ASSERT_TRUE(UNTIL(nr_ran == NR_SOME));
	EXPECT_EQ(-ENODATA, pl_queue_delay(&qd));
	EXPECT_EQ(0, qd.waiting_ns);
}

TEST_F(background, dump_says_so)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t;

	NEEDS_DUMP();
	opts.flags = PL_SPAWN_BACKGROUND;
	opts.name = "quiet";
	ASSERT_EQ(0, pl_spawn(&t, sleep_long, NULL, &opts));
	ASSERT_TRUE(UNTIL(is_waiting(t)));
	ASSERT_NE(NULL, dumped());
	EXPECT_SAYS("quiet", ", background");
	cancel_and_join(&t, 1);
}

TEST_HARNESS_MAIN
