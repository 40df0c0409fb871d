// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A thread wakes a task while all workers sleep: how long its call takes, and
 * how long until the task runs; and it spawns many at once: how long until all
 * processors, or workers, compute
 *
 * The thread wakes at fixed times, and the task's latency counts from the
 * time that was due: what comes late because the thread was delayed is late.
 */
#include <sched.h>

#include "../lib/task.h"

#define NR_WAKES	1500
#define NR_WARM		50
#define EVERY_NS	400000
#define SPIN_NS		60000		/* the thread is awake so long before */
#define NR_RAMPS	20U
#define NR_SINGLES	5U		/* before each ramp */
#define RAMP_WORKERS	8U
#define RAMP_TASKS	64U
#define RAMP_NS		(5 * NSEC_PER_MSEC)	/* each task computes */

static struct pl_word word;
static _Atomic uint64_t due_ns;
static struct hist call, run;

static void wait_on(void *arg)
{
	uint32_t i;

	(void)arg;
	for (i = 0; i < NR_WAKES; i++) {
		while (atomic_load(&word.value) == i)
			pl_word_wait(&word, i, PL_FOREVER);
		if (i >= NR_WARM)
			hist_add(&run, now_ns() - atomic_load(&due_ns));
	}
}

static void wake_at(uint64_t ns, bool is_warm)
{
	uint64_t start_ns;

	sleep_until(ns - SPIN_NS);
	while (now_ns() < ns)
		;
	atomic_store(&due_ns, ns);
	atomic_fetch_add(&word.value, 1);
	start_ns = now_ns();
	pl_word_wake(&word, 1);
	if (is_warm)
		hist_add(&call, now_ns() - start_ns);
}

static void idle(void)
{
	uint64_t first_ns;
	pl_task_t t;
	int i;

	start_workers(2);
	t = spawn(wait_on, NULL);
	first_ns = now_ns() + EVERY_NS;
	for (i = 0; i < NR_WAKES; i++)
		wake_at(first_ns + (uint64_t)i * EVERY_NS, i >= NR_WARM);
	must("join", pl_join(t));
	must("stop", pl_runtime_stop());

	bench_put_us("call_p50", &call, 50000);
	bench_put_us("run_p50", &run, 50000);
	bench_put_us("run_p99", &run, 99000);
}

/* ---- many at once ---- */

static _Atomic uint32_t nr_running;
static uint32_t nr_awaited;
static _Atomic uint64_t awaited_ns;
static struct count ramped;

static void compute(void *arg)
{
	uint64_t start_ns = now_ns();

	(void)arg;
	if (atomic_fetch_add(&nr_running, 1) + 1 == nr_awaited)
		atomic_store(&awaited_ns, start_ns);
	while (now_ns() - start_ns < RAMP_NS)
		;
	count_done(&ramped);
}

static struct pl_stat stat_now(void)
{
	struct pl_stat st = PL_STAT_INIT;

	must("stat", pl_stat_read(&st));
	return st;
}

/* Microseconds until @awaited of @nr tasks run; *@woken: by the call itself. */
static double ramp(uint32_t nr, uint32_t awaited, double *woken)
{
	uint64_t start_ns, wakes;

	while (stat_now().workers_parked < RAMP_WORKERS)
		sleep_until(now_ns() + NSEC_PER_MSEC);
	count_init(&ramped, nr);
	atomic_store(&nr_running, 0);
	nr_awaited = awaited;
	wakes = stat_now().wakes;
	start_ns = now_ns();
	must("spawn", pl_spawn_many(NULL, nr, compute, NULL, NULL));
	*woken = (double)(stat_now().wakes - wakes);
	count_wait(&ramped);
	return (double)(atomic_load(&awaited_ns) - start_ns) / 1000;
}

/* Single tasks and many in turn: the former are what a wake takes. */
static void ramps(void)
{
	double one[NR_RAMPS * NR_SINGLES], all[NR_RAMPS], woken[NR_RAMPS], us;
	uint32_t nr = RAMP_WORKERS, i, j;
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof(set), &set) &&
	    (uint32_t)CPU_COUNT(&set) < nr)
		nr = (uint32_t)CPU_COUNT(&set);
	start_workers(RAMP_WORKERS);
	for (i = 0; i < NR_RAMPS; i++) {
		for (j = 0; j < NR_SINGLES; j++)
			one[i * NR_SINGLES + j] = ramp(1, 1, &woken[i]);
		all[i] = ramp(RAMP_TASKS, nr, &woken[i]);
	}
	must("stop", pl_runtime_stop());
	us = bench_median(all, NR_RAMPS);
	bench_put("ramp_p50", "us", us);
	bench_put("ramp_wakes_p50", "times",
		  us / bench_median(one, NR_RAMPS * NR_SINGLES));
	bench_put("ramp_woken", "workers", bench_median(woken, NR_RAMPS));
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "idle", idle },
		{ "ramp", ramps },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "wake", cases);
}
