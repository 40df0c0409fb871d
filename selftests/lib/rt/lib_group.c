/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of workers: a task, and all that comes of it, runs on its group's
 * workers only, and none of these waits for another group.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "group.h"

RT_FIXTURE(group)

/* ---- where tasks run ---- */

TEST_F(group, workers_start_as_tasks_need_them)
{
	pl_group_t seen = 0;

	start_alone();
	EXPECT_EQ(0, (int)stat_of(a).workers);
	EXPECT_EQ(PL_GROUP_DEFAULT, pl_group_self());
	run_in(a, note_group, &seen);
	EXPECT_EQ(a, seen);
	EXPECT_EQ(1, (int)stat_of(a).workers);
	EXPECT_EQ(1, (int)stat_of(a).tasks_ended);
	EXPECT_EQ(0, (int)stat_of(b).workers);
	run_in(0, note_group, &seen);
	EXPECT_EQ(PL_GROUP_DEFAULT, seen);
}

static void spawn_children(void *arg)
{
	static const uint32_t flags[] = {
		0, PL_SPAWN_URGENT, PL_SPAWN_NOSIGNAL, PL_SPAWN_BLOCKING,
		PL_SPAWN_BACKGROUND,
	};
	pl_group_t own = *(pl_group_t *)arg, seen;
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		seen = 0;
		opts.flags = flags[i];
		EXPECT_EQ(0, pl_spawn(&t, note_group, &seen, &opts));
		EXPECT_EQ(0, pl_join(t));
		EXPECT_EQ(own, seen);
		EXPECT_EQ(own, pl_group_self());
	}
}

TEST_F(group, children_run_in_the_group_of_their_spawner)
{
	start_with(1, 4);
	a = create("a", 1, 4);
	run_in(a, spawn_children, &a);
}

static void spawn_into_other(void *arg)
{
	static const uint32_t flags[] = {
		0, PL_SPAWN_URGENT, PL_SPAWN_NOSIGNAL, PL_SPAWN_BLOCKING,
		PL_SPAWN_BACKGROUND,
	};
	pl_group_t own = pl_group_self(), other = *(pl_group_t *)arg, seen;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		seen = 0;
		EXPECT_EQ(0, pl_join(spawn_flagged(other, flags[i], note_group,
						   &seen)));
		EXPECT_EQ(other, seen);
		EXPECT_EQ(own, pl_group_self());
	}
}

TEST_F(group, tasks_spawned_into_another_run_there)
{
	pl_group_t main = PL_GROUP_DEFAULT;

	start_with(1, 4);
	a = create("a", 1, 4);
	b = create("b", 1, 4);
	spawn_into_other(&a);
	run_in(a, spawn_into_other, &b);
	run_in(b, spawn_into_other, &main);
	run_in(0, spawn_into_other, &b);
	run_in(a, spawn_into_other, &a);
}

static atomic_int nr_in_a;

static void count_in_a(void *arg)
{
	(void)arg;
	nr_in_a += pl_group_self() == a;
}

TEST_F(group, many_tasks_of_a_thread_run_there)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t tasks[100];
	int i;

	start_with(1, 1);
	a = create("a", 2, 2);
	opts.group = a;
	ASSERT_EQ(50, pl_spawn_many(tasks, 50, count_in_a, NULL, &opts));
	opts.flags = PL_SPAWN_NOSIGNAL;
	ASSERT_EQ(50, pl_spawn_many(tasks + 50, 50, count_in_a, NULL, &opts));
	for (i = 0; i < 100; i++)
		EXPECT_EQ(0, pl_join(tasks[i]));
	EXPECT_EQ(100, nr_in_a);
}

/* More than workers keep for themselves, so that others get them. */
#define NR_SLOTS	400

TEST_F(group, slot_of_an_ended_task_is_of_no_group)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	static pl_task_t tasks[NR_SLOTS];
	int i, round;

	start_with(1, 1);
	a = create("a", 1, 1);
	opts.group = a;
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(NR_SLOTS, pl_spawn_many(tasks, NR_SLOTS, count_in_a,
						  NULL, &opts));
		for (i = 0; i < NR_SLOTS; i++)
			EXPECT_EQ(0, pl_join(tasks[i]));
		opts.group = 0;
	}
	EXPECT_EQ(NR_SLOTS, nr_in_a);
}

/* ---- what they wait for ---- */

static struct pl_mutex mutex;
static struct pl_word word;

static void set_word(void *arg)
{
	(void)arg;
	word.value = 1;
	pl_word_wake(&word, 1);
}

static void check_own(pl_group_t own)
{
	EXPECT_EQ(own, pl_group_self());
}

static void end_value(void *arg)
{
	pl_group_t own = pl_group_self();

	(void)arg;
	EXPECT_EQ(0, pl_sleep(5 * NSEC_PER_MSEC));
	check_own(own);
}

static void wait_for_all(void *arg)
{
	pl_group_t own = pl_group_self(), seen;
	struct timespec ts = { .tv_nsec = 1000 };
	pl_key_t key;
	char c = 'x';
	int fds[2];

	(void)arg;
	pl_yield();
	check_own(own);
	EXPECT_EQ(0, pl_sleep(10 * NSEC_PER_USEC));
	check_own(own);
	spawn_in(b, set_word, NULL);
	while (!word.value)
		pl_word_wait(&word, 0, PL_FOREVER);
	check_own(own);
	EXPECT_EQ(-ETIMEDOUT, pl_word_wait(&word, 1, pl_now() + 1000));
	check_own(own);
	EXPECT_EQ(0, pl_join(spawn_in(b, note_group, &seen)));
	check_own(own);
	EXPECT_EQ(b, seen);
	ASSERT_EQ(0, pipe2(fds, O_NONBLOCK | O_CLOEXEC));
	EXPECT_EQ(-ETIMEDOUT, pl_read_until(fds[0], &c, 1, pl_now() + 1000));
	check_own(own);
	EXPECT_EQ(1, pl_write(fds[1], &c, 1));
	EXPECT_EQ(1, pl_read(fds[0], &c, 1));
	check_own(own);
	close(fds[0]);
	close(fds[1]);
	pl_mutex_lock(&mutex);
	pl_mutex_unlock(&mutex);
	nanosleep(&ts, NULL);
	pl_yield();
	check_own(own);
	/* What it waits for at its end, too. */
	EXPECT_EQ(0, pl_key_create(&key, end_value));
	EXPECT_EQ(0, pl_key_set(key, &c));
}

TEST_F(group, task_that_waited_runs_there_again)
{
	start_alone();
	run_in(a, wait_for_all, NULL);
}

/* Its worker has not the index by which it keeps deadlines. */
TEST_F(group, deadlines_pass_beside_a_group_that_is_idle)
{
	int i;

	start_with(1, 8);
	a = create("a", 1, 8);
	for (i = 0; i < 20; i++)
		run_in(0, end_value, NULL);
	for (i = 0; i < 20; i++)
		run_in(a, end_value, NULL);
}

/* ---- nobody waits for another group ---- */

static atomic_bool is_told;

static void compute_until_told(void *arg)
{
	(void)arg;
	EXPECT_TRUE(UNTIL_BUSY(is_told));
}

static void tell(void *arg)
{
	(void)arg;
	is_told = true;
}

TEST_F(group, task_that_computes_keeps_nothing_from_another)
{
	pl_task_t t;

	start_alone();
	t = spawn_in(0, compute_until_told, NULL);
	run_in(a, tell, NULL);
	EXPECT_EQ(0, pl_join(t));
	is_told = false;
	t = spawn_in(a, compute_until_told, NULL);
	run_in(b, tell, NULL);
	EXPECT_EQ(0, pl_join(t));
}

static int pipe_fds[2];

static void read_pipe(void *arg)
{
	char c;

	(void)arg;
	EXPECT_EQ(1, read(pipe_fds[0], &c, 1));
}

static void write_pipe(void *arg)
{
	(void)arg;
	EXPECT_EQ(1, write(pipe_fds[1], "x", 1));
}

/* It has workers beyond its target for these, and takes none of another's. */
TEST_F(group, blocked_worker_is_replaced_in_its_group)
{
	pl_task_t t;
	int i;

	start_with(1, 1);
	a = create("a", 1, 2);
	ASSERT_EQ(0, pipe2(pipe_fds, O_CLOEXEC));
	for (i = 0; i < 3; i++) {
		t = spawn_in(a, read_pipe, NULL);
		run_in(a, write_pipe, NULL);
		EXPECT_EQ(0, pl_join(t));
	}
	EXPECT_GE(2, stat_of(a).workers);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* ---- wakes from group to group ---- */

#define NR_TURNS	20

static _Atomic uint32_t ball;

/* Each waits for its turn, which the one before it gives. */
static void play(void *arg)
{
	uint32_t own = (uint32_t)(uintptr_t)arg, i, now;

	for (i = 0; i < NR_TURNS; i++) {
		while ((now = atomic_load(&word.value)) % 3 != own)
			pl_word_wait(&word, now, PL_FOREVER);
		atomic_store(&word.value, now + 1);
		pl_word_wake(&word, UINT32_MAX);
	}
}

TEST_F(group, tasks_of_three_groups_take_turns)
{
	pl_task_t tasks[3];
	uintptr_t i;

	start_alone();
	for (i = 0; i < 3; i++)
		tasks[i] = spawn_in((pl_group_t)i + 1, play, (void *)i);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, pl_join(tasks[i]));
	EXPECT_EQ(3 * NR_TURNS, (int)word.value);
}

static struct pl_chan *chan;

static void send_all(void *arg)
{
	int i;

	for (i = 0; i < NR_TURNS; i++)
		EXPECT_EQ(0, pl_chan_send(chan, arg));
}

static void receive_some(void *arg)
{
	void *v;
	int i;

	(void)arg;
	for (i = 0; i < NR_TURNS; i++) {
		EXPECT_EQ(0, pl_chan_recv(chan, &v));
		ball++;
		pl_mutex_lock(&mutex);
		pl_mutex_unlock(&mutex);
	}
}

TEST_F(group, channel_and_mutex_are_shared)
{
	pl_task_t tasks[4];
	int i;

	start_alone();
	ASSERT_EQ(0, pl_chan_create(&chan, 1));
	tasks[0] = spawn_in(a, send_all, NULL);
	tasks[1] = spawn_in(b, receive_some, NULL);
	tasks[2] = spawn_in(0, receive_some, NULL);
	tasks[3] = spawn_in(b, send_all, NULL);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, pl_join(tasks[i]));
	EXPECT_EQ(2 * NR_TURNS, (int)ball);
	pl_chan_destroy(chan);
}

static void note_groups(void **items, size_t nr, void *arg)
{
	size_t i;

	(void)arg;
	for (i = 0; i < nr; i++)
		note_group(items[i]);
}

static struct pl_queue *queue;

static void create_queue(void *arg)
{
	(void)arg;
	EXPECT_EQ(0, pl_queue_create(&queue, note_groups, NULL));
}

static void push(void *arg)
{
	EXPECT_EQ(0, pl_queue_push(queue, arg));
}

TEST_F(group, queue_executes_in_the_group_that_made_it)
{
	pl_group_t seen[3] = { 0 };

	start_alone();
	run_in(a, create_queue, NULL);
	push(&seen[0]);
	run_in(b, push, &seen[1]);
	run_in(a, push, &seen[2]);
	EXPECT_EQ(0, pl_queue_close(queue));
	EXPECT_EQ(0, pl_queue_join(queue));
	EXPECT_EQ(a, seen[0]);
	EXPECT_EQ(a, seen[1]);
	EXPECT_EQ(a, seen[2]);
}

TEST_HARNESS_MAIN
