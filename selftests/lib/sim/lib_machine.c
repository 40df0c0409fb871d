/* SPDX-License-Identifier: GPL-2.0-only */
/* The simulated machine: as many run at a time as it has processors. */
#define SIM_ITSELF
#include "machine.h"

MACHINE_FIXTURE(machine)

TEST_F(machine, threads_share_its_processors)
{
	uint32_t nr;
	uint64_t ns;

	for (nr = 1; nr <= NR_THREADS; nr *= 2) {
		ns = run_with(nr, compute_in_threads, NULL);
		EXPECT_LE(NR_THREADS / nr * WORK_NS, ns);
		EXPECT_GE(NR_THREADS / nr * WORK_NS + NSEC_PER_MSEC, ns);
	}
}

static void compute_task(void *arg)
{
	compute(arg);
}

static void compute_in_tasks(void *arg)
{
	pl_task_t t[NR_THREADS];
	uint64_t begin;
	int i;

	start_fixed(NR_THREADS, 0);
	begin = pl_now();
	for (i = 0; i < NR_THREADS; i++)
		t[i] = spawn(compute_task, NULL);
	for (i = 0; i < NR_THREADS; i++)
		join(t[i]);
	*took_ns = pl_now() - begin;
}

TEST_F(machine, tasks_use_all_processors)
{
	EXPECT_GE(WORK_NS + NSEC_PER_MSEC,
		  run_with(NR_THREADS, compute_in_tasks, NULL));
	EXPECT_LE(NR_THREADS / 2 * WORK_NS,
		  run_with(2, compute_in_tasks, NULL));
}

TEST_F(machine, figures_repeat_exactly)
{
	uint64_t ns = run_with(3, compute_in_tasks, NULL);

	EXPECT_LT(0, ns);
	EXPECT_EQ(ns, run_with(3, compute_in_tasks, NULL));
}

static void *spin_on(void *arg)
{
	while (!atomic_load((atomic_bool *)arg))
		pl__cpu_relax();
	return NULL;
}

/* On one processor: the spinner has a slice, and then the other goes on. */
static void spin_beside(void *arg)
{
	atomic_bool is_over = false;
	uint64_t begin = pl_now();
	pthread_t t;

	pthread_create(&t, NULL, spin_on, &is_over);
	usleep(1000);
	*took_ns = pl_now() - begin;
	is_over = true;
	pthread_join(t, NULL);
}

TEST_F(machine, spinning_thread_is_preempted_after_its_slice)
{
	uint64_t ns = run_with(1, spin_beside, NULL);

	EXPECT_LE(NSEC_PER_MSEC, ns);
	EXPECT_GE(5 * NSEC_PER_MSEC, ns);
	ns = run_with(2, spin_beside, NULL);
	EXPECT_GE(NSEC_PER_MSEC + 100 * NSEC_PER_USEC, ns);
}

/* ---- deadlines that a worker does not come to ---- */

static atomic_bool is_back;

static void sleep_and_note(void *arg)
{
	uint64_t end = pl_now() + 100 * NSEC_PER_USEC;

	pl_sleep_until(end);
	*took_ns = pl_now() - end;
	is_back = true;
}

static void take_turns_until(uint64_t end)
{
	while (pl_now() < end && !is_back) {
		pl_sim_compute(10 * NSEC_PER_USEC);
		pl_yield();
	}
}

/* The sleeper starts here; so this worker has its deadline. */
static void compute_when_it_is_due(void *end)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t sleeper;

	take_turns_until((uintptr_t)end);
	opts.flags = PL_SPAWN_URGENT;
	EXPECT_EQ(0, pl_spawn(&sleeper, sleep_and_note, NULL, &opts));
	pl_sim_compute(5 * WORK_NS);
	join(sleeper);
}

static void take_turns(void *end)
{
	(void)end;
	take_turns_until(PL_FOREVER);
}

static void *compute_on(void *arg)
{
	while (!is_back)
		pl_sim_compute(NSEC_PER_MSEC);
	return arg;
}

/*
 * A worker keeps deadlines once it has been idle, and as long as sysmon is
 * awake, as tasks wait.  A thread of another program has its slices, too.
 */
static void compute_beside_others(void *arg)
{
	pl_task_t t[NR_THREADS];
	pthread_t neighbour;
	void *end;
	int i;

	start_fixed(2, 0);
	for (i = 0; i < 2; i++)
		t[i] = spawn(compute_task, NULL);
	for (i = 0; i < 2; i++)
		join(t[i]);
	usleep(100);
	pthread_create(&neighbour, NULL, compute_on, NULL);
	end = (void *)(uintptr_t)(pl_now() + 2 * WORK_NS);
	t[0] = spawn(compute_when_it_is_due, end);
	for (i = 1; i < NR_THREADS; i++)
		t[i] = spawn(take_turns, end);
	for (i = 0; i < NR_THREADS; i++)
		join(t[i]);
	pthread_join(neighbour, NULL);
}

/* Late by 0.2 ms, and by 32 tasks a worker; sysmon waits for a processor. */
TEST_F(machine, late_deadline_is_taken_by_a_worker_that_runs_others)
{
	EXPECT_GE(NSEC_PER_MSEC, run_with(2, compute_beside_others, NULL));
}

/* ---- tasks that compute for long, again and again ---- */

#define NR_HOGS		4
#define NR_TICKS	100
#define HOG_NS		(20 * NSEC_PER_MSEC)
#define SLICE_NS	(3 * NSEC_PER_MSEC)	/* of the machine */

static atomic_bool is_over;
static atomic_uint nr_turns[NR_HOGS], nr_at_once, most_at_once;

/* One thread runs at a time, from one point to the next. */
static void hog(void *arg)
{
	while (!is_over) {
		if (++nr_at_once > most_at_once)
			most_at_once = nr_at_once;
		pl_sim_compute(HOG_NS);
		nr_at_once--;
		nr_turns[(uintptr_t)arg]++;
		pl_yield();
	}
}

static void tick(void *arg)
{
	uint64_t begin;
	int i;

	/* They are known by then. */
	EXPECT_EQ(0, pl_sleep(200 * NSEC_PER_MSEC));
	for (i = 0; i < NR_HOGS; i++)
		nr_turns[i] = 0;
	most_at_once = 0;
	begin = pl_now();
	for (i = 0; i < NR_TICKS; i++)
		EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	*took_ns = pl_now() - begin;
	is_over = true;
}

static void tick_beside_hogs(void *arg)
{
	uint32_t nr_workers = (uint32_t)(uintptr_t)arg, nr;
	uint32_t least = UINT32_MAX, most = 0;
	pl_task_t t[NR_HOGS];
	uintptr_t i;

	start_with(nr_workers, 16);
	/* Else each that runs takes one, and the limit is raised for these. */
	while (pl__forecast_of(hog) != PL__RUN_COMPUTES)
		pl__forecast_add(hog, PL__RUN_COMPUTES);
	for (i = 0; i < NR_HOGS; i++)
		t[i] = spawn(hog, (void *)i);
	spawn(tick, NULL);
	for (i = 0; i < NR_HOGS; i++) {
		join(t[i]);
		nr = nr_turns[i];
		least = nr < least ? nr : least;
		most = nr > most ? nr : most;
	}
	EXPECT_GE(least + 2, most);
	/* As many as there are processors, or as are to run. */
	EXPECT_GE(nr_workers > 2 ? nr_workers : 2, most_at_once);
}

/* A tick waits for a slice of one that computes, not for its turn. */
TEST_F(machine, others_run_beside_tasks_that_compute_again_and_again)
{
	uintptr_t nr_workers;

	for (nr_workers = 1; nr_workers <= 4; nr_workers *= 2)
		EXPECT_GE(NR_TICKS * (NSEC_PER_MSEC + SLICE_NS),
			  run_with(2, tick_beside_hogs, (void *)nr_workers));
}

/* ---- spinning ---- */

#define NR_SLEEPS	200
#define SHORT_NS	(20 * NSEC_PER_USEC)

/* On the one worker, which is idle for as long as it would spin. */
static void sleep_often(void *arg)
{
	uint64_t begin = pl_now(), late = 0, due;
	int i;

	for (i = 1; i <= NR_SLEEPS; i++) {
		due = begin + (uint64_t)i * SHORT_NS;
		EXPECT_EQ(0, pl_sleep_until(due));
		late += pl_now() - due;
	}
	EXPECT_GE(NR_SLEEPS * 10 * NSEC_PER_USEC, late);
}

static void sleep_on_one(void *arg)
{
	start_fixed(1, 0);
	join(spawn(sleep_often, NULL));
	EXPECT_EQ(0, pl__rt.main.workers[0]->spin_ns);
	/* Spinning was learnt before, by signals. */
	pl__rt.main.workers[0]->spin_ns = pl__rt.spin_ns_max;
	join(spawn(sleep_often, NULL));
}

TEST_F(machine, deadline_waits_for_no_spin_and_teaches_none)
{
	run_with(2, sleep_on_one, NULL);
}

/* ---- wrong forecasts ---- */

#define NR_QUICK	1000
#define NR_CONNECTIONS	40

static uint64_t due_ns[NR_QUICK], most_late_ns;

static void note_late(uintptr_t i)
{
	uint64_t ns = pl_now() - due_ns[i];

	most_late_ns = ns > most_late_ns ? ns : most_late_ns;
}

static void tick_on(void *arg)
{
	while (!is_over)
		EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
}

static void be_quick_or_long(void *arg)
{
	uintptr_t i = (uintptr_t)arg;

	if (i == NR_QUICK) {
		pl_sim_compute(3 * HOG_NS / 2);
		return;
	}
	note_late(i);
	pl_sim_compute(10 * NSEC_PER_USEC);
}

static void be_quick_beside_hogs(void *arg)
{
	pl_task_t t[NR_HOGS];
	uintptr_t i;

	start_with(2, 16);
	for (i = 0; i < NR_HOGS; i++)
		t[i] = spawn(hog, (void *)i);
	usleep(300000);
	join(spawn(be_quick_or_long, (void *)NR_QUICK));
	for (i = 0; i < NR_QUICK; i++) {
		due_ns[i] = pl_now();
		spawn(be_quick_or_long, (void *)i);
		if (i % 200 == 199)
			usleep(40000);
	}
	usleep(100000);
	is_over = true;
	for (i = 0; i < NR_HOGS; i++)
		join(t[i]);
	/* The first waits for a turn of two, each on half of a processor. */
	EXPECT_GE(4 * HOG_NS, most_late_ns);
}

TEST_F(machine, routine_that_computed_once_is_not_kept_waiting)
{
	run_with(2, be_quick_beside_hogs, NULL);
}

/* It uses some of the processor, and sleeps for most of the time. */
static void be_connected(void *arg)
{
	int i;

	if ((uintptr_t)arg < NR_CONNECTIONS)
		note_late((uintptr_t)arg);
	for (i = 0; i < 200; i++) {
		pl_sim_block(2 * NSEC_PER_MSEC);
		pl_sim_compute(NSEC_PER_MSEC / 5);
	}
}

static void begin_connections(uintptr_t first, uintptr_t nr)
{
	pl_task_t t[NR_CONNECTIONS];
	uintptr_t i;

	for (i = 0; i < nr; i++) {
		due_ns[i] = pl_now();
		t[i] = spawn(be_connected, (void *)(first + i));
	}
	for (i = 0; i < nr; i++)
		join(t[i]);
}

static void connect_twice(void *arg)
{
	pl_task_t t;

	start_with(4, 256);
	t = spawn(tick_on, NULL);
	begin_connections(NR_CONNECTIONS, NR_CONNECTIONS / 2);
	begin_connections(0, NR_CONNECTIONS);
	is_over = true;
	join(t);
	EXPECT_GE(NSEC_PER_MSEC, most_late_ns);
}

TEST_F(machine, tasks_that_sleep_for_long_in_calls_do_not_compute)
{
	run_with(4, connect_twice, NULL);
}

static void compute_for_a_turn(void *arg)
{
	if (arg)
		note_late(0);
	pl_sim_compute(15 * NSEC_PER_MSEC);
}

static void compute_in_the_background(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	int i;

	start_with(2, 16);
	join(spawn(compute_for_a_turn, NULL));
	opts.flags = PL_SPAWN_BACKGROUND;
	for (i = 0; i < 200; i++)
		ASSERT_EQ(0, pl_spawn(NULL, compute_for_a_turn, NULL, &opts));
	usleep(50000);
	due_ns[0] = pl_now();
	join(spawn(compute_for_a_turn, arg));
	EXPECT_GE(2 * HOG_NS, most_late_ns);
}

TEST_F(machine, background_tasks_that_compute_come_after_others)
{
	run_with(2, compute_in_the_background, due_ns);
}

static void meet(void *arg)
{
	atomic_uint *nr = arg;

	pl_sim_compute(8 * NSEC_PER_MSEC);
	pl_yield();
	atomic_fetch_add(nr, 1);
	while (*nr < 4 && pl_now() < due_ns[0] + NSEC_PER_SEC)
		pl_sim_block(NSEC_PER_MSEC);
}

static void meet_unwatched(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	atomic_uint nr = 0;
	pl_task_t t[4];
	int i;

	set_env("PARKLOT_WATCH", 0);
	start_with(2, 16);
	opts.flags = PL_SPAWN_BLOCKING;
	due_ns[0] = pl_now();
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, pl_spawn(&t[i], meet, &nr, &opts));
	for (i = 0; i < 4; i++)
		join(t[i]);
	EXPECT_GT(due_ns[0] + NSEC_PER_SEC, pl_now());
}

TEST_F(machine, tasks_that_are_to_block_meet_without_sysmon)
{
	run_with(2, meet_unwatched, NULL);
}

static void be_innocent(void *arg)
{
	pl_sim_compute(5 * NSEC_PER_USEC);
	pl_yield();
	EXPECT_EQ(0, pl__self()->current->score);
}

static void compute_and_spawn(void *arg)
{
	pl_sim_compute(3 * HOG_NS);
	spawn(be_innocent, NULL);
}

static void spawn_from_a_spare(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t[2];

	start_with(1, 16);
	t[0] = spawn(tick_on, NULL);
	opts.flags = PL_SPAWN_BLOCKING;
	ASSERT_EQ(0, pl_spawn(&t[1], compute_and_spawn, NULL, &opts));
	join(t[1]);
	usleep(5000);
	is_over = true;
	join(t[0]);
}

TEST_F(machine, task_after_one_that_computed_is_not_taken_for_it)
{
	run_with(4, spawn_from_a_spare, NULL);
}

TEST_HARNESS_MAIN
