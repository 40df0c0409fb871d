/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of workers: a task, and all that comes of it, runs on its group's
 * workers only, and none of these waits for another group.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "dump.h"

#include <sys/wait.h>

RT_FIXTURE(group)

static pl_group_t a, b;

static pl_group_t create(const char *name, uint32_t nr, uint32_t max)
{
	struct pl_group_config cfg = PL_GROUP_CONFIG_INIT;
	pl_group_t group = 0;

	cfg.name = name;
	cfg.nr_workers = nr;
	cfg.max_workers = max;
	EXPECT_EQ(0, pl_group_create(&group, &cfg));
	return group;
}

/* One worker each, and no more, so that nobody else runs what they leave. */
static void start_alone(void)
{
	start_with(1, 1);
	a = create("a", 1, 1);
	b = create("b", 1, 1);
}

static struct pl_group_stat stat_of(pl_group_t group)
{
	struct pl_group_stat st = PL_GROUP_STAT_INIT;

	EXPECT_EQ(0, pl_group_stat(group, &st));
	return st;
}

static pl_task_t spawn_flagged(pl_group_t group, uint32_t flags,
			       void (*fn)(void *arg), void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t = 0;

	opts.group = group;
	opts.flags = flags;
	opts.name = "of a group";
	EXPECT_EQ(0, pl_spawn(&t, fn, arg, &opts));
	return t;
}

static pl_task_t spawn_in(pl_group_t group, void (*fn)(void *arg), void *arg)
{
	return spawn_flagged(group, 0, fn, arg);
}

static void run_in(pl_group_t group, void (*fn)(void *arg), void *arg)
{
	EXPECT_EQ(0, pl_join(spawn_in(group, fn, arg)));
}

static void note_group(void *arg)
{
	*(pl_group_t *)arg = pl_group_self();
}

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
	(void)arg;
	EXPECT_EQ(0, pl_sleep(NSEC_PER_USEC));
	check_own(a);
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

/* ---- limits ---- */

static void wait_for_word(void *arg)
{
	(void)arg;
	while (!word.value && pl_word_wait(&word, 0, PL_FOREVER) != -ECANCELED)
		;
}

TEST_F(group, spawn_beyond_its_max_tasks_is_eagain)
{
	struct pl_group_config cfg = PL_GROUP_CONFIG_INIT;
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t[3];

	start_with(1, 1);
	b = create("b", 1, 1);
	cfg.max_tasks = 2;
	ASSERT_EQ(0, pl_group_create(&a, &cfg));
	opts.group = a;
	EXPECT_EQ(2, pl_spawn_many(t, 3, wait_for_word, NULL, &opts));
	EXPECT_EQ(-EAGAIN, pl_spawn(NULL, count, NULL, &opts));
	EXPECT_LE(1, stat_of(a).spawns_refused);
	/* Others have room. */
	run_in(0, count, NULL);
	run_in(b, count, NULL);
	opts.flags = PL_SPAWN_WAIT;
	opts.deadline_ns = pl_now() + NSEC_PER_MSEC;
	EXPECT_EQ(-ETIMEDOUT, pl_spawn(NULL, count, NULL, &opts));
	EXPECT_EQ(1, (int)stat_of(a).spawns_waited);
	set_word(NULL);
	pl_word_wake(&word, 2);
	opts.deadline_ns = 0;
	EXPECT_EQ(0, pl_spawn(&t[2], count, NULL, &opts));
	EXPECT_EQ(0, pl_join(t[2]));
}

TEST_F(group, number_of_workers_may_change)
{
	start_with(1, 1);
	a = create("a", 1, 3);
	EXPECT_EQ(1, (int)stat_of(a).target);
	EXPECT_EQ(0, pl_group_set_workers(a, 3));
	EXPECT_EQ(3, (int)stat_of(a).target);
	EXPECT_EQ(-EINVAL, pl_group_set_workers(a, 4));
	EXPECT_EQ(-EINVAL, pl_group_set_workers(a + 1, 1));
	EXPECT_EQ(1, (int)stat_of(PL_GROUP_DEFAULT).target);
	EXPECT_EQ(0, pl_group_set_workers(PL_GROUP_DEFAULT, 1));
	EXPECT_EQ(-EINVAL, pl_group_set_workers(0, 2));
}

/* ---- bad input ---- */

TEST_F(group, group_that_does_not_exist_is_einval)
{
	struct pl_group_stat st = PL_GROUP_STAT_INIT;
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	EXPECT_EQ(-ENOENT, pl_group_stat(PL_GROUP_DEFAULT, &st));
	start_with(1, 1);
	opts.group = 2;
	EXPECT_EQ(-EINVAL, pl_spawn(NULL, count, NULL, &opts));
	opts.group = UINT32_MAX;
	EXPECT_EQ(-EINVAL, pl_spawn(NULL, count, NULL, &opts));
	opts.group = 0;
	opts.reserved = 1;
	EXPECT_EQ(-EINVAL, pl_spawn(NULL, count, NULL, &opts));
	EXPECT_EQ(-ENOENT, pl_group_stat(2, &st));
	EXPECT_EQ(0, pl_group_stat(0, &st));
	EXPECT_EQ(-EINVAL, pl_group_stat(1, NULL));
	st.size = 1;
	EXPECT_EQ(-EINVAL, pl_group_stat(1, &st));
	EXPECT_EQ(0, nr_ran);
}

TEST_F(group, configuration_is_checked)
{
	struct pl_group_config cfg = PL_GROUP_CONFIG_INIT;
	pl_group_t group = 7;
	int i;

	start_with(1, 1);
	EXPECT_EQ(-EINVAL, pl_group_create(NULL, &cfg));
	cfg.nr_workers = 3;
	cfg.max_workers = 2;
	EXPECT_EQ(-EINVAL, pl_group_create(&group, &cfg));
	cfg.nr_workers = 0;
	cfg.max_workers = PL__WORKERS_MAX;
	EXPECT_EQ(-EINVAL, pl_group_create(&group, &cfg));
	cfg.max_workers = 1;
	cfg.reserved = 1;
	EXPECT_EQ(-EINVAL, pl_group_create(&group, &cfg));
	cfg.reserved = 0;
	cfg.size = 3;
	EXPECT_EQ(-EINVAL, pl_group_create(&group, &cfg));
	EXPECT_EQ(7, (int)group);
	cfg.size = sizeof(cfg);
	for (i = 2; i <= (int)PL_GROUPS_MAX; i++) {
		ASSERT_EQ(0, pl_group_create(&group, i % 2 ? NULL : &cfg));
		EXPECT_EQ(i, (int)group);
	}
	EXPECT_EQ(-ENOSPC, pl_group_create(&group, &cfg));
	run_in(group, note_group, &a);
	EXPECT_EQ(PL_GROUPS_MAX, a);
}

/* ---- the runtime ---- */

TEST_F(group, dump_names_the_group)
{
	pl_task_t t[2];

	NEEDS_DUMP();
	a = create("a \033", 1, 1);
	b = create(NULL, 1, 1);
	t[0] = spawn_flagged(a, PL_SPAWN_BACKGROUND, sleep_long, NULL);
	t[1] = spawn_in(b, sleep_long, NULL);
	EXPECT_TRUE(UNTIL(pl__task_slot(t[0])->waiter.timer &&
			  pl__task_slot(t[1])->waiter.timer));
	dumped();
	EXPECT_SAYS("of a group", "group 2 a ?, background");
	EXPECT_SAYS("of a group", "group 3");
	cancel_and_join(t, 2);
}

static atomic_int nr_hooks_in_a;

static void note_hook(void *arg)
{
	(void)arg;
	nr_hooks_in_a += pl_group_self() == a;
}

TEST_F(group, start_hook_knows_its_group)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.worker_start = note_hook;
	cfg.nr_workers = cfg.max_workers = 1;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	a = create("a", 1, 1);
	run_in(0, count, NULL);
	EXPECT_EQ(0, nr_hooks_in_a);
	run_in(a, count, NULL);
	EXPECT_EQ(1, nr_hooks_in_a);
}

static void sleep_until_cancelled(void *arg)
{
	(void)arg;
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
}

TEST_F(group, stop_ends_tasks_of_all_groups_and_the_groups)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int i;

	for (i = 0; i < 2; i++) {
		start_alone();
		spawn_in(a, sleep_until_cancelled, NULL);
		spawn_in(b, sleep_until_cancelled, NULL);
		spawn_in(0, sleep_until_cancelled, NULL);
		EXPECT_EQ(0, pl_runtime_stop());
	}
	start_with(1, 1);
	opts.group = a;
	EXPECT_EQ(-EINVAL, pl_spawn(NULL, count, NULL, &opts));
}

TEST_F(group, child_of_a_fork_has_none)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int status = -1;
	pid_t pid;

	start_alone();
	run_in(a, count, NULL);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		pl_task_t t;

		opts.group = a;
		status = pl_spawn(NULL, count, NULL, &opts) != -EINVAL;
		opts.group = 0;
		status |= pl_spawn(&t, count, NULL, &opts) || pl_join(t);
		_exit(status);
	}
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	run_in(a, count, NULL);
}

TEST_HARNESS_MAIN
