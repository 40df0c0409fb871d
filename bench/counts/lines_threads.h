/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Paths of lines.c in which several threads have a part: a thief, a sleeper,
 * the timer thread, and a thread that is no worker
 */
#ifndef BENCH_LINES_THREADS_H
#define BENCH_LINES_THREADS_H

#include "lines.h"

#include <pthread.h>

/* ---- a thief ---- */

#define HOARD		ROUNDS	/* tasks of each victim */
#define HOARDS		(HOARD * (WORKERS - 1))

/* By the thief, which is the only worker that runs. */
static inline void stolen(void *arg)
{
	uint32_t i = path.nr_stolen++;

	mark_round(i);
	if (i == 2 * ROUNDS)
		end();
	if (path.nr_stolen == HOARDS)
		pl_word_wake(&path.word, 1);
	(void)arg;
}

/* A victim: queues tasks, and keeps its worker, so that a thief has to come. */
static inline void stay_behind_tasks(void *arg)
{
	uint32_t i;

	count_blocked();
	while (!atomic_load(&path.is_ready))
		usleep(100);
	for (i = 0; i < HOARD; i++)
		must("spawn", pl_spawn(NULL, stolen, NULL, NULL));
	atomic_fetch_add(&path.nr_hoards, 1);
	keep_worker();
	(void)arg;
}

/* Its worker has nothing else to run until all tasks were stolen. */
static inline void steal(void)
{
	atomic_store(&path.is_ready, 1);
	while (atomic_load(&path.nr_hoards) < nr_beside)
		usleep(100);
	pl_word_wait(&path.word, 0, PL_FOREVER);
	if (path.nr_stolen != HOARDS)
		die("steal: %u of %u tasks ran", path.nr_stolen, HOARDS);
}

/* ---- sleeps ---- */

/* Keeps the worker from parking, but lets it look around. */
static inline void stay_awake(void *arg)
{
	put_own_stack();
	while (!atomic_load(&path.stop)) {
		usleep(100);
		pl_yield();
	}
	(void)arg;
}

static inline void sleep_on(void)
{
	pl_task_t t = spawn(stay_awake, NULL);
	unsigned int i;

	for (i = 0; i < 2 * ROUNDS; i++) {
		mark_round(i);
		must("sleep", pl_sleep(NSEC_PER_MSEC / 2));
	}
	end();
	atomic_store(&path.stop, 1);
	pl_join(t);
}

/* ---- the timer thread ---- */

#define FIRE_NS		(5 * NSEC_PER_SEC)	/* until all sleep */
#define FIRE_AT_ONCE	16	/* timers that are due together */
#define FIRE_APART_NS	(50 * NSEC_PER_MSEC)

static inline uint64_t due_ns(uint64_t i)
{
	return path.deadline_ns + i / FIRE_AT_ONCE * FIRE_APART_NS + i;
}

static inline void sleep_until_due(void *arg)
{
	atomic_fetch_add(&path.nr_blocked, 1);
	must("sleep", pl_sleep_until(due_ns((uintptr_t)arg)));
}

/* Called by the timer thread. */
static inline void fire_begin(void *arg)
{
	(void)arg;
	begin();
}

static inline void fire_end(void *arg)
{
	(void)arg;
	end();
	atomic_store(&path.stop, 1);
}

/* The worker waits in the kernel until all have fired. */
static inline void fire(void)
{
	pl_task_t t[2 * ROUNDS];
	uint32_t nr_others = atomic_load(&path.nr_blocked), i;

	path.deadline_ns = pl_now() + FIRE_NS;
	for (i = 0; i < 2 * ROUNDS; i++)
		t[i] = spawn(sleep_until_due, (void *)(uintptr_t)i);
	must("add", pl_timer_add(NULL, due_ns(ROUNDS) - 1, fire_begin, NULL));
	must("add", pl_timer_add(NULL, due_ns(2 * ROUNDS) - 1, fire_end,
				 NULL));
	while (atomic_load(&path.nr_blocked) < nr_others + 2 * ROUNDS)
		pl_yield();
	if (pl_now() >= path.deadline_ns)
		die("fire: the tasks went to sleep too late");
	while (!atomic_load(&path.stop))
		usleep(1000);
	for (i = 0; i < 2 * ROUNDS; i++)
		pl_join(t[i]);
}

/* ---- a thread that is no worker ---- */

/* No worker runs what it spawns: all of them are busy. */
static inline void thread_spawn(void)
{
	unsigned int i;

	for (i = 0; i < 2 * ROUNDS; i++) {
		mark_round(i);
		must("spawn", pl_spawn(NULL, count_end, NULL, NULL));
	}
	end();
}

static inline void *run_thread(void *fn)
{
	put_thread_stack("thread");
	(*(void (**)(void))fn)();
	put_stripe("thread");
	return NULL;
}

static inline void in_thread(void (*fn)(void))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_thread, &fn))
		die("no thread");
	pthread_join(thread, NULL);
}

#endif /* BENCH_LINES_THREADS_H */
