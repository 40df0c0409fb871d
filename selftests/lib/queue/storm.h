/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Storms, and marks that wait in them: how many tasks were taken from when a
 * mark was ready until it ran.  rt.h is included before this.
 *
 * A storm is tasks that spawn others, or yield, without end, and count.  It
 * gives up long after what is measured should have run.
 */
#ifndef SELFTESTS_STORM_H
#define SELFTESTS_STORM_H

#include "count.h"

/*
 * Of parklot-scheduling(7): one of so many is the oldest spawned; an event,
 * once it was looked for; comes from another's queue.
 */
#define EVERY		64
#define EVENT_EVERY	8

#define NR_MARKS	50
#define NR_YIELDERS	20

static atomic_long nr_taken;
static atomic_int is_over, nr_storms, nr_left;
static uint64_t end_ns;			/* of storms, at the latest */

/* No more workers than that: one that takes part would count as well. */
static inline void begin(uint32_t nr_workers, int nr_marks)
{
	end_ns = pl_now() + stuck_ns() / 2;
	atomic_store(&nr_left, nr_marks);
	start_with(nr_workers, nr_workers);
}

/* ---- what is measured ---- */

struct mark {
	atomic_long	ready, ran;	/* at so many tasks taken */
	atomic_int	nr_runs;
	struct pl_word	word;
};

static struct mark marks[NR_MARKS];

/* Ready now, at the latest: the waker may itself come late. */
static inline void mark_ready(struct mark *m)
{
	atomic_store(&m->ready, atomic_load(&nr_taken));
}

static inline void mark_ran(struct mark *m)
{
	atomic_store(&m->ran, atomic_load(&nr_taken));
	atomic_fetch_add(&m->nr_runs, 1);
	if (atomic_fetch_sub(&nr_left, 1) == 1)
		atomic_store(&is_over, 1);
}

static inline void run_mark(void *arg)
{
	mark_ran(arg);
}

static inline long waited(struct mark *m)
{
	return atomic_load(&m->ran) - atomic_load(&m->ready);
}

/* ---- storms ---- */

/* Whether one more is to come after the one that asks. */
static inline bool goes_on(void)
{
	long nr = atomic_fetch_add(&nr_taken, 1);

	return !atomic_load(&is_over) && (nr % 256 || pl_now() < end_ns);
}

static inline void spawn_next(void *arg)
{
	if (goes_on())
		spawn(spawn_next, arg);
	else
		atomic_fetch_sub(&nr_storms, 1);
}

static inline void yield_on(void *arg)
{
	while (goes_on())
		pl_yield();
	atomic_fetch_sub(&nr_storms, 1);
}

static inline void spawn_urgent(void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.flags = PL_SPAWN_URGENT;
	while (goes_on())
		EXPECT_EQ(0, pl_spawn(NULL, nothing, NULL, &opts));
	atomic_fetch_sub(&nr_storms, 1);
}

static inline void begin_storm(void (*fn)(void *arg), int nr)
{
	atomic_fetch_add(&nr_storms, nr);
	while (nr--)
		spawn(fn, NULL);
}

/* ---- marks below a storm, or in it ---- */

struct storm {
	void	(*fn)(void *arg);
	int	nr;
};

/* The marks lie below all that comes, the first of them lowest. */
static inline void queue_marks(void *arg)
{
	struct storm *s = arg;
	int i;

	for (i = 0; i < NR_MARKS; i++) {
		spawn(run_mark, &marks[i]);
		mark_ready(&marks[i]);
	}
	begin_storm(s->fn, s->nr);
}

static inline void wake(struct mark *m)
{
	atomic_fetch_add(&m->word.value, 1);
	pl_word_wake(&m->word, 1);
	mark_ready(m);
}

static inline void wait_again(void *arg)
{
	struct mark *m = arg;
	uint32_t i;

	for (i = 0; !is_over; i++) {
		while (atomic_load(&m->word.value) == i)
			pl_word_wait(&m->word, i, PL_FOREVER);
		mark_ran(m);
	}
}

#endif /* SELFTESTS_STORM_H */
