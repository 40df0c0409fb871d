/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by several of the library's tests: threads that start together, random
 * numbers, memory that runs out.
 */
#ifndef SELFTESTS_LIB_H
#define SELFTESTS_LIB_H

#include "base/base.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define TEAM_MAX	16

/*
 * Slow builds run a tenth of the rounds, which finds as much: delays are
 * longer; the simulation runs them with many seeds.
 */
#if defined(PL_SIM)
# define ROUNDS(n)	((n) / 1000 + 2)
#elif defined(PL_TSAN) || defined(PL_ASAN) || defined(PL_TEST_INJECT)
# define ROUNDS(n)	((n) / 10)
#else
# define ROUNDS(n)	(n)
#endif

struct team;

struct team_member {
	struct team	*team;
	unsigned int	nth;
};

struct team {
	void			(*fn)(unsigned int nth, void *arg);
	void			*arg;
	unsigned int		nr;
	pthread_barrier_t	start;
	pthread_t		threads[TEAM_MAX];
	struct team_member	members[TEAM_MAX];
};

static inline void *team_thread(void *arg)
{
	struct team_member *m = arg;

	pthread_barrier_wait(&m->team->start);
	m->team->fn(m->nth, m->team->arg);
	return NULL;
}

/* Runs fn(0..nr - 1, arg) in @nr threads that start at the same time. */
static inline void team_start(struct team *team, unsigned int nr,
			      void (*fn)(unsigned int nth, void *arg),
			      void *arg)
{
	unsigned int i;

	team->fn = fn;
	team->arg = arg;
	team->nr = nr;
	pthread_barrier_init(&team->start, NULL, nr);
	for (i = 0; i < nr; i++) {
		team->members[i] = (struct team_member){ team, i };
		if (pthread_create(&team->threads[i], NULL, team_thread,
				   &team->members[i]))
			abort();
	}
}

static inline void team_join(struct team *team)
{
	unsigned int i;

	for (i = 0; i < team->nr; i++)
		pthread_join(team->threads[i], NULL);
	pthread_barrier_destroy(&team->start);
}

static inline void team_run(unsigned int nr,
			    void (*fn)(unsigned int nth, void *arg), void *arg)
{
	struct team team;

	team_start(&team, nr, fn, arg);
	team_join(&team);
}

/* xorshift64: *x is the seed, not 0. */
static inline uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/*
 * Limits further mappings to @more bytes. Returns false if that is impossible:
 * a sanitizer needs mappings, and emulators do not count.
 */
static inline bool limit_memory(size_t more)
{
	struct rlimit limit;
	unsigned long pages;
	void *volatile probe;	/* otherwise clang drops the call */
	FILE *f;
	int nr;

#if defined(PL_ASAN) || defined(PL_TSAN)
	return false;
#endif
	f = fopen("/proc/self/statm", "r");
	if (!f)
		return false;
	nr = fscanf(f, "%lu", &pages);
	fclose(f);
	if (nr != 1)
		return false;
	limit.rlim_max = RLIM_INFINITY;
	limit.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + more;
	if (setrlimit(RLIMIT_AS, &limit))
		return false;
	probe = malloc(2 * more + (1UL << 20));
	free(probe);
	return !probe;
}

#endif /* SELFTESTS_LIB_H */
