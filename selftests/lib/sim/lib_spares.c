/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workers that block or get no processor, and what others have in their queues
 * meanwhile: short enough for hundreds of seeds, which choose the order.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"

#include "parklot/sim.h"

#include <fcntl.h>

RT_FIXTURE(spares)

/* ---- a worker that steals a crowd ---- */

#define NR_CROWD	40
#define NR_TINY		8

static int gate[2];
static atomic_int nr_at_gate, nr_on_others;

/* Blocks in the kernel until the gate is closed. */
static void read_gate(void *arg)
{
	char c;

	EXPECT_EQ(0, read(gate[0], &c, 1));
}

static void wait_at_gate(void *arg)
{
	nr_on_others += !pl__is_spare(pl__self());
	nr_at_gate++;
	read_gate(arg);
}

/* On the one worker, without sysmon, beside which @nr others may start. */
static void begin_beside(uint32_t nr, void (*fn)(void *arg))
{
	set_env("PARKLOT_WATCH", 0);
	start_with(1, 1 + nr);
	pl__forecast_add(wait_at_gate, PL__RUN_BLOCKS);
	ASSERT_EQ(0, pipe2(gate, O_CLOEXEC));
	EXPECT_EQ(0, pl_spawn(NULL, fn, NULL, NULL));
}

/* The others are started as it blocks, and steal. */
static void spawn_crowd_and_block(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int i;

	opts.flags = PL_SPAWN_NOSIGNAL;
	for (i = 0; i < NR_CROWD; i++) {
		EXPECT_EQ(0, pl_spawn(NULL, wait_at_gate, NULL, &opts));
		if (i % (NR_CROWD / NR_TINY) == 0)
			EXPECT_EQ(0, pl_spawn(NULL, count, NULL, &opts));
	}
	EXPECT_EQ(0, pl_blocking(read_gate, NULL));
}

/*
 * Two workers may be started beside the one that spawned them.  One is a spare,
 * and blocks.  If the other became one, too, while it or the first had tasks
 * that do not block, nobody would run these.  It may block before only in a
 * task that is overdue, which it runs without being a spare.
 */
TEST_F(spares, thief_of_a_crowd_runs_the_others_before_it_blocks)
{
	begin_beside(2, spawn_crowd_and_block);
	EXPECT_TRUE(UNTIL(nr_ran == NR_TINY || nr_on_others));
	EXPECT_EQ(0, close(gate[1]));
	EXPECT_TRUE(UNTIL(nr_ran == NR_TINY && nr_at_gate == NR_CROWD));
}

static void spawn_two_and_block(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.flags = PL_SPAWN_NOSIGNAL;
	EXPECT_EQ(0, pl_spawn(NULL, wait_at_gate, NULL, &opts));
	EXPECT_EQ(0, pl_spawn(NULL, count, NULL, &opts));
	EXPECT_EQ(0, pl_blocking(read_gate, NULL));
}

/* Its own queue is empty, but not that of the one that it stole from. */
TEST_F(spares, last_worker_runs_what_another_has_before_it_blocks)
{
	begin_beside(1, spawn_two_and_block);
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	EXPECT_EQ(0, close(gate[1]));
	EXPECT_TRUE(UNTIL(nr_at_gate == 1));
}

/* ---- a routine that blocks ---- */

static struct pl_word is_warm;

static void wait_for_all(void *arg)
{
	while (!atomic_load(&is_warm.value))
		pl_word_wait(&is_warm, 0, PL_FOREVER);
}

/* As many as three workers may keep, and those of the crowd. */
#define NR_STACKS	(3 * 32 + NR_CROWD)

/* A block beside a wait for memory is not learned: this gets the stacks. */
static void get_stacks(void)
{
	pl_task_t t[NR_STACKS];
	int i;

	for (i = 0; i < NR_STACKS; i++)
		t[i] = spawn(wait_for_all, NULL);
	EXPECT_TRUE(UNTIL(nr_waiters(&is_warm) == NR_STACKS));
	atomic_store(&is_warm.value, 1);
	pl_word_wake(&is_warm, NR_STACKS);
	for (i = 0; i < NR_STACKS; i++)
		join(t[i]);
}

/*
 * As many as are to run may run it until the first one is found.  All others
 * are spares, whether their tasks were set aside or run where they are.  One
 * that gets no processor meanwhile has no relief, which would be one more.
 */
TEST_F(spares, routine_that_was_found_blocked_runs_on_spares)
{
	uint32_t nr_workers = 1 + (uint32_t)(__test_seed % 3);
	int i;

	set_env("PARKLOT_STALL_US", 0);
	start_with(nr_workers, NR_CROWD + 10);
	get_stacks();
	ASSERT_EQ(0, pipe2(gate, O_CLOEXEC));
	for (i = 0; i < NR_CROWD; i++)
		EXPECT_EQ(0, pl_spawn(NULL, wait_at_gate, NULL, NULL));
	EXPECT_TRUE(UNTIL(nr_at_gate == NR_CROWD));
	/* A crew has others called before sysmon has found one. */
	if (!pl__rt.main.lots.nr_members)
		EXPECT_GE(nr_workers, nr_on_others);
	EXPECT_EQ(0, close(gate[1]));
}

/* ---- tasks that block, and yield ---- */

#define NR_YIELDERS	12
#define NR_BLOCKS	10

static void block_and_yield(void *arg)
{
	int i;

	for (i = 0; i < NR_BLOCKS; i++) {
		if (pl__forecast(pl__self()->current) == PL__RUN_BLOCKS)
			nr_on_others += !pl__is_spare(pl__self());
		pl_sim_block(5 * NSEC_PER_MSEC);
		pl_yield();
	}
}

/* One that yields on a worker that is to run may steal another, too. */
TEST_F(spares, task_that_yields_and_blocks_runs_on_spares)
{
	pl_task_t t[NR_YIELDERS];
	int i;

	start_with(4, NR_YIELDERS + 10);
	for (i = 0; i < NR_YIELDERS; i++)
		t[i] = spawn(block_and_yield, NULL);
	for (i = 0; i < NR_YIELDERS; i++)
		join(t[i]);
	EXPECT_EQ(0, nr_on_others);
}

static atomic_int may_spawn, has_spawned, has_yielded;

/* Its worker looks at none of those that it spawns before the yield is over. */
static void spawn_and_compute(int nr, enum pl_stack stack)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int i;

	while (!may_spawn)
		pl_sim_compute(10 * NSEC_PER_USEC);
	opts.flags = PL_SPAWN_NOSIGNAL;
	opts.stack = stack;
	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, pl_spawn(NULL, i == 1 ? count : wait_at_gate,
				      NULL, &opts));
	has_spawned = 1;
	while (!has_yielded)
		pl_sim_compute(10 * NSEC_PER_USEC);
}

static void wait_for_spawns(void)
{
	may_spawn = 1;
	while (!has_spawned)
		pl_sim_compute(10 * NSEC_PER_USEC);
}

/* On a worker each, without sysmon, beside which others may be spares. */
static void run_spawner_and_yielder(void (*spawner)(void *arg),
				    void (*yielder)(void *arg))
{
	pl_task_t t[2];

	set_env("PARKLOT_WATCH", 0);
	start_fixed(2, 4);
	pl__forecast_add(wait_at_gate, PL__RUN_BLOCKS);
	ASSERT_EQ(0, pipe2(gate, O_CLOEXEC));
	t[0] = spawn(spawner, NULL);
	t[1] = spawn(yielder, NULL);
	join(t[0]);
	join(t[1]);
	EXPECT_EQ(0, close(gate[1]));
}

static void spawn_four(void *arg)
{
	spawn_and_compute(4, PL_STACK_NORMAL);
}

/* The first theft brings the first two, and the next ones one each. */
static void yield_once(void *arg)
{
	wait_for_spawns();
	pl_yield();
	EXPECT_EQ(0, pl__nr_queued(pl__self()));
	has_yielded = 1;
}

/* The worker may not look at its queue again for long. */
TEST_F(spares, yield_leaves_nothing_of_a_theft_behind)
{
	run_spawner_and_yielder(spawn_four, yield_once);
	EXPECT_TRUE(UNTIL(nr_ran == 1 && nr_at_gate == 3));
}

static void spawn_one(void *arg)
{
	spawn_and_compute(1, PL_STACK_LARGE);
}

static void yield_without_memory(void *arg)
{
	wait_for_spawns();
	EXPECT_TRUE(take_all_memory());
	pl_yield();
	EXPECT_FALSE(pl__is_blocked(pl__self()));
	give_memory_back();
	has_yielded = 1;
}

/* What it stole waits for a stack, and the worker runs on with its own task. */
TEST_F(spares, yield_is_no_spare_for_a_task_without_a_stack)
{
	run_spawner_and_yielder(spawn_one, yield_without_memory);
	EXPECT_TRUE(UNTIL(nr_at_gate == 1));
}

/* ---- a spare that waits for a processor ---- */

#define NR_LOOKS	5

static atomic_int may_go;

/* When sysmon last looked at @w. */
static uint64_t last_look_ns(struct pl__worker *w)
{
	return *(volatile uint64_t *)&w->sysmon.since_ns;
}

/*
 * It gets a processor now and then, for some points of 100 ns, and never
 * sleeps; so in no millisecond it gets a quarter of one.
 */
static void wait_for_processors(void *arg)
{
	struct pl__worker *w = pl__self();
	uint64_t last = last_look_ns(w), ns;
	int nr = 0;

	while (nr < NR_LOOKS && pl__is_blocked(w)) {
		pl__sim_preempt(NSEC_PER_MSEC);
		ns = last_look_ns(w);
		nr += ns != last;
		last = ns;
	}
	EXPECT_EQ(NR_LOOKS, nr);
	may_go = 1;
}

static void call_wait_for_processors(void *arg)
{
	EXPECT_EQ(0, pl_blocking(wait_for_processors, arg));
}

/* So sysmon has to look. */
static void keep_work_waiting(void *arg)
{
	while (!may_go) {
		pl_sim_compute(100 * NSEC_PER_USEC);
		pl_yield();
	}
}

TEST_F(spares, spare_that_waits_for_a_processor_stays_counted)
{
	pl_task_t t[3];
	int i;

	start_with(1, 3);
	t[0] = spawn(call_wait_for_processors, NULL);
	for (i = 1; i < 3; i++)
		t[i] = spawn(keep_work_waiting, NULL);
	for (i = 0; i < 3; i++)
		join(t[i]);
}

TEST_HARNESS_MAIN
