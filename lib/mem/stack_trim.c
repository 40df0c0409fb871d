/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stack_trim: gives the memory of idle stacks back to the kernel
 *
 * That takes the kernel long, so it is done with the pool's lock dropped.
 * Stacks that are being cleaned are not idle meanwhile:
 *
 *	cleaner				thread that wants a stack
 *	lock				lock
 *	idle, dirty &= ~run		take one that is warm or idle,
 *	nr_cleaning++			or map an area
 *	unlock				unlock
 *	madvise(run)			if (there was none, and nr_cleaning)
 *	lock				    begin again
 *	idle |= run
 *	nr_cleaning--
 *	unlock
 *
 * Invariant: no stack that a task uses is cleaned, and no thread that wants a
 * stack fails although one is being cleaned.  The lock orders the changes of
 * idle: a run that the cleaner took is not got, and an area in which a run is
 * being cleaned is not all idle, so it is not unmapped.
 */
#include "mem/stack.h"
#include "base/inject.h"
#include "base/sys.h"
#include "mem/valgrind.h"

#include <sys/mman.h>

#define NR_AT_ONCE	16	/* stacks that cool down under one lock */
#define SLICE_NS	(50 * 1000)	/* time of a step of aging */
#define PAUSE_NS	(50 * 1000)	/* between two of them */

/*
 * Gives up to @most warm stacks to their areas, where each is a bit; returns
 * how many.
 */
static uint32_t cool_down_some(struct pl__stack_pool *p, uint32_t most)
{
	struct pl__stack_area *a;
	struct pl__stack *st;
	uint32_t nr = 0;

	pl__lock(&p->lock);
	for (st = p->warm; st && nr < most; st = st->next, nr++) {
		a = st->area;
		a->idle |= 1ULL << st->index;
		a->dirty |= 1ULL << st->index;
		list_del_init(&a->list);
		list_add(&a->list, &p->areas);
	}
	p->warm = st;
	store_relaxed(&p->nr_warm, load_relaxed(&p->nr_warm) - nr);
	pl__unlock(&p->lock);
	atomic_fetch_sub(p->nr_out, nr);
	return nr;
}

/* Adjacent dirty stacks, the first ones of @a, and @most at once. */
struct run {
	uint32_t		first, nr;
};

static struct run first_run(struct pl__stack_area *a, uint32_t most)
{
	struct run run = { .first = (uint32_t)__builtin_ctzll(a->dirty) };
	uint64_t rest = a->dirty >> run.first;

	while (run.nr < most && rest & 1) {
		run.nr++;
		rest >>= 1;
	}
	return run;
}

static uint64_t bits_of(struct run run)
{
	return (run.nr == 64 ? UINT64_MAX : (1ULL << run.nr) - 1) << run.first;
}

/*
 * Guards stay.  What lies below a stack without a guard may have been written
 * to by a frame that stepped over the canary.
 */
static size_t stack_clean(struct pl__stack_pool *p, struct pl__stack_area *a,
			  struct run run)
{
	char *from = pl__stack_slot_at(p, a, run.first);
	char *to = pl__stack_slot_at(p, a, run.first + run.nr);
	uint32_t i;

	for (i = run.first; i < run.first + run.nr; i++)
		pl__valgrind_no_access(pl__stack_slot_at(p, a, i) + p->size,
				       p->size);
	if (a->guarded & 1ULL << run.first)
		from += p->size;
	if (pl__advise(from, (size_t)(to - from), MADV_DONTNEED))
		return 0;
	return run.nr * p->size;
}

/* Under the lock: the run is no longer idle, or the area in no list. */
static struct pl__stack_area *take_dirty(struct pl__stack_pool *p,
					 struct run *run)
{
	struct pl__stack_area *a;

	a = list_entry(p->areas.next, struct pl__stack_area, list);
	if (list_empty(&p->areas) || !a->dirty)
		return NULL;
	p->nr_cleaning++;
	run->nr = 0;
	if (a->idle == pl__stack_all_of(p)) {
		list_del_init(&a->list);
		return a;
	}
	*run = first_run(a, p->nr_at_once);
	a->idle &= ~bits_of(*run);
	a->dirty &= ~bits_of(*run);
	pl__stack_area_place(p, a);
	return a;
}

/*
 * Unmaps an area without used stacks, or gives back the memory of idle stacks
 * in another; false: there is none.
 */
static bool trim_some(struct pl__stack_pool *p, size_t *given)
{
	struct pl__stack_area *a;
	struct run run;

	pl__lock(&p->lock);
	a = take_dirty(p, &run);
	pl__unlock(&p->lock);
	if (!a)
		return false;

	PL_INJECT("clean");
	if (run.nr) {
		*given += stack_clean(p, a, run);
	} else {
		pl__stack_area_free(p, a);
		*given += pl__stack_area_size(p);
	}
	PL_INJECT("clean");

	pl__lock(&p->lock);
	p->nr_cleaning--;
	if (run.nr) {
		a->idle |= bits_of(run);
		/* Others were cleaned meanwhile: now it is to be unmapped. */
		if (a->idle == pl__stack_all_of(p))
			a->dirty |= bits_of(run);
		pl__stack_area_place(p, a);
	}
	pl__unlock(&p->lock);
	return true;
}

bool pl__stacks_is_trim_due(struct pl__stacks *s)
{
	uint32_t cls;

	for (cls = 0; cls < PL__STACK_CLASSES; cls++)
		if (load_relaxed(&s->pools[cls].nr_warm) >
		    s->pools[cls].nr_warm_max)
			return true;
	return false;
}

size_t pl__stacks_trim(struct pl__stacks *s)
{
	size_t given = 0;
	uint32_t cls;

	for (cls = 0; cls < PL__STACK_CLASSES; cls++) {
		while (cool_down_some(&s->pools[cls], NR_AT_ONCE))
			;
		while (trim_some(&s->pools[cls], &given))
			;
	}
	return given;
}

/* Stacks that were warm all the time since the last look were of no use. */
static void stack_look(struct pl__stack_pool *p)
{
	pl__lock(&p->lock);
	p->nr_unused = p->nr_low > p->nr_warm_max ? p->nr_low : 0;
	p->nr_low = load_relaxed(&p->nr_warm);
	pl__unlock(&p->lock);
}

/*
 * Gives back a little; false: there is no more.  All cool down first, as an
 * area of which no stack is used goes back in one call.
 */
static bool age_some(struct pl__stack_pool *p)
{
	size_t given = 0;
	uint32_t nr;

	if (!p->nr_unused)
		return trim_some(p, &given);
	nr = p->nr_unused < NR_AT_ONCE ? p->nr_unused : NR_AT_ONCE;
	nr = cool_down_some(p, nr);
	p->nr_unused = nr ? p->nr_unused - nr : 0;
	return true;
}

/* Until the end of the slice; true: there is more to give back. */
static bool age_all(struct pl__stacks *s)
{
	uint64_t end_ns = pl__now_ns() + SLICE_NS;
	uint32_t cls;

	for (cls = 0; cls < PL__STACK_CLASSES; cls++)
		while (age_some(&s->pools[cls]))
			if (pl__now_ns() >= end_ns)
				return true;
	return false;
}

uint64_t pl__stacks_age(struct pl__stacks *s, uint64_t now_ns)
{
	uint32_t cls;

	if (now_ns >= s->look_ns) {
		s->look_ns = now_ns + PL__STACKS_AGE_NS;
		for (cls = 0; cls < PL__STACK_CLASSES; cls++)
			stack_look(&s->pools[cls]);
	}
	if (age_all(s))
		return PAUSE_NS;
	return pl__stacks_is_trim_due(s) ? s->look_ns - now_ns : UINT64_MAX;
}
