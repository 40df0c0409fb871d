// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How long a task that was woken waits while others keep the workers busy, in
 * time and in tasks taken meanwhile; parklot(7) says how many these may be
 *
 * A thread wakes it at fixed times, and its wait counts from the time that was
 * due. One worker has the storm, so that two processors are enough for both.
 */
#include "../lib/task.h"

#define NR_WAKES	1000
#define EVERY_NS	(2 * NSEC_PER_MSEC)
#define SPIN_NS		60000		/* the thread is awake so long before */
#define NR_DEEP		1000		/* tasks that are always ready */
#define NR_SLEEPERS	1000
#define SLEEP_MAX_NS	NSEC_PER_MSEC
#define NR_YIELDERS	100		/* beside one that computes */
#define COMPUTE_NS	(5 * NSEC_PER_MSEC)

static _Atomic uint64_t nr_taken;
static _Atomic uint32_t nr_alive;
static _Atomic bool is_over;

/* ---- the waiter ---- */

static struct pl_word word;
static _Atomic uint64_t due_ns, ran_at;
static _Atomic uint32_t nr_ran;
static struct hist wait_ns;

static void wait_on(void *arg)
{
	uint32_t i;

	(void)arg;
	for (i = 0; i < NR_WAKES; i++) {
		while (atomic_load(&word.value) == i)
			pl_word_wait(&word, i, PL_FOREVER);
		hist_add(&wait_ns, now_ns() - atomic_load(&due_ns));
		atomic_store(&ran_at, atomic_load(&nr_taken));
		atomic_store(&nr_ran, i + 1);
	}
}

/* How many tasks were taken before it. */
static uint64_t wake_at(uint64_t ns)
{
	const uint32_t nr = atomic_load(&nr_ran) + 1;
	uint64_t ready_at, at;

	sleep_until(ns - SPIN_NS);
	while (now_ns() < ns)
		;
	atomic_store(&due_ns, ns);
	atomic_fetch_add(&word.value, 1);
	pl_word_wake(&word, 1);
	ready_at = atomic_load(&nr_taken);
	while (atomic_load(&nr_ran) != nr)
		sleep_until(now_ns() + SPIN_NS);
	at = atomic_load(&ran_at);
	return at > ready_at ? at - ready_at : 0;
}

static void wake_all(const char *name)
{
	uint64_t ns = now_ns(), most = 0, nr;
	char text[32];
	int i;

	for (i = 0; i < NR_WAKES; i++) {
		/* A late waiter missed some wakes; it was late once. */
		do {
			ns += EVERY_NS;
		} while (ns < now_ns() + SPIN_NS);
		nr = wake_at(ns);
		most = nr > most ? nr : most;
	}
	snprintf(text, sizeof(text), "%s_p50", name);
	bench_put_us(text, &wait_ns, 50000);
	snprintf(text, sizeof(text), "%s_p99", name);
	bench_put_us(text, &wait_ns, 99000);
	snprintf(text, sizeof(text), "%s_max", name);
	bench_put_us(text, &wait_ns, 100000);
	snprintf(text, sizeof(text), "%s_tasks", name);
	bench_put(text, "tasks", (double)most);
}

/* ---- storms ---- */

static void under(const char *name, uint32_t nr_workers,
		  void (*storm)(void *arg), uint32_t nr)
{
	pl_task_t t;
	uint32_t i;

	start_workers(nr_workers);
	t = spawn(wait_on, NULL);
	atomic_store(&nr_alive, nr);
	for (i = 0; i < nr; i++)
		spawn(storm, (void *)(uintptr_t)(i + 1));
	wake_all(name);
	atomic_store(&is_over, true);
	must("join", pl_join(t));
	must("stop", pl_runtime_stop());
}

static void spawn_next(void *arg)
{
	atomic_fetch_add(&nr_taken, 1);
	if (!atomic_load(&is_over))
		must("spawn", pl_spawn(NULL, spawn_next, arg, NULL));
}

/* As many as may be, so that what is below them waits for its turn. */
static void spawn_more(void *arg)
{
	atomic_fetch_add(&nr_taken, 1);
	atomic_fetch_sub(&nr_alive, 1);
	while (!atomic_load(&is_over) && atomic_load(&nr_alive) < NR_DEEP) {
		atomic_fetch_add(&nr_alive, 1);
		must("spawn", pl_spawn(NULL, spawn_more, arg, NULL));
	}
}

static void yield_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&is_over)) {
		atomic_fetch_add(&nr_taken, 1);
		pl_yield();
	}
}

static void sleep_on(void *arg)
{
	const uint64_t seed = (uintptr_t)arg;
	uint64_t i;

	for (i = 0; !atomic_load(&is_over); i++) {
		atomic_fetch_add(&nr_taken, 1);
		pl_sleep(mix(seed << 32 | i) % SLEEP_MAX_NS);
	}
}

/* The first holds its worker up, the others are on the other one then. */
static void compute_or_yield(void *arg)
{
	uint64_t end_ns;

	while ((uintptr_t)arg == 1 && !atomic_load(&is_over)) {
		end_ns = now_ns() + COMPUTE_NS;
		while (now_ns() < end_ns)
			;
		pl_yield();
	}
	yield_on(arg);
}

static void spawning(void)
{
	under("spawn", 1, spawn_next, 2);
}

static void spawning_deep(void)
{
	under("spawn_deep", 1, spawn_more, NR_DEEP);
}

static void yielding(void)
{
	under("yield", 1, yield_on, NR_DEEP);
}

static void sleeping(void)
{
	under("timers", 1, sleep_on, NR_SLEEPERS);
}

static void held(void)
{
	under("held", 2, compute_or_yield, 1 + NR_YIELDERS);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "spawn", spawning },
		{ "spawn_deep", spawning_deep },
		{ "yield", yielding },
		{ "timers", sleeping },
		{ "held", held },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "fairness", cases);
}
