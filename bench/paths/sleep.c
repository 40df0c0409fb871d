// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * How late sleepers are: one that sleeps a millisecond again and again, ten
 * thousand that each sleep 100 ms from when they come to it, and as many that
 * are due one by one, 10 us apart
 *
 * The lone one sleeps to the marks of a clock, so that a late one does not put
 * off the next.  Of the ten thousand, a fast spawner has them all due within
 * the time that it took; the third case is the same for all peers.
 */
#include "../lib/task.h"

#define NR_SLEEPS	1000
#define SLEEP_NS	NSEC_PER_MSEC
#define NR_SLEEPERS	10000
#define LONG_NS		(100 * NSEC_PER_MSEC)
#define APART_NS	10000

static struct hist late;
static uint64_t late_ns[NR_SLEEPERS];
static uint64_t first_ns;

static void sleep_often(void *arg)
{
	uint64_t ns = pl_now();
	int i;

	(void)arg;
	for (i = 0; i < NR_SLEEPS; i++) {
		ns += SLEEP_NS;
		pl_sleep_until(ns);
		hist_add(&late, pl_now() - ns);
	}
}

static void one(void)
{
	in_task(2, sleep_often, NULL);
	bench_put_us("1ms_p50", &late, 50000);
	bench_put_us("1ms_p99", &late, 99000);
}

static void sleep_long(void *arg)
{
	const uint64_t ns = pl_now() + LONG_NS;

	pl_sleep_until(ns);
	*(uint64_t *)arg = pl_now() - ns;
}

/* The first is due when the last should have come to it. */
static void sleep_in_turn(void *arg)
{
	uint64_t *mine = arg;
	const uint64_t ns = first_ns + (uint64_t)(mine - late_ns) * APART_NS;

	pl_sleep_until(ns);
	*mine = pl_now() - ns;
}

static void sleep_all(void (*fn)(void *arg))
{
	static pl_task_t tasks[NR_SLEEPERS];
	struct pl_spawn_opts opts = spawn_opts(PL_STACK_SMALL, 0);
	int i;

	for (i = 0; i < NR_SLEEPERS; i++)
		must("spawn", pl_spawn(&tasks[i], fn, &late_ns[i], &opts));
	for (i = 0; i < NR_SLEEPERS; i++) {
		pl_join(tasks[i]);
		hist_add(&late, late_ns[i]);
	}
}

static void all_long(void *arg)
{
	(void)arg;
	sleep_all(sleep_long);
}

static void all_in_turn(void *arg)
{
	(void)arg;
	first_ns = pl_now() + 3 * LONG_NS;
	sleep_all(sleep_in_turn);
}

static void in_turn(void)
{
	in_task(2, all_in_turn, NULL);
	bench_put_us("10k_in_turn_p50", &late, 50000);
	bench_put_us("10k_in_turn_p99", &late, 99000);
}

static void many(void)
{
	in_task(2, all_long, NULL);
	bench_put_us("10k_p50", &late, 50000);
	bench_put_us("10k_p99", &late, 99000);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "1ms", one },
		{ "10k", many },
		{ "10k_in_turn", in_turn },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "sleep", cases);
}
