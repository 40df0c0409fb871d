// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Memory of a task that is parked, and of one that was not run yet; how much
 * of what all had is given back when they have ended, and how long meanwhile
 * the next task waits
 */
#include "../lib/memory.h"
#include "../lib/task.h"

#define NR_TASKS	100000U
#define NR_MILLION	1000000U
#define NR_WARM		1000
#define SETTLE_MS	3000		/* no less after it: that was all */

static struct count parked, ended;
static struct pl_word go;

static void park(void *arg)
{
	(void)arg;
	count_done(&parked);
	while (!atomic_load(&go.value))
		pl_word_wait(&go, 0, PL_FOREVER);
	count_done(&ended);
}

static void spawn_all(uint32_t nr, void (*fn)(void *arg), void *arg)
{
	struct pl_spawn_opts opts = spawn_opts(PL_STACK_SMALL, 0);
	uint32_t i;

	for (i = 0; i < nr; i++)
		must("spawn", pl_spawn(NULL, fn, arg, &opts));
}

static void end(void *count)
{
	count_done(count);
}

static void begin(void)
{
	struct count c;

	start_workers(2);
	count_init(&c, NR_WARM);
	spawn_all(NR_WARM, end, &c);
	count_wait(&c);
}

/* Spawned now, from outside: until it has run. */
static void put_next_task(const char *name)
{
	struct count c;

	bench_begin();
	count_init(&c, 1);
	spawn_all(1, end, &c);
	count_wait(&c);
	bench_put(name, "ms", (double)(now_ns() - bench_wall_ns) /
			      NSEC_PER_MSEC);
}

static void settle(void)
{
	uint64_t before, now = memory_used();

	do {
		before = now;
		sleep_until(now_ns() + SETTLE_MS * NSEC_PER_MSEC);
		now = memory_used();
	} while (now < before);
}

static void park_all(const char *name, uint32_t nr)
{
	uint64_t before, most;
	char text[32];

	begin();
	before = memory_used();
	count_init(&parked, nr);
	count_init(&ended, nr);
	spawn_all(nr, park, NULL);
	count_wait(&parked);
	most = memory_used();
	bench_put(name, "B", (double)(most - before) / nr);

	atomic_store(&go.value, 1);
	pl_word_wake(&go, UINT32_MAX);
	count_wait(&ended);
	snprintf(text, sizeof(text), "%s_next_task", name);
	put_next_task(text);
	settle();
	snprintf(text, sizeof(text), "%s_given_back", name);
	bench_put(text, "%", 100 - 100 * memory_since(before,
						      (double)(most - before)));
	must("stop", pl_runtime_stop());
}

static void hundred_thousand(void)
{
	park_all("parked_100k", NR_TASKS);
}

static void million(void)
{
	park_all("parked_1m", NR_MILLION);
}

/* On one worker, so that none of them runs while they are counted. */
static void spawn_and_look(void *arg)
{
	uint64_t before = memory_used();

	(void)arg;
	count_init(&ended, NR_MILLION);
	spawn_all(NR_MILLION, end, &ended);
	bench_put("not_started", "B", memory_since(before, NR_MILLION));
	count_wait(&ended);
}

static void not_started(void)
{
	in_task(1, spawn_and_look, NULL);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "parked_100k", hundred_thousand },
		{ "parked_1m", million },
		{ "not_started", not_started },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "memory", cases);
}
