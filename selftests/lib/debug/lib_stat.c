/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters: exact once all is quiet, and proof that no waker enters the kernel
 * when no worker sleeps.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "lots.h"

#include <poll.h>
#include <sys/resource.h>

RT_FIXTURE(stat)

static void spawn_some(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++)
		spawn_as(i % 4, count, NULL);
}

/* ---- the interface ---- */

TEST_F(stat, unknown_worker_is_refused)
{
	struct pl_stat_worker sw = PL_STAT_WORKER_INIT;

	EXPECT_EQ(-ENOENT, pl_stat_worker(0, &sw));
	start_with(2, 0);
	EXPECT_EQ(0, pl_stat_worker(0, &sw));
	EXPECT_EQ(-ENOENT, pl_stat_worker(1, &sw));
	EXPECT_EQ(-ENOENT, pl_stat_worker(UINT32_MAX, &sw));
}

TEST_F(stat, counters_are_0_before_the_start)
{
	struct pl_stat st = rt_stat(), zero = PL_STAT_INIT;

	EXPECT_EQ(0, memcmp(&st, &zero, sizeof(st)));
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

/* ---- exact ---- */

static struct pl_word word;

static void wait_on_word(void *arg)
{
	while (!atomic_load(&word.value))
		pl_word_wait(&word, 0, PL_FOREVER);
}

static void wait_long_on_word(void *arg)
{
	while (!atomic_load(&word.value))
		pl_word_wait(&word, 0, in_ms(1000 * 1000));
}

static bool is_all_parked_in(struct pl_stat *st)
{
	*st = rt_stat();
	return st->workers_parked == st->workers && !st->workers_blocked;
}

TEST_F(stat, gauges_count_live_tasks_and_timers)
{
	struct pl_stat st;
	int i;

	for (i = 0; i < 30; i++)
		spawn(wait_on_word, NULL);
	for (i = 0; i < 20; i++)
		spawn(wait_long_on_word, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&word) == 50));
	/* One that was woken for nothing counts as parked until it runs. */
	ASSERT_TRUE(UNTIL(is_all_parked_in(&st)));
	EXPECT_EQ(50, st.tasks_alive);
	EXPECT_EQ(20, st.timers_alive);
	EXPECT_EQ(0, st.workers_running);
	EXPECT_EQ(0, st.workers_blocked);
	EXPECT_EQ(pl_runtime_backend(), st.backend);
	atomic_store(&word.value, 1);
	EXPECT_EQ(50, pl_word_wake(&word, UINT32_MAX));
	EXPECT_TRUE(UNTIL(rt_stat().tasks_alive == 0));
	EXPECT_TRUE(UNTIL(rt_stat().timers_alive == 0));
	EXPECT_EQ(20, rt_stat().timers_deleted);
}

/* Whether the sums are those of the workers. */
static bool sums_agree(void)
{
	struct pl_stat_worker sw = PL_STAT_WORKER_INIT;
	uint64_t switches = 0, steals = 0, parks = 0, ended = 0;
	struct pl_stat st = rt_stat();
	uint32_t i;

	for (i = 0; !pl_stat_worker(i, &sw); i++) {
		switches += sw.switches;
		steals += sw.steals;
		parks += sw.parks;
		ended += sw.tasks_ended;
	}
	return i == st.workers && switches == st.switches &&
	       steals == st.steals && parks == st.parks &&
	       ended == st.tasks_ended;
}

static bool has_run(uint32_t i)
{
	struct pl_stat_worker sw = PL_STAT_WORKER_INIT;

	return !pl_stat_worker(i, &sw) && sw.cpu_ns;
}

TEST_F(stat, counters_of_workers_add_up)
{
	struct pl_stat_worker sw = PL_STAT_WORKER_INIT;
	int nr = scaled(2000);

	run_in_task(spawn_some, &nr);
	ASSERT_TRUE(UNTIL(rt_stat().tasks_alive == 0));
	EXPECT_TRUE(UNTIL(sums_agree()));
	EXPECT_EQ(0, pl_stat_worker(0, &sw));
	EXPECT_GT(4, sw.lot);
	/* Another may have done it all before the first got a CPU. */
	EXPECT_TRUE(UNTIL(has_run(0)));
}

static atomic_int is_over;

static bool is_not_less(const struct pl_stat *a, const struct pl_stat *b)
{
	return a->tasks_spawned <= b->tasks_spawned &&
	       a->tasks_ended <= b->tasks_ended &&
	       a->switches <= b->switches && a->steals <= b->steals &&
	       a->parks <= b->parks && a->wakes <= b->wakes &&
	       a->timers_added <= b->timers_added &&
	       a->timers_fired <= b->timers_fired &&
	       a->timers_deleted <= b->timers_deleted &&
	       b->tasks_ended <= b->tasks_spawned;
}

static void observe(void *arg)
{
	struct pl_stat last = rt_stat(), now;

	while (!is_over) {
		now = rt_stat();
		EXPECT_TRUE(is_not_less(&last, &now));
		last = now;
		breathe();
	}
}

static void sleep_and_spawn(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++) {
		EXPECT_EQ(0, pl_sleep(1000));
		run_in_task(count, NULL);
		EXPECT_EQ(-ETIMEDOUT, pl_word_wait(&word, 0, pl_now() + 1000));
	}
}

/* plstat(1) reads those of the runtime, which begin anew. */
TEST_F(stat, wakes_by_threads_are_those_of_one_runtime)
{
	uint64_t wakes;

	EXPECT_TRUE(UNTIL((spawn(count, NULL),
			   atomic_load(&pl__rt.main.wakes_outside) > 0)));
	EXPECT_EQ(0, pl_runtime_stop());
	wakes = rt_stat().wakes;
	EXPECT_LE(1, wakes);
	EXPECT_EQ(0, atomic_load(&pl__rt.main.wakes_outside));
	EXPECT_EQ(0, pl_runtime_start(NULL));
	EXPECT_LE(wakes, rt_stat().wakes);
}

TEST_F(stat, counters_never_go_down)
{
	static struct mixed observers;
	int nr = scaled(200);

	mixed_start(&observers, 1, 2, observe, NULL);
	mixed_run(20, 2, sleep_and_spawn, &nr);
	is_over = 1;
	mixed_join(&observers);
}

TEST_F(stat, counters_do_not_go_down_while_runtimes_end)
{
	static struct mixed m;
	int i, nr = 10;

	is_over = 0;
	mixed_start(&m, 0, 1, observe, NULL);
	for (i = 0; i < scaled(100); i++) {
		run_in_task(sleep_and_spawn, &nr);
		EXPECT_EQ(0, pl_runtime_stop());
	}
	is_over = 1;
	mixed_join(&m);
}

/* ---- no worker is woken without work ---- */

static void yield_much(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++)
		pl_yield();
}

static void spawn_and_join_much(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++)
		run_in_task(count, NULL);
}

static struct pl_mutex mutex;
static struct pl_cond cond;
static int turn;

static void take_turns(void *arg)
{
	static atomic_int next_id;
	int me = atomic_fetch_add(&next_id, 1) % 2, i, nr = *(int *)arg;

	for (i = 0; i < nr; i++) {
		pl_mutex_lock(&mutex);
		while (turn != me)
			EXPECT_EQ(0, pl_cond_wait(&cond, &mutex));
		turn = !me;
		pl_cond_signal(&cond);
		pl_mutex_unlock(&mutex);
	}
}

static atomic_int may_measure;

struct work {
	void	(*fn)(void *arg);
	int	nr;
	int	nr_others;
};

/* The task looks at the counters before and after: nothing else runs. */
static void measure(void *arg)
{
	struct work *w = arg;
	struct pl_stat before, after;
	struct rusage ru[2];
	pl_task_t t[2];
	int i;

	/* The spawner counts its wake only after it. */
	ASSERT_TRUE(UNTIL_BUSY(may_measure));
	before = rt_stat();
	getrusage(RUSAGE_THREAD, &ru[0]);
	for (i = 0; i < w->nr_others; i++)
		t[i] = spawn(w->fn, &w->nr);
	if (!i)
		w->fn(&w->nr);
	while (i--)
		join(t[i]);
	getrusage(RUSAGE_THREAD, &ru[1]);
	after = rt_stat();
	EXPECT_EQ(before.wakes, after.wakes);
	EXPECT_EQ(before.wakes_empty, after.wakes_empty);
	EXPECT_EQ(before.parks, after.parks);
	EXPECT_EQ(before.io_enters, after.io_enters);
	/* It never slept in the kernel either; a sanitizer may. */
	if (!RT_INJECT && !RT_ASAN && !RT_TSAN)
		EXPECT_EQ(ru[0].ru_nvcsw, ru[1].ru_nvcsw);
}

TEST_REAL(work_of_one_worker_for_itself_needs_no_wake,
	  "it counts real switches")
TEST_TIMED(work_of_one_worker_for_itself_needs_no_wake,
	   "switches of a thread; counts what the scheduler did meanwhile")
TEST_F(stat, work_of_one_worker_for_itself_needs_no_wake)
{
	int few = RT_INJECT ? 10 : 1;
	struct work work[] = {
		{ yield_much, scaled(100000) / few, 0 },
		{ yield_much, scaled(50000) / few, 2 },
		{ spawn_and_join_much, scaled(20000) / few, 0 },
		{ take_turns, scaled(20000) / few, 2 },
	};
	pl_task_t t;
	size_t i;

	start_with(1, 1);
	for (i = 0; i < ARRAY_SIZE(work); i++) {
		may_measure = 0;
		t = spawn(measure, &work[i]);
		may_measure = 1;
		join(t);
	}
}

/*
 * All of both are busy, so that no worker is to be woken.  Where they yield,
 * one that gets no processor for a while may lose its tasks to the other, and
 * find none when it is back: then it was not busy all the time.
 */
static atomic_int nr_busy;

static void be_busy(void *arg)
{
	int i, nr = scaled(10000);
	struct pl_stat before, after;

	atomic_fetch_add(&nr_busy, 1);
	ASSERT_TRUE(UNTIL_BUSY(nr_busy >= 2 && may_measure));
	before = rt_stat();
	atomic_fetch_add(&nr_busy, 1);
	ASSERT_TRUE(UNTIL_BUSY(nr_busy >= 4));
	for (i = 0; i < nr; i++)
		spawn_as(PL_STACK_SMALL, count, NULL);
	after = rt_stat();
	EXPECT_EQ(before.wakes, after.wakes);
	EXPECT_EQ(before.wakes_empty, after.wakes_empty);
	for (i = 0; i < nr; i++) {
		spawn_as(PL_STACK_SMALL, count, NULL);
		pl_yield();
	}
	after = rt_stat();
	if (after.steals == before.steals) {
		EXPECT_EQ(before.wakes, after.wakes);
		EXPECT_EQ(before.wakes_empty, after.wakes_empty);
	}
	atomic_fetch_add(&nr_busy, 1);
	ASSERT_TRUE(UNTIL_BUSY(nr_busy == 6));
}

TEST_TIMED(busy_workers_do_not_wake_each_other,
	   "counts what the scheduler did meanwhile")
TEST_F(stat, busy_workers_do_not_wake_each_other)
{
	pl_task_t t[2];

	start_fixed(2, 2);
	t[0] = spawn(be_busy, NULL);
	t[1] = spawn(be_busy, NULL);
	may_measure = 1;
	join(t[0]);
	join(t[1]);
}

TEST_TIMED(each_wake_finds_work, "counts what the scheduler did meanwhile")
TEST_F(stat, each_wake_finds_work)
{
	int i, nr = scaled(2000);

	start_with(4, 0);
	run_in_task(count, NULL);
	EXPECT_TRUE(UNTIL(is_all_listed()));
	for (i = 0; i < nr; i++)
		run_as(i % 4, count, NULL);
	mixed_run(20, 2, spawn_and_join_much, &(int){ scaled(200) });
	EXPECT_LE(1, rt_stat().wakes);
	/* The device counts a parked worker before it compares the sequence. */
	if (pl_runtime_backend() == PL_BACKEND_MODULE)
		EXPECT_GE(rt_stat().wakes / 4, rt_stat().wakes_empty);
	else
		EXPECT_EQ(0, rt_stat().wakes_empty);
}

/* ---- delays ---- */

#define HELD_NS		(2 * NSEC_PER_MSEC)
#define NR_HOLDERS	(4 * PL__LATENCY_EVERY)

/* How many may have been as long as @ns, as far as bins tell. */
static uint32_t nr_as_long(const struct pl__latency_hist *d, uint64_t ns)
{
	uint32_t nr = 0, i;

	for (i = 0; i < PL__LATENCY_BINS; i++)
		if (1ULL << (i + PL__LATENCY_SHIFT) > ns)
			nr += load_relaxed(&d->bin[i]);
	return nr;
}

static void hold_until(void *arg)
{
	uint64_t end = *(uint64_t *)arg + HELD_NS;

	while (pl_now() < end)
		;
}

static void sleep_behind_another(void *arg)
{
	uint64_t deadline = in_ms(5);
	pl_task_t t = spawn(hold_until, &deadline);

	EXPECT_EQ(0, pl_sleep_until(deadline));
	join(t);
}

/* Its worker is another's when the deadline comes, unless that is over. */
TEST_F(stat, late_deadlines_are_counted_by_lateness)
{
	struct pl__worker *w;

	start_with(1, 1);
	do {
		run_in_task(sleep_behind_another, NULL);
		w = pl__rt.main.workers[0];
	} while (!w->nr_deadlines);
	EXPECT_EQ(1, nr_as_long(&w->deadline_latency, 0));
	EXPECT_EQ(1, nr_as_long(&w->deadline_latency, HELD_NS));
	EXPECT_EQ(0, nr_as_long(&w->io_latency, 0));
}

static void hold_others(void *arg)
{
	EXPECT_EQ(POLLIN, pl_poll(*(int *)arg, POLLIN, PL_FOREVER));
	spin_ns(HELD_NS);
}

/* Of all that are complete at once some are looked at, and one goes first. */
TEST_F(stat, completions_are_counted_by_the_wait_of_their_tasks)
{
	pl_task_t t[NR_HOLDERS];
	struct pl__worker *w;
	int fd[2], i;

	ASSERT_EQ(0, pipe(fd));
	start_with(1, 1);
	for (i = 0; i < NR_HOLDERS; i++)
		t[i] = spawn(hold_others, &fd[0]);
	ASSERT_TRUE(UNTIL(rt_stat().io_in_flight == NR_HOLDERS &&
			  rt_stat().workers_parked == 1));
	ASSERT_EQ(1, write(fd[1], "", 1));
	for (i = 0; i < NR_HOLDERS; i++)
		join(t[i]);
	w = pl__rt.main.workers[0];
	EXPECT_EQ(NR_HOLDERS / PL__LATENCY_EVERY,
		  nr_as_long(&w->io_latency, 0));
	EXPECT_LE(1, nr_as_long(&w->io_latency, HELD_NS));
	close(fd[0]);
	close(fd[1]);
}

TEST_HARNESS_MAIN
