/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "queue/aside.h"
#include "base/sys.h"

/* Of so many taken one has not started yet, if any is there. */
#define UNSTARTED_EVERY	4

static struct pl__aside_queue *queue_for(struct pl__group *g, enum pl__run run)
{
	return run == PL__RUN_COMPUTES ? &g->aside.compute :
					 &g->aside.block;
}

void pl__aside_push(struct pl__task *t, enum pl__run run)
{
	struct pl__group *g = pl__group_of(t);
	struct pl__aside_queue *q = queue_for(g, run);

	pl__lock(&g->aside.lock);
	pl__fifo_append(t->stack ? &q->resumed : &q->unstarted, &t->link);
	if (!load_relaxed(&q->nr))
		store_relaxed(&q->taken_ns, pl__now_ns());
	atomic_fetch_add(&q->nr, 1);
	pl__unlock(&g->aside.lock);
	atomic_fetch_add_explicit(&g->aside.nr_put, 1,
				  memory_order_relaxed);
}

/*
 * Locked.  Those that were started go first, but not at each turn; nor to a
 * spare of which the last was short, against what its routine did before: the
 * others of this are, most likely, and take no turn that is worth one.
 */
static struct pl__task *aside_next(struct pl__aside_queue *q, bool was_short)
{
	bool is_started_first = !was_short && ++q->turn % UNSTARTED_EVERY;
	struct pl__fifo *first, *second;
	struct pl__link *l;

	first = is_started_first ? &q->resumed : &q->unstarted;
	second = is_started_first ? &q->unstarted : &q->resumed;
	l = pl__fifo_take(first);
	if (!l)
		l = pl__fifo_take(second);
	if (!l)
		return NULL;
	atomic_fetch_sub(&q->nr, 1);
	store_relaxed(&q->taken_ns, pl__now_ns());
	return container_of(l, struct pl__task, link);
}

/* Locked.  One that computes is counted before others may look. */
static struct pl__task *aside_next_of(struct pl__group *g, enum pl__run run,
				      bool was_short)
{
	struct pl__task *t;

	if (run == PL__RUN_BLOCKS)
		return aside_next(&g->aside.block, false);
	if (!pl__nr_may_compute(g))
		return NULL;
	t = aside_next(&g->aside.compute, was_short);
	if (t)
		atomic_fetch_add(&g->nr_stalled, 1);
	return t;
}

/* Of the two queues in turn. */
struct pl__task *pl__aside_pop(struct pl__group *g, bool was_short,
			       enum pl__run *run)
{
	struct pl__aside *a = &g->aside;
	struct pl__task *t = NULL;
	uint32_t i;

	if (!pl__aside_nr(g))
		return NULL;
	pl__lock(&a->lock);
	a->turn++;
	for (i = 0; i < 2 && !t; i++) {
		*run = (a->turn + i) % 2 ? PL__RUN_BLOCKS : PL__RUN_COMPUTES;
		t = aside_next_of(g, *run, was_short);
	}
	pl__unlock(&a->lock);
	return t;
}

void pl__aside_renew_compute(struct pl__group *g)
{
	struct pl__aside *a = &g->aside;

	if (!load_relaxed(&a->compute.nr))
		return;
	pl__lock(&a->lock);
	store_relaxed(&a->compute.taken_ns, pl__now_ns());
	pl__unlock(&a->lock);
}

/* A spare may take one after this has read the clock. */
static bool is_overdue(struct pl__aside_queue *q)
{
	return load_relaxed(&q->nr) &&
	       (int64_t)(pl__now_ns() - load_relaxed(&q->taken_ns)) >=
	       (int64_t)PL__ASIDE_OVERDUE_NS;
}

struct pl__task *pl__aside_pop_overdue(struct pl__group *g)
{
	struct pl__aside *a = &g->aside;
	struct pl__task *t = NULL;

	pl__lock(&a->lock);
	if (is_overdue(&a->block))
		t = aside_next(&a->block, false);
	else if (pl__nr_may_compute(g) && is_overdue(&a->compute))
		t = aside_next(&a->compute, false);
	pl__unlock(&a->lock);
	return t;
}

/*
 * A score has what it is of above its number.  Each entry of the table is a
 * routine's address, shifted, and its score.
 */
#define NUMBER_BITS	2
#define NUMBER		((1U << NUMBER_BITS) - 1)
#define SCORE_BITS	4
#define SCORE		((1U << SCORE_BITS) - 1)

_Atomic bool pl__forecast_has_any;

static _Atomic uint64_t routines[PL__FORECAST_ROUTINES];

/* ---- scores ---- */

static uint8_t score_of(enum pl__run run, unsigned int number)
{
	return (uint8_t)((unsigned int)run << NUMBER_BITS | number);
}

static unsigned int number_of(uint8_t score)
{
	return score & NUMBER;
}

uint8_t pl__forecast_score(uint8_t score, enum pl__run run)
{
	unsigned int number = number_of(score);

	if (run == PL__RUN_SHORT)
		return number ? score - 1 : 0;
	if (score >> NUMBER_BITS != run)
		number = 0;
	return score_of(run, number + 2 < PL__FORECAST_MOST ?
			     number + 2 : PL__FORECAST_MOST);
}

uint8_t pl__forecast_blocks(void)
{
	return score_of(PL__RUN_BLOCKS, PL__FORECAST_MOST);
}

enum pl__run pl__forecast_by(uint8_t score)
{
	return number_of(score) < PL__FORECAST_SURE ?
	       PL__RUN_SHORT : (enum pl__run)(score >> NUMBER_BITS);
}

/* ---- routines ---- */

static _Atomic uint64_t *routine_entry(void (*fn)(void *arg))
{
	uint64_t hash = PL_NUMBER_OF(fn) * 0x9e3779b97f4a7c15ULL;

	return &routines[(hash >> 32) % PL__FORECAST_ROUTINES];
}

static uint64_t key_of(void (*fn)(void *arg))
{
	return (uint64_t)(uintptr_t)fn << SCORE_BITS;
}

/* A routine that has a score keeps its place, with less of it. */
void pl__forecast_add(void (*fn)(void *arg), enum pl__run run)
{
	_Atomic uint64_t *at = routine_entry(fn);
	uint64_t entry = load_relaxed(at), key = key_of(fn);
	uint8_t score = entry & SCORE;

	if (entry - score == key)
		entry = key | pl__forecast_score(score, run);
	else if (run == PL__RUN_SHORT)
		return;
	else if (number_of(score))
		entry--;
	else
		entry = key | pl__forecast_score(0, run);
	store_relaxed(at, entry);
	if (run != PL__RUN_SHORT && !load_relaxed(&pl__forecast_has_any))
		store_relaxed(&pl__forecast_has_any, true);
}

enum pl__run pl__forecast_of(void (*fn)(void *arg))
{
	uint64_t entry = load_relaxed(routine_entry(fn));
	uint8_t score = entry & SCORE;

	return entry - score == key_of(fn) ? pl__forecast_by(score) :
					     PL__RUN_SHORT;
}

void pl__forecast_reset(void)
{
	size_t i;

	for (i = 0; i < PL__FORECAST_ROUTINES; i++)
		store_relaxed(&routines[i], 0);
	store_relaxed(&pl__forecast_has_any, false);
}

void pl__background_put(struct pl__task *t)
{
	struct pl__background *b = &pl__group_of(t)->background;

	pl__lock(&b->lock);
	pl__fifo_append(&b->ready, &t->link);
	if (!load_relaxed(&b->nr))
		store_relaxed(&b->taken_ns, pl__now_ns());
	atomic_fetch_add(&b->nr, 1);
	pl__unlock(&b->lock);
}

struct pl__task *pl__background_take(struct pl__group *g)
{
	struct pl__background *b = &g->background;
	struct pl__link *l;

	if (likely(!pl__background_nr(g)) || !pl__nr_may_compute(g))
		return NULL;
	pl__lock(&b->lock);
	l = pl__fifo_take(&b->ready);
	if (l) {
		atomic_fetch_sub(&b->nr, 1);
		store_relaxed(&b->taken_ns, pl__now_ns());
	}
	pl__unlock(&b->lock);
	return l ? container_of(l, struct pl__task, link) : NULL;
}

struct pl__task *pl__background_take_overdue(struct pl__group *g)
{
	struct pl__background *b = &g->background;
	struct pl__task *t;

	/* Another thread may have taken one after the clock was read. */
	if (likely(!pl__background_nr(g)) ||
	    (int64_t)(pl__now_ns() - load_relaxed(&b->taken_ns)) <
	    (int64_t)PL__BACKGROUND_NS)
		return NULL;
	t = pl__background_take(g);
	if (t)
		atomic_fetch_add_explicit(&b->nr_late, 1,
					  memory_order_relaxed);
	return t;
}
