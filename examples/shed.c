// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A server with one worker is offered twice the requests that it can serve.
 * First it accepts all of them, and each waits for longer than the one before.
 * Then it looks at the queue delay every 5 ms and refuses requests while that
 * is above a limit: the others are answered in time.
 */
#include "usage.h"

#include <errno.h>
#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MS		1000000ULL
#define SERVE_NS	(MS / 10)
#define OVERLOAD	2
#define LOOK_NS		(5 * MS)
#define NR_MAX		1000000

/* Of one of the two runs. */
struct run {
	uint64_t	limit_ns;	/* PL_FOREVER: it refuses none */
	uint32_t	nr_offered, nr_refused, nr_accepted;
};

static uint64_t arrived_ns[NR_MAX];
static uint32_t waited_us[NR_MAX];

static void failed(const char *what)
{
	fprintf(stderr, "shed: FAILED %s\n", what);
	exit(1);
}

/* A request: it was accepted then, and takes so much of the processor. */
static void serve(void *arg)
{
	const size_t i = (size_t)((uint64_t *)arg - arrived_ns);
	const uint64_t start = pl_now();

	waited_us[i] = (uint32_t)((start - arrived_ns[i]) / 1000);
	while (pl_now() < start + SERVE_NS)
		;
}

/* By those that ran of late, and by one that has not yet. */
static bool is_overloaded(struct pl_queue_delay *delay, uint64_t limit_ns)
{
	const int ret = pl_queue_delay(delay);

	if (ret && ret != -ENODATA)
		failed("no queue delay");
	return delay->p99_ns > limit_ns || delay->waiting_ns > limit_ns;
}

static void accept_one(struct run *r)
{
	uint64_t *arrived = &arrived_ns[r->nr_accepted];

	*arrived = pl_now();
	if (pl_spawn(NULL, serve, arrived, NULL))
		failed("no task");
	r->nr_accepted++;
}

/* Requests come by the clock, whether the server keeps up or not. */
static void offer(struct run *r, uint64_t ns)
{
	const struct timespec pause = { .tv_nsec = SERVE_NS };
	const uint64_t start = pl_now();
	struct pl_queue_delay delay = PL_QUEUE_DELAY_INIT;
	uint64_t now, look = start, due;
	bool refuses = false;

	/* What was before it does not count. */
	pl_queue_delay(&delay);
	while ((now = pl_now()) < start + ns) {
		if (now >= look) {
			refuses = is_overloaded(&delay, r->limit_ns);
			look = now + LOOK_NS;
		}
		due = (now - start) * OVERLOAD / SERVE_NS;
		for (; r->nr_offered < due && r->nr_accepted < NR_MAX;
		     r->nr_offered++) {
			if (refuses)
				r->nr_refused++;
			else
				accept_one(r);
		}
		nanosleep(&pause, NULL);
	}
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The 99th percentile, in ms, of the waits of those that were accepted. */
static double run(struct run *r, uint64_t ns)
{
	struct pl_stat st = PL_STAT_INIT;

	offer(r, ns);
	do {
		pl_sleep(10 * MS);
		pl_stat_read(&st);
	} while (st.tasks_alive);
	if (!r->nr_accepted)
		failed("all were refused");
	qsort(waited_us, r->nr_accepted, sizeof(waited_us[0]), compare);
	return waited_us[r->nr_accepted * 99ULL / 100] / 1e3;
}

int main(int argc, char **argv)
{
	char **args = usage_arguments(argc, argv, 2,
				      "shed [LIMIT_MS [SECONDS]]");
	const unsigned long limit_ms = args[0] ?
		usage_number("LIMIT_MS", args[0], 1, 1000) : 20;
	const unsigned long seconds = args[0] && args[1] ?
		usage_number("SECONDS", args[1], 1, 10) : 1;
	struct run all = { .limit_ns = PL_FOREVER };
	struct run some = { .limit_ns = limit_ms * MS };
	struct pl_config cfg = PL_CONFIG_INIT;
	double all_ms, some_ms;

	cfg.nr_workers = 1;
	if (pl_runtime_start(&cfg))
		failed("no runtime");
	all_ms = run(&all, seconds * 1000 * MS);
	some_ms = run(&some, seconds * 1000 * MS);
	pl_runtime_stop();
	printf("shed: all accepted=%u p99_ms=%.1f\n", all.nr_accepted, all_ms);
	printf("shed: ok limit_ms=%lu offered=%u refused=%u p99_ms=%.1f\n",
	       limit_ms, some.nr_offered, some.nr_refused, some_ms);
	return 0;
}
