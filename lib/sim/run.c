/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Runs, each in a process of its own: what a run before it left behind, in the
 * library or in the program, would decide as well.
 */
#include "sim/state.h"

#include "parklot/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The library's, above this room. */
int __attribute__((weak)) pl_runtime_start(const void *cfg);
int __attribute__((weak)) pl_runtime_stop(void);
int __attribute__((weak)) pl_runtime_backend(void);

static void __attribute__((noreturn))
child(uint64_t seed, void (*fn)(void *arg), void *arg,
      struct pl__sim_shared *shared)
{
	pl__sim_begin(seed);
	pl__sim.shared = shared;
	if (shared->choices.is_given) {
		pl__sim.choices = &shared->choices;
		pl__sim.is_pct = false;
	}
	fn(arg);
	if (pl_runtime_stop)
		pl_runtime_stop();
	exit(0);
}

static int check_context(void (*fn)(void *arg))
{
	if (!fn)
		return -EINVAL;
	if (pl__sim_is_on || (pl_runtime_backend && pl_runtime_backend()))
		return -EBUSY;
	return 0;
}

static int run(uint64_t seed, void (*fn)(void *arg), void *arg,
	       struct pl__sim_shared *shared)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		child(seed, fn, arg, shared);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!status)
		return 0;
	if (WIFSIGNALED(status))
		fprintf(stderr, "sim: seed %llu: died of signal %d (%s)\n",
			(unsigned long long)seed, WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) != PL__SIM_STATUS)
		fprintf(stderr, "sim: seed %llu: exit status %d\n",
			(unsigned long long)seed, WEXITSTATUS(status));
	return 1;
}

struct pl__sim_shared *pl__sim_shared_map(void)
{
	void *p = mmap(NULL, sizeof(struct pl__sim_shared),
		       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		       0);

	return p == MAP_FAILED ? NULL : p;
}

int pl_sim_run(uint64_t seed, void (*fn)(void *arg), void *arg)
{
	return pl_sim_seeds(seed, 1, fn, arg);
}

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t nr_distinct(uint64_t *hashes, uint64_t nr)
{
	uint64_t i, distinct = 0;

	qsort(hashes, nr, sizeof(*hashes), order);
	for (i = 0; i < nr; i++)
		distinct += !i || hashes[i] != hashes[i - 1];
	return distinct;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void pl__sim_say(const struct pl__sim_shared *shared, uint64_t *hashes,
		 uint64_t nr, double s, char *to, size_t size)
{
	uint64_t pairs = 0;
	size_t i;

	for (i = 0; i < PL__SIM_PAIRS / 64; i++)
		pairs += (uint64_t)__builtin_popcountll(shared->pairs[i]);
	snprintf(to, size, "sim: %llu seeds passed, %llu schedules differed, %llu pairs of points; %.0f runs/s",
		 (unsigned long long)nr,
		 (unsigned long long)nr_distinct(hashes, nr),
		 (unsigned long long)pairs, s > 0 ? (double)nr / s : 0);
}

int pl_sim_seeds(uint64_t from, uint64_t nr, void (*fn)(void *arg), void *arg)
{
	struct pl__sim_shared *shared;
	int ret = check_context(fn);
	uint64_t *hashes, i;
	char text[128];
	double begin;

	if (ret)
		return ret;
	if (!nr || nr > SIZE_MAX / sizeof(*hashes))
		return -EINVAL;
	shared = pl__sim_shared_map();
	hashes = malloc(nr * sizeof(*hashes));
	if (!shared || !hashes) {
		ret = -ENOMEM;
		goto out;
	}
	begin = seconds();
	for (i = 0; i < nr; i++) {
		ret = run(from + i, fn, arg, shared);
		if (ret)
			break;
		hashes[i] = shared->hash;
	}
	if (nr > 1) {
		pl__sim_say(shared, hashes, i, seconds() - begin, text,
			    sizeof(text));
		fprintf(stderr, "%s\n", text);
	}
out:
	free(hashes);
	if (shared)
		munmap(shared, sizeof(*shared));
	return ret;
}

/*
 * The next schedule in order: the last choice that has another one left takes
 * it, and what came after is chosen anew.  False: that was the last.
 */
static bool choices_next(struct pl__sim_choices *c)
{
	uint32_t i = c->nr;

	while (i && c->at[i - 1].chosen + 1 == c->at[i - 1].of)
		i--;
	if (!i)
		return false;
	c->at[i - 1].chosen++;
	c->nr_given = i;
	return true;
}

int pl_sim_all(uint32_t most, void (*fn)(void *arg), void *arg)
{
	struct pl__sim_shared *shared;
	struct pl__sim_choices *c;
	int ret = check_context(fn);
	uint64_t nr = 0;

	if (ret)
		return ret;
	shared = pl__sim_shared_map();
	if (!shared)
		return -ENOMEM;
	c = &shared->choices;
	c->is_given = true;
	c->max_preempted = most;
	do {
		c->nr = c->nr_preempted = 0;
		ret = run(nr, fn, arg, shared);
		nr++;
	} while (!ret && choices_next(c));
	fprintf(stderr, ret ? "sim: schedule %llu failed\n" :
			      "sim: all %llu schedules passed\n",
		(unsigned long long)nr);
	munmap(shared, sizeof(*shared));
	return ret;
}

/* PARKLOT_SIM=SEED: the whole program. */
static void __attribute__((constructor)) begin_by_environment(void)
{
	const char *s = getenv("PARKLOT_SIM");
	unsigned long long seed;
	char *end;

	if (!s)
		return;
	errno = 0;
	seed = strtoull(s, &end, 0);
	if (end == s || *end || *s == '-' || errno) {
		fprintf(stderr, "sim: PARKLOT_SIM=%s: not a seed, which is a number\n",
			s);
		exit(2);
	}
	pl__sim_begin(seed);
}

void pl_sim_block(uint64_t ns)
{
	struct timespec ts = pl__sim_timespec(ns);

	nanosleep(&ts, NULL);
}

void pl_sim_compute(uint64_t ns)
{
	if (pl__sim_is_on)
		pl__sim_compute(ns);
}
