/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_getaddrinfo() and pl_getnameinfo(): the resolver blocks the task only, and
 * is left at its work by a caller that gives up.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "dump.h"
#include "group.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "io/proxy_call.h"
#include "resolver.h"

FIXTURE(names) { char unused; };

FIXTURE_SETUP(names)
{
	rt_begin(_metadata);
	make_gate();
}

FIXTURE_TEARDOWN(names)
{
	rt_end();
	EXPECT_EQ(0, nr_lists);
	EXPECT_EQ(0, nr_inside);
}

/* ---- found ---- */

static int look_up(const char *node, const char *service, int *eai,
		   uint64_t deadline)
{
	struct addrinfo *list = NULL;
	int ret = pl_getaddrinfo_until(node, service, NULL, &list, eai,
				       deadline);

	EXPECT_EQ(!ret, !!list);
	if (!list)
		return ret;
	EXPECT_EQ(AF_INET, list->ai_family);
	freeaddrinfo(list);
	return ret;
}

static void find_name(void *arg)
{
	int eai = 1, before = nr_calls;

	EXPECT_EQ(0, look_up("host", NULL, &eai, PL_FOREVER));
	EXPECT_EQ(0, eai);
	EXPECT_EQ(before + 1, nr_calls);
	EXPECT_EQ(0, look_up("127.0.0.1", "http", NULL, PL_FOREVER));
	EXPECT_EQ(before + 2, nr_calls);
}

TEST_F(names, tasks_and_threads_find_names)
{
	find_name(NULL);
	run_in_task(find_name, NULL);
	run_as(PL_STACK_SMALL, find_name, NULL);
	run_as(PL_STACK_WORKER, find_name, NULL);
}

static void find_numbers(void *arg)
{
	EXPECT_EQ(0, look_up("127.0.0.1", NULL, NULL, PL_FOREVER));
	EXPECT_EQ(0, look_up("127.0.0.1", "80", NULL, 0));
	EXPECT_EQ(0, look_up(NULL, "80", NULL, 0));
	EXPECT_EQ(0, nr_calls);
}

TEST_F(names, numbers_are_looked_up_nowhere)
{
	find_numbers(NULL);
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	run_in_task(find_numbers, NULL);
}

static void find_errors(void *arg)
{
	struct addrinfo *list = (struct addrinfo *)8;
	int eai = 1;

	errno = EXDEV;
	EXPECT_EQ(-ENXIO, look_up("none", NULL, &eai, PL_FOREVER));
	EXPECT_EQ(EAI_NONAME, eai);
	EXPECT_EQ(-ENXIO, look_up("none", NULL, NULL, PL_FOREVER));
	EXPECT_EQ(-ENOMEM, look_up("memory", NULL, &eai, PL_FOREVER));
	EXPECT_EQ(EAI_MEMORY, eai);
	EXPECT_EQ(-ENOTTY, look_up("system", NULL, &eai, PL_FOREVER));
	EXPECT_EQ(EAI_SYSTEM, eai);
	EXPECT_EQ(-ETIMEDOUT, look_up("host", NULL, &eai, 0));
	EXPECT_EQ(0, eai);
	eai = 1;
	EXPECT_EQ(-EINVAL, pl_getaddrinfo("host", NULL, NULL, NULL, &eai));
	EXPECT_EQ(0, eai);
	EXPECT_EQ(-ENXIO, pl_getaddrinfo("none", NULL, NULL, &list, NULL));
	EXPECT_EQ(NULL, list);
	EXPECT_EQ(EXDEV, errno);
}

TEST_F(names, errors_of_the_resolver_are_told_apart)
{
	find_errors(NULL);
	run_in_task(find_errors, NULL);
}

/* ---- given up ---- */

static atomic_int nr_begun, nr_ended, result, reason;

static void wait_at_gate(void *arg)
{
	int eai = 1;

	atomic_fetch_add(&nr_begun, 1);
	result = look_up("gate", NULL, &eai, PL_FOREVER);
	reason = eai;
	atomic_fetch_add(&nr_ended, 1);
}

static void open_gate_and_wait(void)
{
	open_gate();
	EXPECT_TRUE(UNTIL(!nr_inside && !rt_stat().tasks_alive));
	EXPECT_EQ(0, nr_lists);
}

/*
 * Again, where the resolver was not called before the deadline, or not yet: so
 * more than one caller may be inside.
 */
static void give_up_at_deadline(void *arg)
{
	char name[] = "gate-1";
	int eai = 1;

	do {
		EXPECT_EQ(-ETIMEDOUT, look_up(name, NULL, &eai, in_ms(20)));
		EXPECT_EQ(0, eai);
	} while (!nr_inside);
	memset(name, 'x', sizeof(name) - 1);
}

/* A group makes calls of its own, on its own workers. */
TEST_F(names, call_does_not_wait_for_those_of_another_group)
{
	start_alone();
	spawn_in(a, wait_at_gate, NULL);
	EXPECT_TRUE(UNTIL(nr_inside == 1));
	run_in(b, find_name, NULL);
	EXPECT_EQ(1, nr_inside);
	EXPECT_EQ(0, stat_of(a).tasks_ended);
	EXPECT_EQ(0, stat_of(PL_GROUP_DEFAULT).tasks_ended);
	open_gate_and_wait();
	EXPECT_LE(2, stat_of(a).tasks_ended);
	EXPECT_EQ(0, stat_of(PL_GROUP_DEFAULT).tasks_ended);
}

TEST_TIMED(deadline_ends_the_wait_and_not_the_resolver,
	   "an event must come before a deadline")
TEST_F(names, deadline_ends_the_wait_and_not_the_resolver)
{
	run_in_task(give_up_at_deadline, NULL);
	EXPECT_LE(1, nr_inside);
	open_gate_and_wait();
	EXPECT_STREQ("gate-1", last_name);
}

static void look_up_cancelled(void *arg)
{
	EXPECT_EQ(0, pl_cancel(pl_self()));
	EXPECT_EQ(-ECANCELED, look_up("host", NULL, NULL, PL_FOREVER));
	EXPECT_EQ(-ECANCELED, look_up("127.0.0.1", NULL, NULL, PL_FOREVER));
	EXPECT_EQ(0, nr_calls);
}

TEST_F(names, cancelled_task_looks_nothing_up)
{
	run_in_task(look_up_cancelled, NULL);
}

TEST_F(names, stop_ends_the_wait_and_names_the_resolvers_task)
{
	struct pl_stop_report report = PL_STOP_REPORT_INIT;

	NEEDS_DUMP();
	spawn(wait_at_gate, NULL);
	ASSERT_TRUE(UNTIL(nr_inside == 1));
	EXPECT_EQ(-ETIMEDOUT, pl_runtime_stop_until(in_ms(20), NULL));
	EXPECT_TRUE(UNTIL(rt_stat().tasks_alive == 1));
	EXPECT_EQ(1, nr_ended);
	EXPECT_EQ(-ECANCELED, result);
	EXPECT_EQ(-ETIMEDOUT, pl_runtime_stop_until(in_ms(20), &report));
	EXPECT_EQ(1, report.nr_left);
	EXPECT_STREQ("pl-getaddrinfo", report.left[0].name);
	open_gate();
	EXPECT_EQ(0, pl_runtime_stop());
}

/* ---- many ---- */

/* Each step of a crowd takes long with delays. */
#define IS_SLOW		(RT_INJECT || RT_TSAN)
#define NR_CALLERS	(IS_SLOW ? 50 : 200)
#define MAX_WORKERS	(IS_SLOW ? 42 : 258)

static atomic_int nr_ticks;

static void tick(void *arg)
{
	int i;

	for (i = 0; i < 20; i++) {
		EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
		nr_ticks++;
	}
}

TEST_F_TIMEOUT(names, crowd_at_the_resolver_delays_no_others, 120)
{
	pl_task_t t[NR_CALLERS];
	int i;

	setenv("PARKLOT_WATCH", "0", 1);
	start_with(2, MAX_WORKERS);
	for (i = 0; i < NR_CALLERS; i++)
		t[i] = spawn(wait_at_gate, NULL);
	EXPECT_TRUE(UNTIL(nr_inside == (int)pl__proxy_calls_max()));
	run_in_task(tick, NULL);
	EXPECT_EQ(20, nr_ticks);
	EXPECT_EQ(0, nr_ended);
	open_gate();
	for (i = 0; i < NR_CALLERS; i++)
		join(t[i]);
	EXPECT_EQ(NR_CALLERS, nr_calls);
	EXPECT_EQ((MAX_WORKERS - 2) / 2, most_inside);
}

static void give_up_soon(void *arg)
{
	EXPECT_EQ(-ETIMEDOUT, look_up("gate", NULL, NULL, in_ms(50)));
}

/* The others would take the workers that are left for those that give up. */
TEST_F(names, half_of_the_spares_call_the_resolver)
{
	pl_task_t t[10];
	int i;

	setenv("PARKLOT_WATCH", "0", 1);
	start_with(1, 5);
	EXPECT_EQ(2, pl__proxy_calls_max());
	for (i = 0; i < 2; i++)
		spawn(wait_at_gate, NULL);
	ASSERT_TRUE(UNTIL(nr_inside == 2));
	for (i = 0; i < 10; i++)
		t[i] = spawn(give_up_soon, NULL);
	for (i = 0; i < 10; i++)
		join(t[i]);
	open_gate_and_wait();
	EXPECT_EQ(2, nr_calls);
	EXPECT_EQ(2, nr_ended);
}

TEST_F(names, resolver_is_called_without_spares)
{
	start_with(1, 1);
	EXPECT_EQ(1, pl__proxy_calls_max());
	find_name(NULL);
	run_in_task(find_name, NULL);
}

TEST_F(names, limit_of_tasks_refuses_none)
{
	pl_task_t t;

	set_env("PARKLOT_MAX_TASKS", 1);
	t = spawn(find_name, NULL);
	join(t);
	unsetenv("PARKLOT_MAX_TASKS");
}

/* ---- in a race ---- */

static void give_up_or_not(void *arg)
{
	uint64_t seed = (uintptr_t)arg;
	int i, ret;

	for (i = 0; i < scaled(200); i++) {
		ret = look_up("host", NULL, NULL, pl_now() +
			      next_random(&seed) % (200 * NSEC_PER_USEC));
		EXPECT_TRUE(!ret || ret == -ETIMEDOUT || ret == -EINTR);
		atomic_fetch_add(&nr_ended, 1);
	}
}

static atomic_bool is_over;

static void interrupt_at_random(void *arg)
{
	pl_task_t *t = arg;
	uint64_t seed = 1;

	while (!is_over) {
		pl_interrupt(t[next_random(&seed) % 8]);
		pl_sleep(20 * NSEC_PER_USEC);
	}
}

TEST_F_TIMEOUT(names, list_of_each_call_is_freed_once, 120)
{
	pl_task_t t[8], interrupter;
	uintptr_t i;

	start_with(4, 20);
	for (i = 0; i < 8; i++)
		t[i] = spawn(give_up_or_not, (void *)(i + 1));
	interrupter = spawn(interrupt_at_random, t);
	for (i = 0; i < 8; i++)
		join(t[i]);
	is_over = true;
	join(interrupter);
	EXPECT_TRUE(UNTIL(!rt_stat().tasks_alive));
	EXPECT_EQ(8 * scaled(200), nr_ended);
	EXPECT_EQ(0, nr_lists);
}

/* ---- the other way ---- */

static const struct sockaddr_in local = {
	.sin_family = AF_INET,
	.sin_addr.s_addr = 0x0100007f,
};

static int look_up_addr(uint16_t port, char *host, int flags, int *eai,
			uint64_t deadline)
{
	struct sockaddr_in addr = local;
	char service[16] = "";
	int ret;

	addr.sin_port = htons(port);
	ret = pl_getnameinfo_until((struct sockaddr *)&addr, sizeof(addr),
				   host, 16, service, sizeof(service), flags,
				   eai, deadline);
	if (!ret)
		EXPECT_EQ(port, atoi(service));
	return ret;
}

static void find_names_of_addresses(void *arg)
{
	char host[16] = "";
	int eai = 1;

	EXPECT_EQ(0, look_up_addr(80, host, 0, &eai, PL_FOREVER));
	EXPECT_STREQ("local", host);
	EXPECT_EQ(0, eai);
	EXPECT_EQ(-ENXIO, look_up_addr(2, host, 0, &eai, PL_FOREVER));
	EXPECT_EQ(EAI_NONAME, eai);
	EXPECT_EQ(-ETIMEDOUT, look_up_addr(80, host, 0, &eai, 0));
	EXPECT_EQ(0, eai);
	EXPECT_EQ(2, nr_calls);
	EXPECT_EQ(0, look_up_addr(80, host, NI_NUMERICHOST | NI_NUMERICSERV,
				  &eai, 0));
	EXPECT_STREQ("127.0.0.1", host);
	EXPECT_EQ(2, nr_calls);
	EXPECT_EQ(-EINVAL, pl_getnameinfo(NULL, 0, host, 16, NULL, 0, 0,
					  NULL));
	EXPECT_EQ(-EINVAL, pl_getnameinfo((struct sockaddr *)&local, 1000,
					  host, 16, NULL, 0, 0, NULL));
	nr_calls = 0;
}

TEST_F(names, tasks_and_threads_find_names_of_addresses)
{
	find_names_of_addresses(NULL);
	run_in_task(find_names_of_addresses, NULL);
}

static void give_up_address(void *arg)
{
	char host[16] = "unchanged";

	do {
		EXPECT_EQ(-ETIMEDOUT, look_up_addr(1, host, 0, NULL,
						   in_ms(20)));
	} while (!nr_inside);
	open_gate();
	/* The caller itself is left. */
	EXPECT_TRUE(UNTIL(rt_stat().tasks_alive == 1));
	EXPECT_STREQ("unchanged", host);
}

TEST_F(names, name_that_comes_late_is_written_nowhere)
{
	run_in_task(give_up_address, NULL);
}

/* ---- seen ---- */

TEST_F(names, dump_says_what_is_waited_for)
{
	pl_task_t t;

	NEEDS_DUMP();
	t = spawn_named("asker", wait_at_gate, NULL);
	ASSERT_TRUE(UNTIL(nr_inside == 1));
	ASSERT_TRUE(UNTIL(is_waiting(t)));
	ASSERT_NE(NULL, dumped());
	EXPECT_SAYS("asker", "waits for getaddrinfo");
	open_gate();
	join(t);
	EXPECT_EQ(0, result);
}

/* ---- the child of a fork ---- */

TEST_F(names, child_of_a_fork_waits_for_no_call_of_the_parents)
{
	pl_task_t t[2];
	int status;
	pid_t pid;

	if (RT_TSAN || RT_ASAN)
		SKIP(return, "no threads after a fork of several here");
	start_with(1, 3);
	EXPECT_EQ(1, pl__proxy_calls_max());
	t[0] = spawn(wait_at_gate, NULL);
	t[1] = spawn(wait_at_gate, NULL);
	ASSERT_TRUE(UNTIL(nr_inside == 1 && is_waiting(t[1])));
	pid = fork();
	if (!pid) {
		find_name(NULL);
		run_in_task(find_name, NULL);
		_exit(__test_get(_metadata->state->failed));
	}
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	open_gate();
	join(t[0]);
	join(t[1]);
}

TEST_HARNESS_MAIN
