/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks: spawn, join, and how they end; and their handles, good ones, stale
 * ones, and such as never were.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "run/run.h"

#include <alloca.h>
#include <sys/syscall.h>

RT_FIXTURE(task)

/* ---- spawn and join ---- */

TEST_F(task, spawn_by_a_thread_starts_the_runtime)
{
	pl_task_t t = 0;

	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	ASSERT_EQ(0, pl_spawn(&t, count, NULL, NULL));
	EXPECT_NE(0, t);
	EXPECT_NE(PL_BACKEND_AUTO, pl_runtime_backend());
	EXPECT_EQ(0, pl_join(t));
	EXPECT_EQ(1, nr_ran);
}

TEST_F(task, task_is_joined_any_number_of_times)
{
	pl_task_t t = spawn(nothing, NULL);
	int i;

	for (i = 0; i < 100; i++)
		EXPECT_EQ(0, pl_join(t));
	for (i = 0; i < 1000; i++)
		run_in_task(nothing, NULL);
	EXPECT_EQ(0, pl_join(t));
	EXPECT_EQ(0, pl_join_until(t, 0));
}

static void join_self(void *arg)
{
	EXPECT_EQ(-EDEADLK, pl_join(pl_self()));
	EXPECT_EQ(-EDEADLK, pl_join_until(pl_self(), 0));
}

TEST_F(task, join_of_itself_is_edeadlk)
{
	run_in_task(join_self, NULL);
	run_as(PL_STACK_WORKER, join_self, NULL);
}

/* ---- the end ---- */

static void __attribute__((noinline)) exit_nested(int depth)
{
	volatile char frame[64];

	frame[0] = 0;
	if (!depth)
		pl_exit();
	else
		exit_nested(depth - 1);
	frame[1] = frame[0];
	nr_ran += 1000;
}

static void exit_deep_down(void *arg)
{
	nr_ran++;
	exit_nested(20);
}

TEST_F(task, exit_from_any_depth_ends_the_task)
{
	uint32_t cls;
	int i;

	for (i = 0; i < 100; i++)
		for (cls = 0; cls <= PL_STACK_WORKER; cls++)
			run_as(cls, exit_deep_down, NULL);
	EXPECT_EQ(400, nr_ran);
}

TEST_F(task, exit_outside_a_task_does_nothing)
{
	pl_exit();
	run_in_task(count, NULL);
	pl_exit();
	EXPECT_EQ(1, nr_ran);
}

/* ---- urgent ---- */

struct urgent {
	pid_t		caller;
	pl_task_t	handle;
	int		nr_ok;
};

static pid_t __attribute__((noinline)) thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static void be_urgent(void *arg)
{
	struct urgent *u = arg;

	EXPECT_EQ(u->caller, thread_id());
	EXPECT_EQ(u->handle, pl_self());
	u->nr_ok++;
}

static void spawn_urgent(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int i, *is_alone = arg;
	struct urgent u = { 0 };
	uint32_t cls;

	opts.flags = PL_SPAWN_URGENT;
	for (i = 0; i < 100; i++) {
		for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
			opts.stack = cls;
			u.nr_ok = 0;
			u.caller = thread_id();
			ASSERT_EQ(0, pl_spawn(&u.handle, be_urgent, &u, &opts));
			if (*is_alone)
				EXPECT_EQ(1, u.nr_ok);
			join(u.handle);
			EXPECT_EQ(1, u.nr_ok);
		}
	}
}

TEST_F(task, urgent_task_runs_at_once_on_this_worker)
{
	int is_alone = 0;

	run_in_task(spawn_urgent, &is_alone);
}

TEST_F(task, urgent_task_runs_before_its_caller)
{
	int is_alone = 1;

	start_with(1, 1);
	run_in_task(spawn_urgent, &is_alone);
}

TEST_F(task, urgent_spawn_by_a_thread_is_ordinary)
{
	join(spawn_flags(PL_SPAWN_URGENT, count, NULL));
	EXPECT_EQ(1, nr_ran);
}

/* ---- bad arguments ---- */

static void spawn_badly(void *arg)
{
	static const uint32_t refused[] = {
		PL_SPAWN_BACKGROUND << 1,
		PL_SPAWN_BACKGROUND | PL_SPAWN_URGENT,
		PL_SPAWN_BACKGROUND | PL_SPAWN_BLOCKING,
		PL_SPAWN_BLOCKING | PL_SPAWN_URGENT,
	};
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t = 77;
	size_t i;

	EXPECT_EQ(-EINVAL, pl_spawn(&t, NULL, NULL, NULL));
	opts.size = 0;
	EXPECT_EQ(-EINVAL, pl_spawn(&t, count, NULL, &opts));
	opts.size = sizeof(opts) - 1;
	EXPECT_EQ(-EINVAL, pl_spawn(&t, count, NULL, &opts));
	opts.size = sizeof(opts);
	opts.stack = PL_STACK_WORKER + 1;
	EXPECT_EQ(-EINVAL, pl_spawn(&t, count, NULL, &opts));
	opts.stack = PL_STACK_NORMAL;
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		opts.flags = refused[i];
		EXPECT_EQ(-EINVAL, pl_spawn(&t, count, NULL, &opts));
		EXPECT_EQ(-EINVAL, pl_spawn_many(&t, 1, count, NULL, &opts));
	}
	opts.flags = PL_SPAWN_URGENT;
	EXPECT_EQ(-EINVAL, pl_spawn_many(&t, 1, count, NULL, &opts));
	EXPECT_EQ(-EINVAL, pl_spawn_many(&t, 1, NULL, NULL, NULL));
	EXPECT_EQ(77, t);
}

TEST_F(task, bad_arguments_are_refused)
{
	uint64_t nr;

	spawn_badly(NULL);
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	nr = rt_stat().tasks_spawned;
	run_in_task(spawn_badly, NULL);
	EXPECT_EQ(nr + 1, rt_stat().tasks_spawned);
	EXPECT_EQ(0, nr_ran);
}

/* ---- names and stacks ---- */

static void check_name(void *arg)
{
	EXPECT_STREQ(arg, pl__task_name(pl__task_slot(pl_self())));
}

TEST_F(task, name_is_copied_to_15_bytes)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	char name[] = "a name of twenty byte";
	pl_task_t t;

	start_with(1, 1);
	opts.name = name;
	opts.flags = PL_SPAWN_NOSIGNAL;
	ASSERT_EQ(0, pl_spawn(&t, check_name, "a name of twent", &opts));
	memset(name, 'x', sizeof(name));
	EXPECT_EQ(1, pl_flush());
	join(t);
	run_in_task(check_name, "");
}

static void __attribute__((noinline)) use_stack(size_t size)
{
	volatile char *p = alloca(size);
	size_t i;

	for (i = 0; i < size; i += 512)
		p[i] = 1;
	p[size - 1] = 1;
	pl_yield();
	EXPECT_EQ(1, p[0]);
}

static void use_all_of_stack(void *arg)
{
	use_stack((uintptr_t)arg - 8192);
}

TEST_F(task, task_may_use_its_stack_but_for_8_kib)
{
	static const size_t size[] = { 256 << 10, 32 << 10, 8 << 20 };
	uint32_t cls;
	int i;

	for (i = 0; i < 3; i++)
		for (cls = 0; cls < 3; cls++)
			run_as(cls, use_all_of_stack,
			       (void *)(uintptr_t)size[cls]);
}

TEST_F(task, task_may_use_the_configured_stack)
{
	static const size_t size[] = { 1 << 20, 64 << 10, 128 << 10 };
	struct pl_config cfg = PL_CONFIG_INIT;
	uint32_t cls;

	memcpy(cfg.stack_size, size, sizeof(size));
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	for (cls = 0; cls < 3; cls++)
		run_as(cls, use_all_of_stack, (void *)(uintptr_t)size[cls]);
}

/* ---- handles ---- */

RT_FIXTURE(handle)

static void no_task_is_invalid(void *arg)
{
	EXPECT_EQ(-EINVAL, pl_join(0));
	EXPECT_EQ(-EINVAL, pl_join_until(0, PL_FOREVER));
	EXPECT_EQ(-EINVAL, pl_interrupt(0));
	EXPECT_EQ(-EINVAL, pl_cancel(0));
}

TEST_F(handle, handle_0_is_invalid)
{
	no_task_is_invalid(NULL);
	mixed_run(1, 1, no_task_is_invalid, NULL);
}

static void look_at(pl_task_t t, int join_says)
{
	EXPECT_EQ(join_says, pl_join(t));
	EXPECT_EQ(join_says, pl_join_until(t, 0));
	EXPECT_EQ(-ESRCH, pl_interrupt(t));
	EXPECT_EQ(-ESRCH, pl_cancel(t));
	EXPECT_EQ(0, pl_sleep(1));
}

static void look_at_stale(void *arg)
{
	look_at(*(pl_task_t *)arg, 0);
}

TEST_F(handle, stale_handle_is_refused)
{
	pl_task_t t = spawn(nothing, NULL);

	join(t);
	look_at_stale(&t);
	run_in_task(look_at_stale, &t);
}

static void look_at_invented(void *arg)
{
	look_at(*(pl_task_t *)arg, -ESRCH);
}

TEST_F(handle, invented_handle_is_of_no_task)
{
	/* No such slot, with versions that are odd and even; even of slot 0. */
	static pl_task_t invented[] = {
		0x7fffffff00000001ULL, 0xffffffffffffffffULL, 1,
		0x1ffffffffULL, 0x200000000ULL,
	};
	pl_task_t next = spawn(nothing, NULL) + (2ULL << 32);
	size_t i;

	join(next - (2ULL << 32));
	for (i = 0; i < ARRAY_SIZE(invented); i++) {
		look_at_invented(&invented[i]);
		run_in_task(look_at_invented, &invented[i]);
	}
	look_at_invented(&next);
}

/* As if the slot of @h, which is free, had been used 2^31 times less one. */
static void use_slot_for_long(pl_task_t h)
{
	struct pl__task *t = pl__task_slot(h);

	EXPECT_EQ(0, atomic_load(&t->version) % 2);
	atomic_store(&t->version, UINT32_MAX - 1);
}

static void use_slot_to_its_end(void *arg)
{
	pl_task_t first, last, next;

	first = spawn(nothing, NULL);
	join(first);
	use_slot_for_long(first);
	last = spawn(nothing, NULL);
	EXPECT_EQ((uint32_t)first, (uint32_t)last);
	EXPECT_EQ(UINT32_MAX, last >> 32);
	EXPECT_EQ(0, pl_interrupt(last));
	join(last);
	EXPECT_EQ(-ESRCH, pl_cancel(last));

	next = spawn(nothing, NULL);
	EXPECT_EQ((uint32_t)first, (uint32_t)next);
	EXPECT_NE(0, next);
	EXPECT_EQ(1, next >> 32);
	EXPECT_EQ(-ESRCH, pl_interrupt(last));
	EXPECT_EQ(0, pl_join(last));
	EXPECT_EQ(0, pl_cancel(next));
	join(next);
}

TEST_F(handle, slot_is_reused_2_to_the_31_times)
{
	/* Another worker would have free slots of its own. */
	start_with(1, 1);
	run_in_task(use_slot_to_its_end, NULL);
}

static void tell_self(void *arg)
{
	*(pl_task_t *)arg = pl_self();
	pl_yield();
	EXPECT_EQ(*(pl_task_t *)arg, pl_self());
}

TEST_F(handle, self_is_the_handle_from_spawn)
{
	pl_task_t t, seen;
	uint32_t cls;

	EXPECT_EQ(0, pl_self());
	for (cls = 0; cls <= PL_STACK_WORKER; cls++) {
		t = spawn_as(cls, tell_self, &seen);
		join(t);
		EXPECT_EQ(t, seen);
	}
}

TEST_HARNESS_MAIN
