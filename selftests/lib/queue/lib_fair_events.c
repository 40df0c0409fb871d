/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In which order events run, and how many other tasks meanwhile.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "queue/aside.h"
#include "queue/ready.h"
#include "rt/runtime.h"
#include "storm.h"

#include <sys/socket.h>

RT_FIXTURE(fair_events)

/*
 * The events of one look run before those of a later look, though each makes
 * more ready meanwhile.
 */
#define NR_LOOK		10	/* events of one look */
#define NR_FILLERS	100	/* so that the worker looks meanwhile */

static struct mark fillers;
static atomic_int nr_in_turn, is_first_sent, is_second_sent;
static int turns[2 * NR_LOOK], look_pipes[2 * NR_LOOK][2];

static void fill(void *arg)
{
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

	EXPECT_EQ(1, pl_read(look_pipes[m - marks][0], &c, 1));
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

static void send_byte(int i)
{
	EXPECT_EQ(1, write(look_pipes[i][1], "", 1));
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

TEST_F(fair_events, woken_task_runs_before_those_woken_later)
{
	int i;

	expect_looks_in_order(wait_turn, send_by_wake);
	for (i = 0; i < 2 * NR_LOOK; i++)
		EXPECT_EQ(i, turns[i]);
}

TEST_F(fair_events, task_with_completed_read_runs_before_later_ones)
{
	int i;

	for (i = 0; i < 2 * NR_LOOK; i++)
		ASSERT_EQ(0, pipe(look_pipes[i]));
	expect_looks_in_order(read_turn, send_byte);
	for (i = 0; i < 2 * NR_LOOK; i++) {
		close(look_pipes[i][0]);
		close(look_pipes[i][1]);
	}
}

static void start_waiters(void)
{
	int i;

	for (i = 0; i < NR_MARKS; i++)
		spawn(wait_again, &marks[i]);
	for (i = 0; i < NR_MARKS; i++)
		ASSERT_TRUE(UNTIL(nr_waiters(&marks[i].word) == 1));
}

TEST_F(fair_events, many_woken_tasks_run_at_intervals_in_a_spawn_storm)
{
	int i;

	begin(1, NR_MARKS);
	start_waiters();
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
		ASSERT_EQ(0, pipe(look_pipes[i]));
		atomic_fetch_add(&nr_storms, 1);
		spawn(read_on, look_pipes[i]);
	}
	queue_marks(arg);
}

TEST_F(fair_events, event_storm_runs_the_oldest_task_at_intervals)
{
	struct storm s = { spawn_next, 1 };
	int i;

	begin(1, NR_MARKS);
	run_in_task(queue_marks_below_events, &s);
	ASSERT_TRUE(UNTIL(!nr_storms && !nr_left));
	for (i = 0; i < NR_MARKS; i++)
		EXPECT_GE(EVERY * (2 * NR_LOOK + i + 1), waited(&marks[i]));
	for (i = 0; i < 2 * NR_LOOK; i++) {
		close(look_pipes[i][0]);
		close(look_pipes[i][1]);
	}
}

/* ---- ready tasks beside the one that is taken ---- */

static atomic_int nr_met, nr_to_meet, has_read, has_begun;

static void read_pipe(int i)
{
	char c;

	EXPECT_EQ(1, pl_read(look_pipes[i][0], &c, 1));
}

static void read_first(void *arg)
{
	if (arg)
		pl__place_begin(pl__self()->current, PL__PLACE_BACKGROUND);
	read_pipe(0);
	has_read = 1;
}

static void run_until_read(void *arg)
{
	EXPECT_TRUE(UNTIL_BUSY(has_read));
}

static void read_second(void *arg)
{
	read_pipe(1);
	run_until_read(arg);
}

/* One on each worker. */
static void meet(void *arg)
{
	nr_met++;
	EXPECT_TRUE(UNTIL_BUSY(nr_met == nr_to_meet));
}

/*
 * The first worker waits for @nr reads; others come later.  By sockets: a
 * kernel that cannot try to read a pipe, as 6.1, has a thread of its own read
 * that for io_uring, and the worker's next look may come before the byte.
 */
static void begin_reads(bool is_background, int nr, int nr_workers)
{
	pl_task_t t[3];
	int i;

	/* Sysmon would tell of what is ready as well. */
	setenv("PARKLOT_WATCH", "0", 1);
	start_fixed(1, 3);
	unsetenv("PARKLOT_WATCH");
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0,
					look_pipes[i]));
	spawn(read_first, is_background ? "" : NULL);
	if (nr > 1)
		spawn(read_second, NULL);
	ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == (uint32_t)nr));
	ASSERT_EQ(0, pl_runtime_set_workers((uint32_t)nr_workers));
	nr_to_meet = nr_workers;
	for (i = 0; i < nr_workers; i++)
		t[i] = spawn(meet, NULL);
	for (i = 0; i < nr_workers; i++)
		join(t[i]);
}

/* The next tick is the one after @tick, on the first worker; one is idle. */
static bool prepare_tick(uint32_t tick)
{
	struct pl__worker *w = pl__self();

	if (w->index || load_relaxed(&pl__rt.main.nr_idle) != 1)
		return false;
	store_relaxed(&w->tick, tick);
	has_begun = 1;
	return true;
}

static void expect_read(void (*leave)(void *arg), int nr)
{
	int i;

	while (!has_begun)
		run_in_task(leave, NULL);
	EXPECT_TRUE(UNTIL(has_read));
	for (i = 0; i < nr; i++) {
		close(look_pipes[i][0]);
		close(look_pipes[i][1]);
	}
}

static atomic_int is_to_queue, is_queued;
static struct pl__worker *_Atomic stalled;

/*
 * One of two, which is not on the first worker: queues a task of which it tells
 * nobody, and goes on.
 */
static void stall(void *arg)
{
	struct pl__worker *none = NULL, *w = pl__self();
	struct pl__task *t;

	if (!w->index || !atomic_compare_exchange_strong(&stalled, &none, w)) {
		EXPECT_TRUE(UNTIL_BUSY(stalled));
		return;
	}
	EXPECT_TRUE(UNTIL_BUSY(is_to_queue));
	ASSERT_EQ(0, pl__spawn_reserve(&t, w->group, run_until_read,
				       NULL, NULL));
	counter_inc(&w->stat.spawned);
	pl__ready_quietly(w, t);
	is_queued = 1;
	EXPECT_TRUE(UNTIL_BUSY(has_read));
}

/* Brings an event, and has that task taken before it. */
static void leave_event_behind(void *arg)
{
	struct pl__worker *w = pl__self();

	if (!prepare_tick(2 * PL__FAIR_EVERY - 1))
		return;
	is_to_queue = 1;
	EXPECT_TRUE(UNTIL_BUSY(is_queued));
	w->next_stalled = stalled->index;
	w->stalled_moves = load_relaxed(&stalled->stat.switches) +
			   load_relaxed(&stalled->stat.ended);
	send_byte(0);
}

TEST_F(fair_events, event_behind_a_task_of_others_is_told_of)
{
	begin_reads(false, 1, 3);
	spawn(stall, NULL);
	spawn(stall, NULL);
	ASSERT_TRUE(UNTIL(stalled));
	expect_read(leave_event_behind, 1);
}

static void leave_background_behind(void *arg)
{
	if (!prepare_tick(PL__FAIR_EVERY - 1))
		return;
	send_byte(0);
	send_byte(1);
}

TEST_F(fair_events, background_task_behind_an_event_is_told_of)
{
	begin_reads(true, 2, 2);
	expect_read(leave_background_behind, 2);
}

TEST_HARNESS_MAIN
