/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The child of a fork(): from wherever it was made, and whatever others were
 * at, it has no runtime, may start one, and waits for no task of the parent's.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "work.h"

FIXTURE(fork) { char unused; };

/* Threads without a runtime; an emulator has one of its own. */
static int nr_threads_before;

static int nr_threads(void)
{
	return nr_entries("/proc/self/task");
}

FIXTURE_SETUP(fork)
{
	rt_begin(_metadata);
	nr_threads_before = nr_threads();
	if (RT_TSAN || RT_ASAN)
		SKIP(return, "no threads after a fork of several here");
}

FIXTURE_TEARDOWN(fork)
{
	rt_end();
}

static struct pl_word word;
static struct pl_mutex mutex;
static struct pl_cond cond;
static atomic_int may_end;

static int nr_fds(void)
{
	return nr_entries("/proc/self/fd");
}

/* ---- what a child does ---- */

static void check_nothing_runs(void)
{
	struct pl_stat st = rt_stat();

	EXPECT_EQ(0, pl_self());
	EXPECT_FALSE(pl_cancelled());
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	EXPECT_EQ(-EALREADY, pl_runtime_stop());
	EXPECT_GE(nr_threads_before, nr_threads());
	EXPECT_EQ(0, st.tasks_alive);
	EXPECT_EQ(0, st.tasks_spawned);
}

/* Waits as a thread, at addresses that others may have been at. */
static void check_waits(void)
{
	EXPECT_EQ(-ETIMEDOUT, pl_word_wait(&word, atomic_load(&word.value),
					   in_ms(1)));
	EXPECT_EQ(0, pl_word_wake(&word, 1));
	pl_cond_signal(&cond);
	EXPECT_EQ(0, pl_sleep(NSEC_PER_USEC));
	pl_yield();
}

static void check_new_life(void)
{
	static struct pl_mutex fresh;
	static struct pl_cond fresh_cond;

	work.mutex = fresh;
	work.cond = fresh_cond;
	work.nr_live = 0;
	check_nothing_runs();
	check_waits();
	work_run();
	EXPECT_EQ(0, pl_runtime_stop());
	check_waits();
	work_run();
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_TRUE(UNTIL(nr_threads() <= nr_threads_before));
}

/* In the caller's place: a child that does @fn; its status. */
static int in_child(void (*fn)(void))
{
	pid_t pid = fork();

	if (!pid) {
		limit_time();
		fn();
		_exit(0);
	}
	EXPECT_LT(0, pid);
	return reap(pid);
}

static void fork_here(void *arg)
{
	EXPECT_EQ(0, in_child(check_new_life));
	nr_ran++;
}

static void *fork_thread(void *arg)
{
	fork_here(arg);
	return NULL;
}

static void start(void)
{
	start_with(2, 0);
	work_run();
}

/* ---- from where ---- */
TEST_REAL(fork, "other processes are not simulated")
TEST_F(fork, fork_in_a_thread_leaves_a_usable_child)
{
	pthread_t thread;

	start();
	fork_here(NULL);
	pthread_create(&thread, NULL, fork_thread, NULL);
	pthread_join(thread, NULL);
	EXPECT_EQ(2, nr_ran);
	work_run();
}

TEST_F(fork, fork_in_a_task_leaves_a_usable_child)
{
	start();
	run_as(PL_STACK_NORMAL, fork_here, NULL);
	run_as(PL_STACK_LARGE, fork_here, NULL);
	EXPECT_EQ(2, nr_ran);
	work_run();
}

static void check_no_group(void)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	check_new_life();
	EXPECT_EQ(0, pl_runtime_start(NULL));
	opts.group = PL_GROUP_DEFAULT + 1;
	EXPECT_EQ(-EINVAL, pl_spawn(NULL, count, NULL, &opts));
	EXPECT_EQ(0, pl_runtime_stop());
}

static void fork_without_groups(void *arg)
{
	EXPECT_EQ(0, in_child(check_no_group));
	nr_ran++;
}

TEST_F(fork, fork_in_a_group_leaves_a_usable_child)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t;

	start();
	ASSERT_EQ(0, pl_group_create(&opts.group, NULL));
	ASSERT_EQ(0, pl_spawn(&t, fork_without_groups, NULL, &opts));
	join(t);
	EXPECT_EQ(1, nr_ran);
	work_run();
}

TEST_F(fork, fork_on_the_worker_stack_leaves_a_usable_child)
{
	start();
	run_as(PL_STACK_WORKER, fork_here, NULL);
	EXPECT_EQ(1, nr_ran);
	work_run();
}

TEST_F(fork, fork_in_a_timer_leaves_a_usable_child)
{
	start();
	ASSERT_EQ(0, pl_timer_add(NULL, 0, fork_here, NULL));
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	work_run();
}

/*
 * One by one: emulators do not fork from two threads at a time. Two of those
 * that come: workers, or the timer thread.
 */
static void fork_in_turn(void *arg)
{
	static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
	static atomic_int nr_turns;

	if (nr_turns++ >= 2)
		return;
	pthread_mutex_lock(&turn);
	EXPECT_TRUE(UNTIL(may_end));
	fork_here(arg);
	pthread_mutex_unlock(&turn);
}

TEST_F(fork, fork_in_a_worker_hook_leaves_a_usable_child)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	start_with(2, 0);
	EXPECT_EQ(0, pl_runtime_stop());
	cfg.worker_start = fork_in_turn;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	may_end = 1;
	EXPECT_TRUE(UNTIL(nr_ran >= 2));
	work_run();
}

TEST_F(fork, fork_before_the_start_leaves_a_usable_child)
{
	fork_here(NULL);
	EXPECT_EQ(0, pl_runtime_start(NULL));
	EXPECT_EQ(0, pl_runtime_stop());
	fork_here(NULL);
	EXPECT_EQ(2, nr_ran);
}

static void have_grandchildren(void)
{
	static int generation;

	if (++generation == 4)
		return;
	start_with(2, 0);
	work_run();
	EXPECT_EQ(0, in_child(have_grandchildren));
	run_in_task(fork_here, NULL);
	EXPECT_EQ(1, nr_ran);
	nr_ran = 0;
	work_run();
	EXPECT_EQ(0, pl_runtime_stop());
}

TEST_F(fork, forked_child_may_fork)
{
	EXPECT_EQ(0, in_child(have_grandchildren));
}

/* ---- while others are at it ---- */

static void make_noise(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_timer_t timer;
	pl_task_t t;
	uint32_t i;

	for (i = 0; !may_end; i++) {
		opts.stack = i % 4;
		ASSERT_EQ(0, pl_spawn(&t, count, NULL, &opts));
		pl_mutex_lock(&mutex);
		pl_cond_broadcast(&cond);
		pl_mutex_unlock(&mutex);
		pl_word_wake(&word, 1);
		pl_sleep(NSEC_PER_USEC);
		if (!pl_timer_add(&timer, in_ms(1), count, NULL))
			pl_timer_del(timer);
		pl_word_wait(&word, 0, pl_now() + NSEC_PER_USEC);
		EXPECT_EQ(0, pl_join(t));
	}
}

static void wait_for_cond(void *arg)
{
	pl_mutex_lock(&mutex);
	while (!may_end)
		pl_cond_wait(&cond, &mutex);
	pl_mutex_unlock(&mutex);
}

static void end_noise(struct mixed *noise, struct mixed *waiting)
{
	pl_mutex_lock(&mutex);
	may_end = 1;
	pl_cond_broadcast(&cond);
	pl_mutex_unlock(&mutex);
	mixed_join(noise);
	mixed_join(waiting);
}

TEST_F_TIMEOUT(fork, fork_under_load_leaves_a_usable_child, 120)
{
	static struct mixed noise, waiting;
	int i, nr = scaled(40);

	/* A lock of the emulator's, held by a gone thread, hung the child. */
	if (getenv("TEST_EMULATED"))
		SKIP(return, "the emulator cannot fork while others run");
	start_with(2, 0);
	mixed_start(&noise, 4, 2, make_noise, NULL);
	mixed_start(&waiting, 4, 2, wait_for_cond, NULL);
	for (i = 0; i < nr && !__test_get(_metadata->state->failed); i++) {
		fork_here(NULL);
		run_as((uint32_t)i % 4, fork_here, NULL);
	}
	end_noise(&noise, &waiting);
	work_run();
}

/* As if another thread held it at that moment. */
static struct pl__lock *held;

static void fork_under_lock(void)
{
	pl__lock(held);
	fork_here(NULL);
	pl__unlock(held);
}

TEST_F(fork, fork_leaves_held_locks_held)
{
	struct pl__lock *locks[] = {
		&pl__rt.start_lock, &pl__rt.stackless.lock, &pl__rt.tasks.lock,
	};
	size_t i;

	start();
	for (i = 0; i < ARRAY_SIZE(locks); i++) {
		held = locks[i];
		fork_under_lock();
	}
	EXPECT_EQ(ARRAY_SIZE(locks), nr_ran);
}

/* ---- what is the child's, and what is not ---- */

static pl_task_t task;
static pl_timer_t timer;

static void check_stale(void)
{
	EXPECT_EQ(-ENOENT, pl_timer_del(timer));
	EXPECT_EQ(0, pl_join(task));
	EXPECT_EQ(-ESRCH, pl_cancel(task));
	EXPECT_EQ(-ESRCH, pl_interrupt(task));
}

static void check_handles(void)
{
	int i;

	check_stale();
	EXPECT_EQ(0, pl_runtime_start(NULL));
	for (i = 0; i < 1000; i++)
		EXPECT_NE(task, spawn(count, NULL));
	check_stale();
	EXPECT_EQ(0, pl_runtime_stop());
}

static void sleep_for_ever(void *arg)
{
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
}

TEST_F(fork, handles_of_the_parent_are_stale_in_the_child)
{
	start_with(2, 0);
	task = spawn(sleep_for_ever, NULL);
	ASSERT_EQ(0, pl_timer_add(&timer, PL_FOREVER, count, NULL));
	EXPECT_EQ(0, in_child(check_handles));
	EXPECT_EQ(0, pl_timer_del(timer));
	EXPECT_EQ(0, pl_cancel(task));
	EXPECT_EQ(0, pl_join(task));
}

static _Atomic bool has_ended;

static void tick(void *arg)
{
	nr_ran++;
	if (may_end)
		has_ended = true;
	else
		EXPECT_EQ(0, pl_timer_add(NULL, in_ms(1), tick, arg));
}

static void check_no_ticks(void)
{
	int before = nr_ran;

	EXPECT_EQ(0, pl_runtime_start(NULL));
	EXPECT_EQ(0, pl_sleep(5 * NSEC_PER_MSEC));
	EXPECT_EQ(before, nr_ran);
	EXPECT_EQ(0, pl_runtime_stop());
}

TEST_F(fork, timers_fire_in_the_parent_only)
{
	int before;

	start_with(2, 0);
	tick(NULL);
	EXPECT_EQ(0, in_child(check_no_ticks));
	before = nr_ran;
	EXPECT_TRUE(UNTIL(nr_ran > before));
	may_end = 1;
	EXPECT_TRUE(UNTIL(has_ended));
}

/* sysmon opens a descriptor for each worker that it looks at. */
static bool is_sysmon_asleep(void)
{
	return !rt_has_sysmon() ||
	       atomic_load(&pl__rt.sysmon) == PL__SYSMON_ASLEEP;
}

static int fds_before;

/* Else the parent's rings would live as long as its children. */
static void check_descriptors(void)
{
	EXPECT_EQ(fds_before, nr_fds());
}

TEST_F(fork, forked_child_inherits_no_descriptors)
{
	fds_before = nr_fds();
	start_with(2, 0);
	work_run();
	ASSERT_TRUE(UNTIL(is_sysmon_asleep()));
	EXPECT_LE(fds_before, nr_fds());
	EXPECT_EQ(0, in_child(check_descriptors));
	work_run();
}

static sigset_t mask_before;

static void check_mask(void)
{
	sigset_t mask;
	int sig;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (sig = 1; sig < 32; sig++)
		if (sig != SIGALRM)
			EXPECT_EQ(sigismember(&mask_before, sig),
				  sigismember(&mask, sig));
}

static void fork_for_mask(void *arg)
{
	EXPECT_EQ(0, in_child(check_mask));
	nr_ran++;
}

/* Workers block signals; what a child of theirs executes must not. */
TEST_F(fork, forked_child_keeps_the_signal_mask)
{
	sigemptyset(&mask_before);
	sigaddset(&mask_before, SIGUSR2);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
	start_with(2, 0);
	fork_for_mask(NULL);
	run_in_task(fork_for_mask, NULL);
	run_as(PL_STACK_WORKER, fork_for_mask, NULL);
	ASSERT_EQ(0, pl_timer_add(NULL, 0, fork_for_mask, NULL));
	EXPECT_TRUE(UNTIL(nr_ran == 4));
}

/* ---- the end of a child ---- */

static int end_said;

static void fork_and_end(void *arg)
{
	pid_t pid = fork();

	if (!pid) {
		limit_time();
		check_nothing_runs();
		if (__test_get(_metadata->state->failed))
			_exit(1);
		if (arg)
			pl_exit();
		return;
	}
	end_said = reap(pid);
	nr_ran++;
}

/* As the last thread of a process does. */
TEST_F(fork, child_of_a_task_ends_with_the_function)
{
	static int by_exit;
	uint32_t stack;

	start_with(2, 0);
	for (stack = 0; stack <= PL_STACK_WORKER; stack++) {
		end_said = -1;
		run_as(stack, fork_and_end, NULL);
		EXPECT_EQ(0, end_said);
		end_said = -1;
		run_as(stack, fork_and_end, &by_exit);
		EXPECT_EQ(0, end_said);
	}
	nr_ran = 0;
	end_said = -1;
	ASSERT_EQ(0, pl_timer_add(NULL, 0, fork_and_end, NULL));
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	EXPECT_EQ(0, end_said);
}

/* ---- where the library calls functions of the program's ---- */

static atomic_int nr_items, in_forked;

static void fork_and_return(void)
{
	fork_and_end(NULL);
	in_forked = !pl_self();
}

static intptr_t fork_in_child(void *arg)
{
	fork_and_return();
	return 0;
}

static void fork_in_destructor(void *value)
{
	(void)value;
	fork_and_return();
}

/* It would execute the items that are left, as the parent does. */
static void fork_in_queue(void **items, size_t nr, void *arg)
{
	if (in_forked)
		_exit(1);
	nr_items += (int)nr;
	if (*items)
		fork_and_return();
}

static void set_key(void *arg)
{
	EXPECT_EQ(0, pl_key_set(*(pl_key_t *)arg, arg));
}

static void run_scope(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(0, pl_scope_spawn(&s, NULL, fork_in_child, NULL, NULL));
	EXPECT_EQ(0, pl_scope_leave(&s));
}

static void run_queue(void *arg)
{
	struct pl_queue *q;
	int i;

	ASSERT_EQ(0, pl_queue_create(&q, fork_in_queue, NULL));
	EXPECT_EQ(0, pl_queue_push(q, arg));
	for (i = 0; i < 200; i++)
		EXPECT_EQ(0, pl_queue_push(q, NULL));
	EXPECT_EQ(0, pl_queue_close(q));
	EXPECT_EQ(0, pl_queue_join(q));
	EXPECT_EQ(201, nr_items);
}

TEST_F(fork, child_of_a_function_that_the_library_calls_ends_with_it)
{
	void (*const fns[])(void *arg) = { run_scope, run_queue, set_key };
	pl_key_t key;
	uint32_t i, stack;

	start_with(1, 0);
	ASSERT_EQ(0, pl_key_create(&key, fork_in_destructor));
	for (i = 0; i < ARRAY_SIZE(fns); i++)
		for (stack = 0; stack <= PL_STACK_WORKER; stack++) {
			end_said = -1;
			nr_items = 0;
			run_as(stack, fns[i], &key);
			EXPECT_EQ(0, end_said);
		}
	EXPECT_EQ(0, pl_key_delete(key));
}

TEST_HARNESS_MAIN
