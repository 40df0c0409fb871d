/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Threads that park, and are woken, all on one processor: what that takes, by
 * whatever way
 *
 * The scheduler has nothing to guess.  Wakees are ordinary threads.  A waker
 * under SCHED_FIFO is not disturbed by them: what is measured is its own side.
 * One under SCHED_IDLE is left as soon as another thread is to run: what
 * is measured is until all of them have.  Where two take turns both are under
 * SCHED_BATCH: the processor changes hands when one sleeps, not when it wakes
 * the other one.
 *
 * Each figure is a median of single samples, less what it takes to look at the
 * clock; one in which not exactly those wanted were woken is taken again.
 * Where the clock counts instructions (bench/module/vm), so do they.
 */
#ifndef BENCH_PARKING_H
#define BENCH_PARKING_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "bench.h"

#define PARKING_LOTS	4
#define PARKING_SAMPLES	61
#define PARKING_CHUNK	32	/* of what follows itself: below 1 ms */
#define PARKING_SETTLE	NSEC_PER_MSEC

/* A way to park; what it has to fill in is below. */
struct parking {
	void (*open)(bool has_crew);
	/* The calling thread takes that slot of the crew, if there is one. */
	void (*join)(unsigned int slot);
	void (*park)(unsigned int lot, uint32_t seq);
	/* One in each of the first @nr lots. */
	unsigned int (*wake)(unsigned int nr);
	/* One in the lot @other, and park in the own one. */
	void (*wake_park)(unsigned int other, unsigned int own, uint32_t seq);
	/* The caller is about to block: another one is to run. */
	void (*before_block)(void);
	/* A system call that does nothing. */
	void (*empty)(void);
};

/* By open(): what parked threads look at, and whether there is work. */
static _Atomic uint32_t *parking_word[PARKING_LOTS];
static _Atomic uint32_t *parking_backlog;

static const struct parking *parking;
static atomic_bool parking_is_over;
static double parking_clock_ns;		/* from one look to the next */

static inline uint32_t parking_seq(unsigned int lot)
{
	return atomic_load(parking_word[lot]);
}

static inline void parking_signal(unsigned int lot)
{
	atomic_fetch_add(parking_word[lot], 2);
}

static inline void parking_policy(int policy)
{
	struct sched_param param = { .sched_priority = policy == SCHED_FIFO };

	if (sched_setscheduler(0, policy, &param))
		die("scheduler: %s", strerror(errno));
}

/* Afterwards threads without work are parked, and the processor is idle. */
static inline void parking_settle(void)
{
	sleep_until(now_ns() + PARKING_SETTLE);
}

static inline double parking_since(uint64_t start_ns)
{
	return (double)(now_ns() - start_ns) - parking_clock_ns;
}

/* ---- samples ---- */

struct parking_samples {
	double value[PARKING_SAMPLES];
	unsigned int nr;
};

static inline void parking_sample(struct parking_samples *s, double value)
{
	s->value[s->nr++] = value;
}

static inline double parking_median(struct parking_samples *s)
{
	return bench_median(s->value, s->nr);
}

/* What one takes of those that follow each other. */
static inline double parking_each(void (*fn)(void))
{
	struct parking_samples s = { .nr = 0 };
	uint64_t start_ns;
	unsigned int i;

	while (s.nr < PARKING_SAMPLES) {
		start_ns = now_ns();
		for (i = 0; i < PARKING_CHUNK; i++)
			fn();
		parking_sample(&s, parking_since(start_ns) / PARKING_CHUNK);
	}
	return parking_median(&s);
}

/* In a run of its own; the main thread is the waker. */
static inline void parking_begin(const struct parking *way, bool has_crew)
{
	struct parking_samples s = { .nr = 0 };
	cpu_set_t cpu;

	parking = way;
	parking->open(has_crew);
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu))
		die("affinity: %s", strerror(errno));
	parking_policy(SCHED_BATCH);
	while (s.nr < PARKING_SAMPLES)
		parking_sample(&s, parking_since(now_ns()));
	parking_clock_ns = bench_median(s.value, s.nr);
}

static inline void parking_start(pthread_t *thread, void *(*fn)(void *),
				 uintptr_t arg)
{
	if (pthread_create(thread, NULL, fn, (void *)arg))
		die("cannot start a thread");
}

/* ---- wakes ---- */

static atomic_uint parking_nr_ran, parking_nr_woken;
static _Atomic uint64_t parking_ran_ns;	/* when the last one of those ran */

static inline void *parking_wakee(void *arg)
{
	const unsigned int lot = (unsigned int)(uintptr_t)arg;
	uint32_t seq;

	parking_policy(SCHED_OTHER);
	while (seq = parking_seq(lot), !atomic_load(&parking_is_over)) {
		while (parking_seq(lot) == seq)
			parking->park(lot, seq);
		if (++parking_nr_ran == parking_nr_woken)
			parking_ran_ns = now_ns();
	}
	return NULL;
}

/* Until the call is over, and until the last one has run. */
static inline bool parking_wake(unsigned int nr, double *call, double *run)
{
	unsigned int lot, woken;
	uint64_t start_ns;

	parking_settle();
	parking_nr_ran = 0;
	parking_nr_woken = nr;
	start_ns = now_ns();
	for (lot = 0; lot < nr; lot++)
		parking_signal(lot);
	woken = parking->wake(nr);
	*call = parking_since(start_ns);
	parking_settle();
	*run = (double)(parking_ran_ns - start_ns) - parking_clock_ns;
	return woken == nr && parking_nr_ran == nr;
}

/* @name, of @nr lots, by a waker under that policy. */
static inline void parking_put_wakes(const char *name, unsigned int nr,
				     int policy)
{
	struct parking_samples s = { .nr = 0 };
	double call, run;
	char text[32];

	parking_policy(policy);
	while (s.nr < PARKING_SAMPLES)
		if (parking_wake(nr, &call, &run))
			parking_sample(&s, policy == SCHED_FIFO ? call : run);
	snprintf(text, sizeof(text), name, nr);
	bench_put(text, "ns", parking_median(&s));
}

static inline void parking_wake_none(void)
{
	if (parking->wake(1))
		die("a thread was parked");
}

/* The whole of it: no sleeper, and one, two and four in a lot each. */
static inline void parking_wakes(const struct parking *way)
{
	pthread_t wakee[PARKING_LOTS];
	unsigned int i;

	parking_begin(way, false);
	bench_put("empty_call", "ns", parking_each(way->empty));
	bench_put("wake_nobody", "ns", parking_each(parking_wake_none));
	for (i = 0; i < PARKING_LOTS; i++)
		parking_start(&wakee[i], parking_wakee, i);
	for (i = 1; i <= PARKING_LOTS; i *= 2)
		parking_put_wakes("wake_%u", i, SCHED_FIFO);
	for (i = 1; i <= PARKING_LOTS; i *= 2)
		parking_put_wakes("wake_%u.run", i, SCHED_IDLE);
	atomic_store(&parking_is_over, true);
	for (i = 0; i < PARKING_LOTS; i++)
		parking_signal(i);
	parking->wake(PARKING_LOTS);
	for (i = 0; i < PARKING_LOTS; i++)
		pthread_join(wakee[i], NULL);
}

/* ---- round trips ---- */

static inline void parking_turn(unsigned int other, unsigned int own)
{
	uint32_t seq = parking_seq(own);

	parking_signal(other);
	parking->wake_park(other, own, seq);
	while (parking_seq(own) == seq)
		parking->park(own, seq);
}

static inline void *parking_answer(void *arg)
{
	uint32_t seq = parking_seq(1);

	while (parking_seq(1) == seq)
		parking->park(1, seq);
	while (!atomic_load(&parking_is_over))
		parking_turn(0, 1);
	parking_signal(0);
	parking->wake(1);
	return arg;
}

static inline void parking_round_trip(void)
{
	parking_turn(1, 0);
}

/* Wake the other one and park, which then does the same. */
static inline void parking_round_trips(const struct parking *way,
				       const char *name)
{
	pthread_t thread;

	parking_begin(way, false);
	parking_start(&thread, parking_answer, 0);
	parking_settle();
	bench_put(name, "ns", parking_each(parking_round_trip));
	atomic_store(&parking_is_over, true);
	parking_round_trip();
	pthread_join(thread, NULL);
}

static inline void *parking_yielder(void *arg)
{
	while (!atomic_load(&parking_is_over))
		sched_yield();
	return arg;
}

static inline void parking_yield(void)
{
	sched_yield();
}

static inline void parking_getppid(void)
{
	syscall(SYS_getppid);
}

/*
 * What no round trip can do without: two switches, as two that yield to each
 * other take, and two calls that do nothing in place of those.
 */
static inline void parking_floor(const struct parking *way, const char *name)
{
	double floor_ns;
	pthread_t thread;

	parking_begin(way, false);
	/* Under which alone each yield is a switch. */
	parking_policy(SCHED_FIFO);
	floor_ns = 2 * (parking_each(way->empty) -
			parking_each(parking_getppid));
	parking_start(&thread, parking_yielder, 0);
	floor_ns += parking_each(parking_yield);
	atomic_store(&parking_is_over, true);
	pthread_join(thread, NULL);
	bench_put(name, "ns", floor_ns);
}

/* ---- a worker blocks ---- */

static int parking_pipe[2];

/* Runs while the other worker blocks, and then ends its read. */
static inline void *parking_stand_in(void *arg)
{
	uint32_t seq;

	parking->join(1);
	while (seq = parking_seq(0), !atomic_load(&parking_is_over)) {
		parking->park(0, seq);
		parking_ran_ns = now_ns();
		atomic_store(parking_backlog, 0);
		if (write(parking_pipe[1], "", 1) != 1)
			die("write: %s", strerror(errno));
	}
	return arg;
}

static inline double parking_block(void)
{
	uint64_t start_ns;
	char c;

	/* Also to be out of the crew's interval. */
	parking_settle();
	atomic_store(parking_backlog, 1);
	start_ns = now_ns();
	parking->before_block();
	if (read(parking_pipe[0], &c, 1) != 1)
		die("read: %s", strerror(errno));
	return (double)(parking_ran_ns - start_ns) - parking_clock_ns;
}

/* From before the call that blocks until another one is back in its program. */
static inline void parking_blocks(const struct parking *way)
{
	struct parking_samples s = { .nr = 0 };
	pthread_t thread;

	if (pipe(parking_pipe))
		die("pipe: %s", strerror(errno));
	parking_begin(way, true);
	parking->join(0);
	parking_start(&thread, parking_stand_in, 0);
	parking_settle();
	while (s.nr < PARKING_SAMPLES)
		parking_sample(&s, parking_block());
	bench_put("block", "ns", parking_median(&s));
	atomic_store(&parking_is_over, true);
	parking_block();
	pthread_join(thread, NULL);
}

#endif /* BENCH_PARKING_H */
