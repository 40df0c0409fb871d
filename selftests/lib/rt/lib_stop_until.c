/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The end of the runtime with a deadline: what is left is named, and the stop
 * can be continued.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "dump.h"

#include <fcntl.h>

RT_FIXTURE(stop_until)

static struct pl_sem sem;
static atomic_int is_running, may_end;

static void wait_in_shield(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, PL_SCOPE_SHIELD));
	EXPECT_EQ(0, pl_sem_wait(&sem));
	EXPECT_EQ(0, pl_scope_leave(&s));
	EXPECT_EQ(-ECANCELED, pl_sem_wait(&sem));
}

static void run_on(void *arg)
{
	is_running = 1;
	while (!may_end)
		sched_yield();
}

static void sleep_on(void *arg)
{
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
}

static const struct pl_stop_left *find(const struct pl_stop_report *r,
				       pl_task_t t)
{
	static const struct pl_stop_left none = { .name = "none" };
	int i;

	for (i = 0; i < PL_STOP_LEFT_MAX; i++)
		if (r->left[i].task == t)
			return &r->left[i];
	return &none;
}

static void read_stderr(int fd, char *text, size_t size)
{
	ssize_t n = read(fd, text, size - 1);

	EXPECT_LT(0, n);
	text[n > 0 ? n : 0] = '\0';
}

/* What the library says on standard error while @fds collect it. */
static void collect_stderr(int fds[3])
{
	ASSERT_EQ(0, pipe(fds));
	fds[2] = dup(2);
	ASSERT_EQ(2, dup2(fds[1], 2));
}

static void give_stderr_back(int fds[3], char *text, size_t size)
{
	ASSERT_EQ(2, dup2(fds[2], 2));
	close(fds[2]);
	close(fds[1]);
	read_stderr(fds[0], text, size);
	close(fds[0]);
}

/*
 * Again until the stop has ended "polite", @waits has switched away, and @runs
 * is not kept by a page fault: their workers may get no processor before the
 * deadline.
 */
static void stop_too_early(struct pl_stop_report *r, pl_task_t waits,
			   pl_task_t runs, char *said, size_t size)
{
	int fds[3], tries = 0;

	do {
		collect_stderr(fds);
		EXPECT_EQ(-ETIMEDOUT, pl_runtime_stop_until(in_ms(50), r));
		give_stderr_back(fds, said, size);
	} while ((r->nr_left > 2 || strcmp(find(r, waits)->state, "sem") ||
		  strcmp(find(r, runs)->state, "computes")) && ++tries < 100);
}

TEST_TIMED(deadline_names_what_is_left,
	   "one of several tries; an event must come before a deadline")
TEST_F(stop_until, deadline_names_what_is_left)
{
	struct pl_stop_report r = PL_STOP_REPORT_INIT;
	pl_task_t runs, waits;
	char said[8192];

	start_with(2, 0);
	NEEDS_DUMP();
	spawn_named("polite", sleep_on, NULL);
	waits = spawn_named("waits", wait_in_shield, NULL);
	runs = spawn_named("runs", run_on, NULL);
	EXPECT_TRUE(UNTIL(is_running && nr_waiters(&sem.word) == 1));
	stop_too_early(&r, waits, runs, said, sizeof(said));
	EXPECT_EQ(2, r.nr_left);
	EXPECT_STREQ("waits", find(&r, waits)->name);
	EXPECT_STREQ("sem", find(&r, waits)->state);
	EXPECT_STREQ("runs", find(&r, runs)->name);
	EXPECT_STREQ("computes", find(&r, runs)->state);
	EXPECT_NE(NULL, strstr(said, "'waits' waits for sem"));
	EXPECT_NE(NULL, strstr(said, "'runs' runs on worker"));
	EXPECT_NE(NULL, strstr(said, "2 tasks have not ended"));
	EXPECT_EQ(NULL, strstr(said, "polite"));

	/* The stop goes on. */
	EXPECT_EQ(-ECANCELED, pl_spawn(NULL, nothing, NULL, NULL));
	EXPECT_EQ(-EBUSY, pl_runtime_start(NULL));
	may_end = 1;
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(0, pl_runtime_stop_until(in_ms(1000000), &r));
	EXPECT_EQ(-EALREADY, pl_runtime_stop());
	run_in_task(nothing, NULL);
}

TEST_F(stop_until, stop_without_deadline_continues_it)
{
	spawn(wait_in_shield, NULL);
	EXPECT_TRUE(UNTIL(nr_waiters(&sem.word) == 1));
	EXPECT_EQ(-ETIMEDOUT, pl_runtime_stop_until(0, NULL));
	EXPECT_EQ(-ETIMEDOUT, pl_runtime_stop_until(0, NULL));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
	EXPECT_EQ(0, pl_runtime_stop());
}

static void post_late(void *arg)
{
	EXPECT_EQ(-ECANCELED, pl_sleep_until(PL_FOREVER));
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
}

TEST_F(stop_until, stop_in_time_returns_0)
{
	struct pl_stop_report r = PL_STOP_REPORT_INIT;

	EXPECT_EQ(-EALREADY, pl_runtime_stop_until(PL_FOREVER, &r));
	spawn(wait_in_shield, NULL);
	EXPECT_TRUE(UNTIL(nr_waiters(&sem.word) == 1));
	spawn(post_late, NULL);
	EXPECT_EQ(0, pl_runtime_stop_until(in_ms(1000000), &r));
	EXPECT_EQ(0, r.nr_left);
}

static _Atomic int said;

static void stop_here(void *arg)
{
	said = pl_runtime_stop_until(0, NULL);
}

TEST_F(stop_until, tasks_and_timers_cannot_wait_for_it)
{
	struct pl_stop_report r = PL_STOP_REPORT_INIT;

	run_in_task(stop_here, NULL);
	EXPECT_EQ(-EDEADLK, said);
	said = 0;
	EXPECT_EQ(0, pl_timer_add(NULL, 0, stop_here, NULL));
	EXPECT_TRUE(UNTIL(said));
	EXPECT_EQ(-EDEADLK, said);
	r.size = 0;
	EXPECT_EQ(-EINVAL, pl_runtime_stop_until(0, &r));
	run_in_task(nothing, NULL);
}

static void dump_into(void *arg)
{
	EXPECT_EQ(0, pl_dump(*(int *)arg));
}

static bool is_inside(void)
{
	int i, nr = 0;

	for (i = 0; i < PL__NR_STRIPES; i++)
		nr += (int)atomic_load(&pl__rt.outside[i].inside);
	return nr;
}

/* It is inside of the runtime until somebody reads. */
TEST_F(stop_until, thread_in_a_dump_does_not_hold_the_stop_up)
{
	struct pl_stop_report r = PL_STOP_REPORT_INIT;
	static struct mixed m;
	static char text[4096];
	int fds[2], i;

	NEEDS_DUMP();
	for (i = 0; i < 100; i++)
		spawn(sleep_on, NULL);
	ASSERT_EQ(0, pipe2(fds, O_NONBLOCK | O_CLOEXEC));
	while (write(fds[1], text, sizeof(text)) > 0)
		;
	ASSERT_EQ(0, fcntl(fds[1], F_SETFL, 0));
	mixed_start(&m, 0, 1, dump_into, &fds[1]);
	ASSERT_TRUE(UNTIL(is_inside()));
	/* Time to fill what it gathers before it writes. */
	EXPECT_EQ(0, usleep(20000));
	do {
		EXPECT_EQ(-ETIMEDOUT, pl_runtime_stop_until(in_ms(20), &r));
	} while (r.nr_left);
	while (read(fds[0], text, sizeof(text)) > 0)
		;
	EXPECT_EQ(0, pl_runtime_stop());
	mixed_join(&m);
	run_in_task(nothing, NULL);
	close(fds[0]);
	close(fds[1]);
}

TEST_HARNESS_MAIN
