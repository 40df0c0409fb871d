/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory, mappings, descriptors and threads that cannot be had: each call of
 * the library is made with the first, the second ... the last thing that it
 * takes being refused.  Then it says so, or keeps its promise all the same;
 * nothing is left behind; and the runtime goes on.
 *
 * Each trial has a process of its own, so that what is done once a process is
 * refused too.  The linker knows the places where something is taken: one that
 * no trial got to is a failure.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "base/inject.h"
#include "work.h"
#ifdef PL_TEST_FAULT
# include "nomem.h"
# include "nomem_ops.h"
# include "nomem_nouns.h"
#endif

#include <sys/syscall.h>

#ifndef PL_TEST_FAULT

TEST(work_without_faults_is_done)
{
	SKIP(return, "no faults in this build");
}

#else

#define WANT		{ -ENOMEM, -EAGAIN }
#define WANT_FILE	{ -ENOMEM, -EAGAIN, -EMFILE }

static const struct op start_ops[] = {
	{ "start", NEW, op_start, WANT },
	{ "start_many", NEW, op_start_many, WANT },
	{ "start_dumper", NEW, op_start_dumper, WANT },
	{ "start_module", NEW, op_start_module, { -ENOMEM, -EAGAIN, -ENODEV } },
	{ "start_by_spawn", NEW, op_spawn, WANT },
	{ "start_by_timer", NEW, op_timer_add, WANT },
	{ "stop", THREAD, op_stop, { 0 } },
	{ "stop_from_timer", THREAD, op_stop_from_timer, WANT },
	{ "stat", THREAD, op_stat, { 0 } },
};

static const struct op task_ops[] = {
	{ "spawn", THREAD, op_spawn, WANT },
	{ "spawn", TASK, op_spawn, WANT },
	{ "spawn", WORKER_TASK, op_spawn, WANT },
	{ "spawn_small", THREAD, op_spawn_small, WANT },
	{ "spawn_large", THREAD, op_spawn_large, WANT },
	{ "spawn_worker", THREAD, op_spawn_worker, WANT },
	{ "spawn_urgent", TASK, op_spawn_urgent, WANT },
	{ "trim", TASK, op_trim, WANT },
	{ "age", THREAD, op_age, { 0 } },
	{ "shrink", TASK, op_shrink, WANT },
	{ "flush", THREAD, op_flush, WANT },
	{ "flush", TASK, op_flush, WANT },
	{ "spawn_many", THREAD, op_spawn_many, WANT },
	{ "spawn_many", TASK, op_spawn_many, WANT },
	{ "notify", THREAD, op_notify, WANT },
	{ "notify_blocked", WORKER_TASK, op_notify_blocked, WANT },
	{ "join", THREAD, op_join, WANT },
	{ "join", TASK, op_join, { 0 } },
	{ "join_until", TASK, op_join_until, WANT },
	{ "sleep", THREAD, op_sleep, WANT },
	{ "sleep", TASK, op_sleep, WANT },
	{ "sleep", WORKER_TASK, op_sleep, { 0 } },
	{ "sleep_again", TASK, op_sleep_again, WANT },
	{ "interrupt", THREAD, op_interrupt, { 0 } },
	{ "cancel", THREAD, op_cancel, { 0 } },
	{ "cancel", TASK, op_cancel, { 0 } },
};

static const struct op sync_ops[] = {
#if !RT_ASAN	/* its memory may be locked in the child */
	{ "fork", THREAD, op_fork, { 0 } },
#endif
	{ "timer_add", THREAD, op_timer_add, WANT },
	{ "timer_add", TASK, op_timer_add, WANT },
	{ "timer_del", THREAD, op_timer_del, WANT },
	{ "timers", THREAD, op_timers, WANT },
	{ "word_wait", THREAD, op_word_wait, WANT },
	{ "word_wait", TASK, op_word_wait, WANT },
	{ "word_requeue", THREAD, op_word_requeue, { 0 } },
	{ "mutex_lock", THREAD, op_mutex_lock, { 0 } },
	{ "mutex_lock", TASK, op_mutex_lock, { 0 } },
	{ "mutex_lock_until", THREAD, op_mutex_lock_until, WANT },
	{ "mutex_lock_until", TASK, op_mutex_lock_until, WANT },
	{ "cond_wait", THREAD, op_cond_wait, WANT },
	{ "cond_wait", TASK, op_cond_wait, { 0 } },
	{ "cond_wait_until", TASK, op_cond_wait_until, WANT },
};

static const struct op io_ops[] = {
	{ "read", THREAD, op_read, WANT },
	{ "read", TASK, op_read, WANT },
	{ "read", WORKER_TASK, op_read, WANT },
	{ "read_polled", THREAD, op_read_polled, WANT },
	{ "read_polled", TASK, op_read_polled, WANT },
	{ "read_until", TASK, op_read_until, WANT },
	{ "recv", TASK, op_recv, WANT },
	{ "write", TASK, op_write, WANT },
	{ "send", TASK, op_send, WANT },
	{ "poll_half_closed", TASK, op_poll_half_closed, WANT_FILE },
	{ "poll_many", TASK, op_poll_many, WANT_FILE },
	{ "close", THREAD, op_close, { 0 } },
	{ "close", TASK, op_close, { 0 } },
	{ "io_wait", TASK, op_io_wait, WANT },
	{ "io_wait_linked", THREAD, op_io_wait_linked, WANT },
	{ "io_wait_linked", TASK, op_io_wait_linked, WANT },
	{ "connect", TASK, op_connect, WANT },
	{ "getaddrinfo", NEW, op_getaddrinfo, WANT },
	{ "getaddrinfo", THREAD, op_getaddrinfo, WANT },
	{ "getaddrinfo", TASK, op_getaddrinfo, WANT },
	{ "getnameinfo", TASK, op_getnameinfo, WANT },
};

static const struct op noun_ops[] = {
	{ "key_set", THREAD, op_key_set_thread, WANT },
	{ "key_set", TASK, op_key_set, WANT },
	{ "key_set", WORKER_TASK, op_key_set, WANT },
	{ "chan", THREAD, op_chan, WANT },
	{ "chan", TASK, op_chan, WANT },
	{ "queue", THREAD, op_queue, WANT },
	{ "queue", TASK, op_queue, WANT },
	{ "queue", NEW, op_queue, WANT },
	{ "scope", NEW, op_scope, WANT },
	{ "scope", THREAD, op_scope, WANT },
	{ "scope", TASK, op_scope, WANT },
	{ "scope", WORKER_TASK, op_scope, WANT },
	{ "sem_wait_until", THREAD, op_sem_wait_until, WANT },
	{ "sem_wait_until", TASK, op_sem_wait_until, WANT },
	{ "latch_wait_until", THREAD, op_latch_wait_until, WANT },
	{ "latch_wait_until", TASK, op_latch_wait_until, WANT },
	{ "rwlock_until", THREAD, op_rwlock_until, WANT },
	{ "rwlock_until", TASK, op_rwlock_until, WANT },
	{ "once", THREAD, op_once, { 0 } },
	{ "once", TASK, op_once, { 0 } },
	{ "set_workers", NEW, op_set_workers, WANT },
};

/* ---- trials ---- */

static void prepare(const struct op *op)
{
	if (op->from == NEW)
		return;
	set_env("PARKLOT_WORKERS", 2);
	if (op->run == op_read_polled)
		setenv("PARKLOT_IO", "poll", 1);
	ASSERT_EQ(0, pl_runtime_start(NULL));
	/* What the first worker takes at its start is another trial's. */
	ASSERT_TRUE(UNTIL(rt_stat().parks));
	if (op->run == op_age)
		prepare_age();
	if (op->run == op_join || op->run == op_join_until)
		task = spawn(stay, NULL);
	if (op->run == op_interrupt || op->run == op_cancel) {
		task = spawn(sleep_for_ever, NULL);
		ASSERT_TRUE(UNTIL(is_waiting(task)));
	}
	if (op->run == op_mutex_lock || op->run == op_mutex_lock_until) {
		spawn(hold_mutex, NULL);
		ASSERT_TRUE(UNTIL(nr_ran == 1));
	}
	if (op->run == op_cond_wait || op->run == op_cond_wait_until)
		spawn(signal_cond, NULL);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	if (op->run == op_read || op->run == op_read_until ||
	    op->run == op_recv)
		spawn(send_byte, NULL);
	if (op->run == op_close) {
		fd_to_close = dup(fds[0]);
		spawn(read_closed, NULL);
		ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == 1));
	}
}

static void all_in_turn(const struct op *ops, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		each_in_turn(&ops[i], PL__FAULT_NTH);
}

static const struct group {
	const struct op	*ops;
	size_t		nr;
} groups[] = {
	{ start_ops, ARRAY_SIZE(start_ops) },
	{ task_ops, ARRAY_SIZE(task_ops) },
	{ sync_ops, ARRAY_SIZE(sync_ops) },
	{ io_ops, ARRAY_SIZE(io_ops) },
	{ noun_ops, ARRAY_SIZE(noun_ops) },
};

static void try_group(size_t i)
{
	_Static_assert(ARRAY_SIZE(groups) == ARRAY_SIZE(shared->is_done),
		       "a mark each");
	all_in_turn(groups[i].ops, groups[i].nr);
	shared->is_done[i] = 1;
}

RT_FIXTURE(nomem)

TEST_REAL(nomem, "other processes are not simulated")
TEST_F_TIMEOUT(nomem, failed_start_and_stop_are_reported, 240)
{
	try_group(0);
}

TEST_F_TIMEOUT(nomem, failed_task_calls_are_reported, 240)
{
	try_group(1);
}

TEST_F_TIMEOUT(nomem, failed_timer_and_lock_calls_are_reported, 240)
{
	try_group(2);
}

TEST_F_TIMEOUT(nomem, failed_io_calls_are_reported, 240)
{
	try_group(3);
}

TEST_F_TIMEOUT(nomem, failed_key_channel_and_queue_calls_are_reported, 240)
{
	try_group(4);
}

/* From the first, second ... call on there is nothing at all to be had. */
TEST_F_TIMEOUT(nomem, start_without_memory_fails, 240)
{
	each_in_turn(&start_ops[0], PL__FAULT_FROM);
	each_in_turn(&start_ops[1], PL__FAULT_FROM);
	each_in_turn(&start_ops[2], PL__FAULT_FROM);
}

/* ---- by chance ---- */

static void __attribute__((noreturn)) chance_child(uint32_t n, uint64_t seed)
{
	int ret;

	limit_time();
	clear_env();
	pl__fault_count(shared->hits);
	work.is_hard_up = n;
	pl__fault_plan(n ? PL__FAULT_ONE_IN : PL__FAULT_NONE, n, seed);
	do {
		ret = pl_runtime_start(NULL);
	} while (is_want(ret));
	EXPECT_EQ(0, ret);
	work_run();
	shared->now.was_hit = (int)pl__fault_nr_hits();
	pl__fault_plan(PL__FAULT_NONE, 0, 0);
	work.is_hard_up = false;
	EXPECT_EQ(0, pl_runtime_stop());
	go_on();
	_exit(0);
}

static void chance_trial(uint32_t n, uint64_t seed)
{
	pid_t pid;

	memset(&shared->now, 0, sizeof(shared->now));
	pid = fork();
	if (!pid)
		chance_child(n, seed);
	EXPECT_EQ(0, reap(pid)) {
		TH_LOG("one in %u, seed %llu", n, (unsigned long long)seed);
	}
}

TEST_F_TIMEOUT(nomem, random_failures_leave_the_work_done, 240)
{
	static const struct op op = { .name = "work" };
	int i, nr = scaled(60), nr_hits = 0;
	uint64_t seed = pl_now() | 1;
	struct outcome was;

	chance_trial(0, 0);
	was = shared->now;
	for (i = 0; i < nr && !__test_get(_metadata->state->failed); i++) {
		chance_trial(2 + (uint32_t)i % 20, next_random(&seed));
		compare(&op, (uint32_t)seed, &was);
		nr_hits += shared->now.was_hit;
	}
	EXPECT_LT(nr, nr_hits);
}

/* ---- all of them ---- */

static bool is_in(const struct pl__fault_site *site, const char *file,
		  const char *call)
{
	return strstr(site->file, file) && strstr(site->call, call);
}

/* What only the device has, where there is none. */
static bool may_be_left_out(const struct pl__fault_site *site)
{
	bool has_device = !access(DEVICE, R_OK | W_OK);
	bool has_ring = syscall(SYS_io_uring_setup, 0, NULL) < 0 &&
			errno != ENOSYS && errno != EPERM;

	/* What the child of a fork does. */
	if (RT_ASAN && is_in(site, "wait/wait.c", "advise"))
		return true;
	/* Of an idle stack without a guard; see lib_stack_guard. */
	if (is_in(site, "stack.c", "slot_size"))
		return true;
	/* Of a worker that has been blocked for a while; see lib_sysmon. */
	if (is_in(site, "sysmon.c", "path"))
		return true;
	/* The same, with I/O in flight; see lib_orphan_ring. */
	if (is_in(site, "sysmon_sleep.c", "") ||
	    is_in(site, "notify.c", "eventfd"))
		return true;
	/* Where io_uring_enter() is forbidden; see lib_ring_failure. */
	if (is_in(site, "uring_failure.c", "open"))
		return true;
	/* Of a task that runs while it is dumped; see lib_dump_worker. */
	if (is_in(site, "thread_state.c", ""))
		return true;
	/* Where all CPUs are as near, no file is read; see lib_topology. */
	if (is_in(site, "topology.c", "") && pl__cpus_usable() <= 2)
		return true;
	/* A hierarchy of groups, or a quota, that this machine has not. */
	if (is_in(site, "config.c", "path"))
		return true;
	return (!has_device && is_in(site, "lot_dev.c", "")) ||
	       (!has_ring && is_in(site, "ring_uring.c", ""));
}

static bool is_left_out(const struct pl__fault_site *sites, size_t i)
{
	return !shared->hits[i] && !may_be_left_out(&sites[i]);
}

static size_t nr_left_out(const struct pl__fault_site *sites, size_t nr)
{
	size_t i, nr_out = 0;

	for (i = 0; i < nr; i++)
		nr_out += is_left_out(sites, i);
	return nr_out;
}

/*
 * Run alone, it has to do the others' work first.  The scheduler decides which
 * task takes the first, the second ... thing: a place may need another round.
 */
TEST_F_TIMEOUT(nomem, each_faulty_call_is_made_to_fail, 240)
{
	const struct pl__fault_site *sites;
	size_t i, nr = pl__fault_sites(&sites);

	ASSERT_GE(SITES_MAX, nr);
	ASSERT_LT(20, nr);
	for (i = 0; i < ARRAY_SIZE(groups); i++)
		if (!shared->is_done[i])
			try_group(i);
	for (i = 0; i < 7 * ARRAY_SIZE(groups) && nr_left_out(sites, nr); i++)
		try_group(i % ARRAY_SIZE(groups));
	for (i = 0; i < nr; i++) {
		EXPECT_FALSE(is_left_out(sites, i)) {
			TH_LOG("%s:%llu never failed: %s", sites[i].file,
			       (unsigned long long)sites[i].line,
			       sites[i].call);
		}
	}
}

#endif

TEST_HARNESS_MAIN
