/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Crowds of tasks that block their workers: those of a routine that blocked
 * before are set aside, and run by workers of their own.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "blocked.h"
#include "work.h"

#define NR_CROWD	200

BLOCKED_FIXTURE(crowd)

static void spawn_crowd(pl_task_t *t, int nr, void (*fn)(void *arg))
{
	int i;

	for (i = 0; i < nr; i++)
		t[i] = spawn(fn, NULL);
}

static void join_crowd(const pl_task_t *t, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		join(t[i]);
}

/* lib_spares has how few they are; a page that is waited for counts, too. */
TEST_TIMED(workers_of_a_routine_that_blocks_are_seldom_found,
	   "counts what the scheduler did meanwhile")
TEST_F(crowd, workers_of_a_routine_that_blocks_are_seldom_found)
{
	static pl_task_t t[2 * NR_CROWD];

	make_gate();
	start_with(2, 2 * NR_CROWD + 10);
	spawn_crowd(t, NR_CROWD, read_gate);
	spawn_tiny(1);
	spawn_crowd(t + NR_CROWD, NR_CROWD, read_gate);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	EXPECT_TRUE(UNTIL(nr_begun == 2 * NR_CROWD));
	EXPECT_GE(NR_CROWD, rt_stat().blocks);
	open_gate();
	join_crowd(t, 2 * NR_CROWD);
}

/* ---- tasks that resume ---- */

#define NR_AGAIN	40
#define NR_FIRST	2		/* rounds: to start, and to be found */
#define NR_ROUNDS	5		/* after these */

/* By turns, so that no task takes the byte of another's round. */
static int turnstiles[2][2];
static atomic_int nr_in, nr_through;
static struct pl_word nr_rounds;

static void wait_and_block(void *arg)
{
	uint32_t round;
	char c;

	for (round = 0; round < NR_FIRST + NR_ROUNDS; round++) {
		while (atomic_load(&nr_rounds.value) == round)
			pl_word_wait(&nr_rounds, round, PL_FOREVER);
		atomic_fetch_add(&nr_in, 1);
		EXPECT_EQ(1, read(turnstiles[round % 2][0], &c, 1));
		atomic_fetch_add(&nr_through, 1);
	}
}

/* They become ready together, and all are in their calls at a time. */
static void let_crowd_in(void)
{
	uint32_t round = atomic_fetch_add(&nr_rounds.value, 1);
	int nr = NR_AGAIN * ((int)round + 1);

	pl_word_wake(&nr_rounds, NR_AGAIN);
	ASSERT_TRUE(UNTIL_NO_MORE(nr_in == nr, (uint64_t)nr_in));
}

static void let_crowd_out(void)
{
	uint32_t round = atomic_load(&nr_rounds.value) - 1;
	int nr = NR_AGAIN * ((int)round + 1);
	char bytes[NR_AGAIN] = { 0 };

	ASSERT_EQ(NR_AGAIN, write(turnstiles[round % 2][1], bytes, NR_AGAIN));
	ASSERT_TRUE(UNTIL_NO_MORE(nr_through == nr, (uint64_t)nr_through));
}

/* Workers of which sysmon knows that they are blocked, and spares. */
static int nr_found(void)
{
	uint32_t i, nr = load_acquire(&pl__rt.main.nr_started);
	struct pl__worker *w;
	int sum = 0;

	for (i = 0; i < nr; i++) {
		w = pl__rt.main.workers[i];
		sum += pl__is_blocked(w) ||
		       load_relaxed(&w->sysmon.learned) == PL__RUN_BLOCKS;
	}
	return sum;
}

static void let_crowd_through(void)
{
	let_crowd_in();
	let_crowd_out();
}

static void yield_until_gone(void *arg)
{
	while (!may_go)
		pl_yield();
}

/*
 * Beside tasks that wait, so that sysmon looks.  The calls last until it has
 * seen each: where a crew replaces the workers, all may be over before.
 */
static void let_crowd_be_found(void)
{
	pl_task_t busy[2];

	spawn_crowd(busy, 2, yield_until_gone);
	let_crowd_in();
	ASSERT_TRUE(UNTIL(nr_found() >= NR_AGAIN));
	let_crowd_out();
	may_go = 1;
	join_crowd(busy, 2);
}

/*
 * They are known by then: not each is found blocked again.  A first run says
 * nothing of its task, as its worker may have waited for the stack's memory.
 */
TEST_TIMED(tasks_that_block_again_are_set_aside,
	   "counts what the scheduler did meanwhile")
TEST_F(crowd, tasks_that_block_again_are_set_aside)
{
	static pl_task_t t[NR_AGAIN];
	struct pl_stat before, after;
	int i;

	ASSERT_EQ(0, pipe2(turnstiles[0], O_CLOEXEC));
	ASSERT_EQ(0, pipe2(turnstiles[1], O_CLOEXEC));
	start_with(2, NR_AGAIN + 10);
	spawn_crowd(t, NR_AGAIN, wait_and_block);
	let_crowd_through();
	let_crowd_be_found();
	before = rt_stat();
	for (i = 0; i < NR_ROUNDS; i++)
		let_crowd_through();
	join_crowd(t, NR_AGAIN);
	after = rt_stat();
	EXPECT_LE(NR_AGAIN * NR_ROUNDS / 2, after.set_aside - before.set_aside);
	EXPECT_GE(NR_AGAIN * NR_ROUNDS / 4, after.blocks - before.blocks);
}

/* ---- what sysmon costs ---- */

#define NR_SLEEPERS	400
#define BLOCK_MS	20
#define LOOK_APART_NS	(NR_SLEEPERS * 40 * NSEC_PER_USEC)

static void sleep_again_and_again(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	while (!may_go)
		usleep(BLOCK_MS * 1000);
}

static struct pl__worker *any_spare(void)
{
	uint32_t i;

	for (i = 0; i < rt_stat().workers; i++)
		if (pl__is_spare(pl__rt.main.workers[i]))
			return pl__rt.main.workers[i];
	return NULL;
}

/* When sysmon last looked at @w, which it writes meanwhile. */
__attribute__((noinline, no_sanitize_thread))
static uint64_t last_look_ns(struct pl__worker *w)
{
	return *(volatile uint64_t *)&w->sysmon.since_ns;
}

static uint64_t nr_looks_until(struct pl__worker *w, uint64_t end)
{
	uint64_t last = last_look_ns(w), nr = 0, ns;

	while (pl_now() < end) {
		breathe();
		ns = last_look_ns(w);
		nr += ns != last;
		last = ns;
	}
	return nr;
}

/* Work waits, so it looks all the time, but not at each of a large crowd. */
TEST_TIMED(sysmon_looks_at_each_of_a_crowd_more_seldom,
	   "time that passed; counts what the scheduler did meanwhile")
TEST_F(crowd, sysmon_looks_at_each_of_a_crowd_more_seldom)
{
	static pl_task_t t[NR_SLEEPERS], busy[2];
	struct pl__worker *w;

	start_with(1, NR_SLEEPERS + 10);
	spawn_crowd(t, NR_SLEEPERS, sleep_again_and_again);
	EXPECT_TRUE(UNTIL(nr_begun == NR_SLEEPERS));
	spawn_crowd(busy, 2, yield_until_gone);
	w = any_spare();
	ASSERT_NE(NULL, w);
	EXPECT_GE(NSEC_PER_SEC / LOOK_APART_NS + 2,
		  nr_looks_until(w, pl_now() + NSEC_PER_SEC));
	may_go = 1;
	join_crowd(busy, 2);
	join_crowd(t, NR_SLEEPERS);
}

/* ---- a routine that does not block any more ---- */

static void block_if_asked(void *arg)
{
	if (arg)
		read_gate(NULL);
	else
		count(NULL);
}

/* How many of a batch are set aside. */
static uint64_t nr_aside_of(int nr)
{
	uint64_t before = rt_stat().set_aside;
	int i, all = nr_ran + nr;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, pl_spawn(NULL, block_if_asked, NULL, NULL));
	EXPECT_TRUE(UNTIL(nr_ran == all));
	return rt_stat().set_aside - before;
}

/*
 * On a busy machine a task may wait for a page, which counts as a block: then
 * what is queued is set aside once more, but not always.
 */
TEST_TIMED(routine_that_blocks_no_more_is_not_set_aside,
	   "counts what the scheduler did meanwhile")
TEST_F(crowd, routine_that_blocks_no_more_is_not_set_aside)
{
	pl_task_t t[4];
	int i;

	make_gate();
	start_with(2, 100);
	for (i = 0; i < 4; i++)
		t[i] = spawn(block_if_asked, gate);
	EXPECT_TRUE(UNTIL(nr_begun == 4));
	open_gate();
	join_crowd(t, 4);
	for (i = 0; i < 20; i++)
		join(spawn(block_if_asked, NULL));
	for (i = 0; i < 10 && nr_aside_of(200) > 100; i++)
		;
	EXPECT_GT(10, i);
}

/* ---- max_workers ---- */

/* Two workers never run out of tasks, and a third is blocked. */
TEST_F(crowd, set_aside_task_runs_beside_busy_workers)
{
	pl_task_t busy[4], t[6];

	make_gate();
	start_with(2, 3);
	spawn_crowd(busy, 4, yield_until_gone);
	spawn_crowd(t, 6, read_gate);
	EXPECT_TRUE(UNTIL(nr_begun == 3));
	may_go = 1;
	open_gate();
	join_crowd(t, 6);
	join_crowd(busy, 4);
}

static void spawn_reader(int i)
{
	readers[i] = spawn_flags(PL_SPAWN_BLOCKING, read_byte, pipes[i]);
}

/* Until sysmon has looked at the blocked one for the last time: 315 ms. */
static void compute_until_sysmon_sleeps(void)
{
	spin_ns(350 * NSEC_PER_MSEC);
	EXPECT_TRUE(UNTIL_BUSY(atomic_load(&pl__rt.sysmon) ==
			       PL__SYSMON_ASLEEP));
}

static void block_behind_two(void *arg)
{
	spawn_reader(0);
	EXPECT_TRUE(UNTIL_BUSY(nr_begun == 1));
	compute_until_sysmon_sleeps();
	spawn_reader(1);
	read_byte(arg);
}

/* No other task is queued, and so nothing else wakes sysmon. */
TEST_F(crowd, workers_all_blocked_beside_a_task_set_aside_are_counted)
{
	int i;

	start_fixed(1, 2);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pipe2(pipes[i], O_CLOEXEC));
	readers[2] = spawn(block_behind_two, pipes[2]);
	EXPECT_TRUE(UNTIL(rt_stat().all_blocked));
	EXPECT_EQ(2, nr_begun);
	for (i = 0; i < 3; i++)
		let_reader_go(i);
}

/* A spare may take one between a look at the clock and one at that time. */
TEST_F(crowd, task_is_not_overdue_though_one_was_taken_since_the_clock_was_read)
{
	_Atomic uint64_t *taken_ns = &pl__rt.main.aside.block.taken_ns;
	static struct pl__task t;

	start_with(1, 1);
	pl__aside_push(&t, PL__RUN_BLOCKS);
	*taken_ns = pl__now_ns() + NSEC_PER_SEC;
	EXPECT_EQ(NULL, pl__aside_pop_overdue(&pl__rt.main));
	*taken_ns = pl__now_ns() - NSEC_PER_SEC;
	EXPECT_EQ(&t, pl__aside_pop_overdue(&pl__rt.main));
	EXPECT_EQ(NULL, pl__aside_pop_overdue(&pl__rt.main));
}

/* ---- all of them, again and again ---- */

/* Longer than the next one takes to be set aside in a guest with delays. */
static void block_briefly(void *arg)
{
	usleep(20000);
}

static bool told_beside_calls(uint32_t nr)
{
	while (rt_stat().tasks_alive < nr)
		EXPECT_EQ(0, pl_spawn(NULL, block_briefly, NULL, NULL));
	return rt_stat().all_blocked;
}

/* No task waits for long, and none is blocked for long. */
TEST_F(crowd, workers_all_blocked_by_short_calls_are_counted)
{
	start_with(2, 20);
	EXPECT_TRUE(UNTIL(told_beside_calls(100)));
	EXPECT_TRUE(UNTIL(!rt_stat().tasks_alive));
}

static atomic_int is_over;

static void block_in_a_loop(void *arg)
{
	while (!is_over)
		usleep(20000);
}

TEST_F(crowd, workers_all_blocked_by_loops_of_calls_are_counted)
{
	static pl_task_t t[300];

	start_with(2, 0);
	spawn_crowd(t, 300, block_in_a_loop);
	EXPECT_TRUE(UNTIL(rt_stat().all_blocked));
	is_over = 1;
	join_crowd(t, 300);
}

TEST_HARNESS_MAIN
