// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A thread wakes a task while all workers sleep: how long its call takes, and
 * how long until the task runs
 *
 * The thread wakes at fixed times, and the task's latency counts from the
 * time that was due: what comes late because the thread was delayed is late.
 */
#include "task.h"

#define NR_WAKES	1500
#define NR_WARM		50
#define EVERY_NS	400000
#define SPIN_NS		60000		/* the thread is awake so long before */

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

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "idle", idle },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "wake", cases);
}
