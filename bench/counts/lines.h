/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the paths of lines.c share: marks, the state of the workers beside them,
 * and stacks by owner
 *
 * A path runs ROUNDS times to warm up, and as often between two marks: stores
 * to the page MARKS, which a trace shows.
 */
#ifndef BENCH_LINES_H
#define BENCH_LINES_H

#include "owners.h"
#include "../lib/task.h"

#include <fcntl.h>
#include <unistd.h>

#define ROUNDS		64
#define WORKERS		4
#define STACKS		64	/* more than a worker caches */
#define MARKS		0x5a5a00000UL

/* What a path's tasks share: the path's own, none of the library's. */
static struct {
	struct pl_word word;
	struct pl_mutex mutex;
	struct pl_chan *chan, *back;
	struct pl__stack *stacks[STACKS];
	uint64_t deadline_ns;
	uint64_t counted;
	uint32_t nr_stolen;
	uint32_t worker;	/* which one ran it */
	int fd[2];
	int pipe[2];
	_Atomic uint32_t nr_blocked;
	_Atomic uint32_t stop;
	_Atomic uint32_t nr_ended;
	_Atomic uint32_t is_ready;
	_Atomic uint32_t nr_hoards;
} __attribute__((aligned(64))) path;

static const char *beside;
static uint32_t nr_beside;	/* workers beside the path's thread */

/* ---- marks ---- */

static inline void begin(void)
{
	*(volatile uint64_t *)MARKS = 1;
}

static inline void end(void)
{
	*(volatile uint64_t *)(MARKS + 8) = 1;
}

/* For a loop of 2 * ROUNDS: marks the second half. */
static inline void mark_round(unsigned int i)
{
	if (i == ROUNDS)
		begin();
}

/* @nr workers are parked, and none looks for work. */
static inline bool is_idle(uint32_t nr)
{
	uint32_t nr_parked = 0, i;

	for (i = 0; i < pl__rt.main.lots.nr; i++)
		nr_parked += load_relaxed(&pl__rt.main.lots.lot[i].nr_parked);
	return nr_parked == nr && !load_relaxed(&pl__rt.main.nr_searching);
}

/* Until the other workers are as they are to be. */
static inline void settle(void)
{
	while (!strcmp(beside, "idle") && !is_idle(nr_beside))
		usleep(100);
}

/* The marks around one round, with the others settled before it. */
static inline void begin_one(unsigned int i)
{
	settle();
	if (i >= ROUNDS)
		begin();
}

static inline void end_one(unsigned int i)
{
	if (i >= ROUNDS)
		end();
}

/* ---- tasks that paths share ---- */

static inline void count_end(void *arg)
{
	(void)arg;
	atomic_fetch_add(&path.nr_ended, 1);
}

/* Until the workers have run @nr tasks of count_end(). */
static inline void wait_until_ended(uint32_t nr)
{
	while (atomic_load(&path.nr_ended) < nr)
		usleep(100);
}

static inline void count_blocked(void)
{
	put_range(pl__current(), sizeof(struct pl__task), "other", "task");
	atomic_fetch_add(&path.nr_blocked, 1);
}

static inline void keep_worker(void)
{
	char c;

	if (read(path.pipe[0], &c, 1) < 0)
		die("read: %s", strerror(errno));
}

/* Keeps its worker; other tasks of that may be stolen. */
static inline void stay(void *arg)
{
	count_blocked();
	keep_worker();
	(void)arg;
}

/* A worker has a ring from its first request on: a file's are never tried. */
static inline void make_ring(void)
{
	int fd = must("open", open("/dev/zero", O_RDONLY | O_CLOEXEC));
	char c;

	while (!pl__self()->ring)
		must("read", (int)pl_read(fd, &c, 1));
	close(fd);
}

static inline void stay_with_ring(void *arg)
{
	make_ring();
	stay(arg);
}

/* ---- stacks ---- */

/* The stack that the caller, a task, runs on. */
static inline void put_own_stack(void)
{
	put_stacks(pl__current()->stack);
}

/* The stack of the calling thread, with its thread-locals. */
static inline void put_thread_stack(const char *owner)
{
	pthread_attr_t attr;
	size_t size;
	void *low;

	if (pthread_getattr_np(pthread_self(), &attr) ||
	    pthread_attr_getstack(&attr, &low, &size))
		die("no stack of a thread");
	pthread_attr_destroy(&attr);
	put_range(low, size, owner, "thread's stack");
}

/* The runtime's hook: of a worker, or the timer thread. */
static inline void put_thread(void *arg)
{
	struct pl__worker *w = pl__self();
	char owner[16] = "timer";

	if (w)
		snprintf(owner, sizeof(owner), "%u", w->index);
	put_thread_stack(owner);
	put_stripe(owner);
	(void)arg;
}

#endif /* BENCH_LINES_H */
