// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What a runtime does that has nothing to do: a thousand tasks wait, and the
 * kernel says how long its threads ran, and how often each was let run
 */
#include <dirent.h>
#include <unistd.h>

#include "../lib/task.h"

#define NR_TASKS	1000
#define SETTLE_MS	500
#define WATCH_MS	2000

struct ran {
	double ns;
	double times;
};

static struct count parked;
static struct pl_word go;

static void park(void *arg)
{
	(void)arg;
	count_done(&parked);
	while (!atomic_load(&go.value))
		pl_word_wait(&go, 0, PL_FOREVER);
}

/* Of one thread: ns that it ran and waited, times that it was let run. */
static struct ran ran_of(const char *tid)
{
	struct ran r = { 0, 0 };
	char path[300];
	double waited;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", tid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lf %lf %lf", &r.ns, &waited, &r.times) != 3)
		die("%s cannot be read", path);
	fclose(f);
	return r;
}

/* Of all threads but ours. */
static struct ran ran_of_others(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct ran sum = { 0, 0 }, r;
	struct dirent *e;

	if (!dir)
		die("/proc/self/task: %s", strerror(errno));
	while ((e = readdir(dir))) {
		if (*e->d_name == '.' || atoi(e->d_name) == getpid())
			continue;
		r = ran_of(e->d_name);
		sum.ns += r.ns;
		sum.times += r.times;
	}
	closedir(dir);
	return sum;
}

static void idle(void)
{
	struct ran before, after;
	int i;

	start_workers(2);
	count_init(&parked, NR_TASKS);
	for (i = 0; i < NR_TASKS; i++)
		spawn(park, NULL);
	count_wait(&parked);
	sleep_until(now_ns() + SETTLE_MS * NSEC_PER_MSEC);

	before = ran_of_others();
	sleep_until(now_ns() + WATCH_MS * NSEC_PER_MSEC);
	after = ran_of_others();
	bench_put("cpu", "%", (after.ns - before.ns) * 100 /
			      (WATCH_MS * (double)NSEC_PER_MSEC));
	bench_put("wakeups", "1/s", (after.times - before.times) * 1000 /
				    WATCH_MS);
	atomic_store(&go.value, 1);
	pl_word_wake(&go, UINT32_MAX);
	must("stop", pl_runtime_stop());
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "idle", idle },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "idle", cases);
}
