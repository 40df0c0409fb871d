/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of the timer thread share: a fixture with timers running,
 * and what /proc says of their thread.
 */
#ifndef SELFTESTS_TIMERS_H
#define SELFTESTS_TIMERS_H

#include "lib.h"
#include "base/sys.h"
#include "thread.h"
#include "time/timer.h"

#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>

#define NR_BUCKETS	13
#define MSEC		1000000ULL
#define FAR		(3600 * NSEC_PER_SEC)

static _Atomic int timer_tid;

static inline void note_tid(void *arg)
{
	timer_tid = (int)syscall(SYS_gettid);
}

FIXTURE(timers) {
	struct pl__timers *t;
};

FIXTURE_SETUP(timers)
{
	ASSERT_EQ(0, pl__timers_start(&self->t, NR_BUCKETS, note_tid, NULL));
	while (!timer_tid)
		sched_yield();
}

FIXTURE_TEARDOWN(timers)
{
	pl__timers_stop(self->t);
}

static inline pl_timer_t add(struct pl__timers *t, uint32_t bucket,
			     uint64_t deadline, void (*fn)(void *), void *arg)
{
	pl_timer_t id;

	if (pl__timer_add(t, NULL, bucket, deadline, fn, arg, &id))
		abort();
	return id;
}

static inline void nothing(void *arg)
{
}

static inline void count(void *arg)
{
	atomic_fetch_add((_Atomic uint32_t *)arg, 1);
}

static inline void post(void *arg)
{
	sem_post(arg);
}

/* Keeps the thread in a callback. */
struct gate {
	sem_t	entered;
	sem_t	leave;
};

static inline void gate_init(struct gate *g)
{
	sem_init(&g->entered, 0, 0);
	sem_init(&g->leave, 0, 0);
}

static inline void stand_in_gate(void *arg)
{
	struct gate *g = arg;

	sem_post(&g->entered);
	sem_wait(&g->leave);
}

/* Nothing is fired, or even looked at, until @leave is posted. */
static inline void close_gate(struct pl__timers *t, struct gate *g)
{
	gate_init(g);
	add(t, 0, 0, stand_in_gate, g);
	sem_wait(&g->entered);
}

/* Returns once all that was due when it was called has been fired. */
static inline void flush(struct pl__timers *t)
{
	sem_t done;

	sem_init(&done, 0, 0);
	add(t, 0, pl__now_ns(), post, &done);
	sem_wait(&done);
}

static inline uint64_t nr_fired(struct pl__timers *t)
{
	uint64_t added, fired, deleted, busy;
	uint32_t alive;

	pl__timers_stat(t, &added, &fired, &deleted, &busy, &alive);
	return fired;
}

static inline uint32_t nr_alive(struct pl__timers *t)
{
	uint64_t added, fired, deleted, busy;
	uint32_t alive;

	pl__timers_stat(t, &added, &fired, &deleted, &busy, &alive);
	return alive;
}

static inline bool is_asleep(void)
{
	return thread_is_asleep(timer_tid);
}

/* A thread that was woken is not asleep before it is so anew. */
static inline void until_asleep(void)
{
	while (!is_asleep())
		pl__sleep_ns(MSEC / 10);
}

static inline long nr_switches(void)
{
	return thread_nr_switches(timer_tid);
}

/*
 * How often it has slept, once it goes on no more: it may be seen asleep on its
 * way there, in a lock or a delay, and then wait for a processor for long.  -1:
 * there is no such count.
 */
static inline long settled_switches(void)
{
	long nr;

	do {
		until_asleep();
		nr = nr_switches();
		pl__sleep_ns(20 * MSEC);
	} while (!is_asleep() || nr_switches() != nr);
	return nr;
}

/* Whether it sleeps on a futex with no time limit; -1: cannot be told. */
static inline int sleeps_untimed(void)
{
	unsigned long nr, arg[4];
	char buf[256];

	if (!thread_read(timer_tid, "syscall", buf, sizeof(buf)) ||
	    sscanf(buf, "%lu %lx %lx %lx %lx", &nr, &arg[0], &arg[1], &arg[2],
		   &arg[3]) != 5)
		return -1;
	/* An emulator's host has other numbers. */
	return nr == SYS_futex ? !arg[3] : -1;
}

#endif /* SELFTESTS_TIMERS_H */
