// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spaces: their owners and their parts.
 *
 * A space is made at open and is empty until SETUP gives it its lots and the
 * two areas of shared pages, struct parklot_lots. These are published once and
 * live as long as the space, which lives as long as the open file: calls in
 * flight and mappings hold the file. So nothing here has a count of references,
 * and nothing is freed under a sleeper.
 *
 *	setup				any other call
 *	make the lots			lots = space->lots	[setup-b]
 *	space->lots = lots  [setup-a]	if (lots) use them
 */
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/parklot.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/stddef.h>
#include <linux/wait.h>

#include "charge.h"
#include "compat.h"
#include "feature.h"
#include "inject.h"
#include "pool.h"
#include "space.h"
#include "worker.h"

/* A power of two: kmalloc() aligns such a size to itself. */
static_assert(!(sizeof(struct parklot_lots) &
		(sizeof(struct parklot_lots) - 1)));
/* One line each; the offsets are the same for programs of 32 bits. */
static_assert(sizeof(struct parklot_counters) == PARKLOT_LINE);
static_assert(sizeof(struct parklot_words) == PARKLOT_LINE);
static_assert(sizeof(struct parklot_lot_counters) == PARKLOT_LINE);
static_assert(sizeof(struct parklot_cpu_counters) == PARKLOT_LINE);
static_assert(sizeof(struct parklot_lot_words) == PARKLOT_LINE);
static_assert(sizeof(struct parklot_worker_words) == PARKLOT_LINE);
static_assert(offsetof(struct parklot_park, deadline_ns) % 8 == 0);

/* Results lie in the part that the first version has: each caller has that. */
static_assert(offsetofend(struct parklot_query, features) ==
	      PARKLOT_QUERY_SIZE_VER0);
static_assert(offsetofend(struct parklot_setup, words_size) ==
	      PARKLOT_SETUP_SIZE_VER0);
static_assert(offsetofend(struct parklot_park, reason) ==
	      PARKLOT_PARK_SIZE_VER0);
static_assert(offsetofend(struct parklot_wake, woken) ==
	      PARKLOT_WAKE_SIZE_VER0);
static_assert(offsetofend(struct parklot_crew, flags) ==
	      PARKLOT_CREW_SIZE_VER0);
static_assert(offsetofend(struct parklot_worker, flags) ==
	      PARKLOT_WORKER_SIZE_VER0);
static_assert(offsetof(struct parklot_wake_park, park) % 8 == 0);

static void area_free(struct parklot_area *area)
{
	u32 i;

	for (i = 0; i < area->nr_pages; i++) {
		__free_page(area->pages[i]);
		cond_resched();
	}
	kfree(area->pages);
}

/*
 * A space with a crew is freed, and its charge returned, a grace period after
 * its close. A SETUP that may not pin enough waits for those spaces first.
 */
static DECLARE_WAIT_QUEUE_HEAD(deferred_wait);
static atomic_t nr_deferred = ATOMIC_INIT(0);	/* spaces, so far */
static atomic_t nr_freed = ATOMIC_INIT(0);	/* deferred ones, freed */

static u32 area_nr_pages(u32 nr_lines)
{
	return DIV_ROUND_UP(nr_lines * PARKLOT_LINE, PAGE_SIZE);
}

/* Allocates @nr_lines; on failure the caller calls area_free(). */
static int area_alloc(struct parklot_area *area, u32 nr_lines)
{
	u32 nr_pages = area_nr_pages(nr_lines);
	struct page *page;

	area->pages = kcalloc(nr_pages, sizeof(*area->pages),
			      PARKLOT_GFP);
	if (!area->pages)
		return -ENOMEM;
	while (area->nr_pages < nr_pages) {
		page = alloc_page(PARKLOT_GFP | __GFP_ZERO);
		if (!page)
			return -ENOMEM;
		area->pages[area->nr_pages++] = page;
	}
	return 0;
}

/* Returns line @nr in the kernel's mapping; no line crosses a page. */
static void *area_line(const struct parklot_area *area, u32 nr)
{
	u32 offset = nr * PARKLOT_LINE;

	return page_address(area->pages[offset / PAGE_SIZE]) +
	       offset % PAGE_SIZE;
}

static void lots_free(struct parklot_lots *lots)
{
	if (!lots)
		return;
	if (parklot_is_built(PARKLOT_FEAT_CREW) && lots->pool)
		parklot_pool_destroy(lots->pool);
	area_free(&lots->words);
	area_free(&lots->counters);
	kvfree(lots->lot);
	parklot_charge_return(&lots->charge);
	kfree(lots);
}

/* A power of two, since only such sizes are sure to be aligned. */
static size_t lot_array_size(u32 nr_lots)
{
	return roundup_pow_of_two(nr_lots * sizeof(struct parklot_lot));
}

/* Returns the number of processors' lines: 0 without workers. */
static u32 lots_nr_cpus(u32 nr_workers)
{
	return nr_workers ? nr_cpu_ids : 0;
}

/*
 * Returns the number of pages to charge: both areas, with a pointer for each
 * page; lots; slots; processors, with two pointers each.
 */
static unsigned long lots_nr_pages(u32 nr_lots, u32 nr_workers)
{
	u32 nr_cpus = lots_nr_cpus(nr_workers);
	unsigned long nr = area_nr_pages(1 + nr_lots + nr_cpus) +
			   area_nr_pages(1 + nr_lots + nr_workers);
	size_t size = lot_array_size(nr_lots) +
		      (nr + nr_workers + 2 * nr_cpus) * sizeof(void *);

	return nr + DIV_ROUND_UP(size, PAGE_SIZE);
}

/* Creates the pool, unless there are 0 workers. */
static int lots_create_pool(struct parklot_lots *lots, u32 nr_workers)
{
	struct parklot_pool *pool;
	u32 i;

	if (!parklot_is_built(PARKLOT_FEAT_CREW) || !nr_workers)
		return 0;
	pool = parklot_pool_create(nr_workers,
				   area_line(&lots->counters, 0),
				   area_line(&lots->words, 0));
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	for (i = 0; i < nr_cpu_ids; i++)
		parklot_pool_set_line(pool, i,
				      area_line(&lots->counters,
						1 + lots->nr_lots + i));
	lots->pool = pool;
	return 0;
}

/*
 * Charges the caller. If that fails, waits until as many spaces are freed as
 * are deferred now, and tries again. Spaces of other users are among them: the
 * wait is for grace periods, not for the memory of other users.
 */
static int lots_charge(struct parklot_lots *lots, unsigned long nr_pages)
{
	int deferred = atomic_read(&nr_deferred);
	int freed, err;

	/*
	 * [charge-a] pairs with [charge-b] in space_free_deferred(): nr_freed
	 * is read before the charge is tried. Otherwise a space that is freed
	 * in between would count as freed before, although its pages made the
	 * charge fail, and SETUP would fail without a second try.
	 */
	freed = atomic_read_acquire(&nr_freed);
	PARKLOT_INJECT("charge-a");
	err = parklot_charge_take(&lots->charge, nr_pages);
	if (!err || freed == deferred)
		return err;
	if (wait_event_killable(deferred_wait,
				atomic_read(&nr_freed) - deferred >= 0))
		return -EINTR;
	return parklot_charge_take(&lots->charge, nr_pages);
}

static struct parklot_lots *lots_create(u32 nr_lots, u32 nr_workers)
{
	struct parklot_lots *lots;
	int err;
	u32 i;

	lots = kzalloc(sizeof(*lots), PARKLOT_GFP);
	if (!lots)
		return ERR_PTR(-ENOMEM);
	lots->nr_lots = nr_lots;
	err = lots_charge(lots, lots_nr_pages(nr_lots, nr_workers));
	if (err) {
		lots_free(lots);
		return ERR_PTR(err);
	}
	/* A failure is reported to the caller, and need not fill the log. */
	lots->lot = kvzalloc(lot_array_size(nr_lots),
			     PARKLOT_GFP);
	if (!lots->lot ||
	    area_alloc(&lots->counters,
		       1 + nr_lots + lots_nr_cpus(nr_workers)) ||
	    area_alloc(&lots->words, 1 + nr_lots + nr_workers) ||
	    lots_create_pool(lots, nr_workers)) {
		lots_free(lots);
		return ERR_PTR(-ENOMEM);
	}
	for (i = 0; i < nr_lots; i++) {
		parklot_lot_init(&lots->lot[i],
				 area_line(&lots->counters, 1 + i),
				 area_line(&lots->words, 1 + i));
		/* No nr_interrupts so far: the first park looks for its fd. */
		lots->lot[i].nr_settled = ~0U;
	}
	return lots;
}

/**
 * parklot_space_create() - make an empty space for the calling process
 *
 * Return: the space, or an error pointer: -ENOMEM, or -EINVAL if the caller is
 * a kernel thread.
 */
struct parklot_space *parklot_space_create(void)
{
	struct parklot_space *space;

	if (!current->mm)
		return ERR_PTR(-EINVAL);
	space = kzalloc(sizeof(*space), PARKLOT_GFP);
	if (!space)
		return ERR_PTR(-ENOMEM);
	mutex_init(&space->setup_lock);
	/* Holds the identity, not the memory: the address is not reused. */
	space->mm = current->mm;
	mmgrab(space->mm);
	space->files = current->files;
	return space;
}

static void space_free(struct parklot_space *space)
{
	lots_free(space->lots);
	mmdrop(space->mm);
	mutex_destroy(&space->setup_lock);
	kfree(space);
}

static void space_free_deferred(struct work_struct *work)
{
	struct parklot_space *space = container_of(to_rcu_work(work),
						   struct parklot_space,
						   free_work);

	space_free(space);
	/*
	 * [charge-b] pairs with [charge-a] in lots_charge(): the charge is
	 * returned before nr_freed is raised. So a caller that was refused
	 * because of this space sees the count change, and tries again.
	 */
	atomic_inc_return(&nr_freed);
	PARKLOT_INJECT("charge-b");
	wake_up_all(&deferred_wait);
}

/* Does a notifier still use the pool? */
static bool space_is_in_use(struct parklot_space *space)
{
	struct parklot_lots *lots = space->lots;

	return parklot_is_built(PARKLOT_FEAT_CREW) && lots && lots->pool &&
	       parklot_worker_dismiss(lots->pool);
}

/**
 * parklot_space_destroy() - free @space, now or after a grace period
 * @space: no call is in flight on it, and no area is mapped
 *
 * Context: does not wait for the grace period: many closes in a row would wait
 * for one each.
 */
void parklot_space_destroy(struct parklot_space *space)
{
	if (space_is_in_use(space)) {
		atomic_inc(&nr_deferred);
		INIT_RCU_WORK(&space->free_work, space_free_deferred);
		parklot_worker_defer(&space->free_work);
		return;
	}
	space_free(space);
}

/**
 * parklot_space_setup() - make the lots and the shared pages
 * @space: any space of the caller's
 * @setup: from user space, not checked; the sizes are filled in
 *
 * Return: 0, -EBUSY the second time, -EINVAL, -EOPNOTSUPP if @setup asks for
 * workers and crews are not available, -ENOMEM, for want of memory or of leave
 * to pin it, or -EINTR if the caller is killed.
 */
int parklot_space_setup(struct parklot_space *space,
			struct parklot_setup *setup)
{
	struct parklot_lots *lots;

	if (setup->flags || setup->reserved || !setup->nr_lots ||
	    setup->nr_lots > PARKLOT_MAX_LOTS ||
	    setup->nr_workers > PARKLOT_MAX_WORKERS)
		return -EINVAL;
	if (setup->nr_workers && !parklot_has(PARKLOT_FEAT_CREW))
		return -EOPNOTSUPP;

	mutex_lock(&space->setup_lock);
	lots = space->lots ? ERR_PTR(-EBUSY) :
			     lots_create(setup->nr_lots, setup->nr_workers);
	if (!IS_ERR(lots))
		/*
		 * [setup-a] pairs with [setup-b] in parklot_space_lots(): the
		 * lots are made before they are published. Otherwise another
		 * thread could use lots that are not initialized.
		 */
		smp_store_release(&space->lots, lots);
	mutex_unlock(&space->setup_lock);
	if (IS_ERR(lots))
		return PTR_ERR(lots);

	setup->counters_size = lots->counters.nr_pages * PAGE_SIZE;
	setup->words_size = lots->words.nr_pages * PAGE_SIZE;
	return 0;
}

/**
 * parklot_space_interrupt() - end all sleeps in @space
 * @space: any space
 */
void parklot_space_interrupt(struct parklot_space *space)
{
	struct parklot_lots *lots = parklot_space_lots(space);
	u32 i;

	for (i = 0; lots && i < lots->nr_lots; i++) {
		parklot_lot_interrupt(&lots->lot[i]);
		cond_resched();
	}
}

/**
 * parklot_lots_join() - make the caller a worker of the crew
 * @lots: the space's lots
 * @slot: any number
 *
 * Return: 0, -EINVAL if there is no such slot, -EBUSY if it is taken or the
 * caller has one, -EOPNOTSUPP or -ENOMEM.
 */
int parklot_lots_join(struct parklot_lots *lots, u32 slot)
{
	struct parklot_pool *pool = lots->pool;

	if (!parklot_is_built(PARKLOT_FEAT_CREW))
		return -EOPNOTSUPP;
	if (!pool || slot >= pool->nr_slots)
		return -EINVAL;
	slot = array_index_nospec(slot, pool->nr_slots);
	return parklot_worker_join(pool, slot,
				   area_line(&lots->words,
					     1 + lots->nr_lots + slot));
}

/**
 * parklot_lots_show() - write the statistics to fdinfo
 * @lots: the space's lots
 * @seq:  the file
 *
 * The numbers are read while they change, and need not fit together.
 */
void parklot_lots_show(struct parklot_lots *lots, struct seq_file *seq)
{
	u32 i, nr_parked = 0;
	u64 nr_woken = 0;

	for (i = 0; i < lots->nr_lots; i++) {
		nr_parked += READ_ONCE(lots->lot[i].nr_parked);
		nr_woken += READ_ONCE(lots->lot[i].nr_woken);
	}
	seq_printf(seq, "parklot-lots:\t%u\n", lots->nr_lots);
	seq_printf(seq, "parklot-parked:\t%u\n", nr_parked);
	seq_printf(seq, "parklot-wakes:\t%llu\n", nr_woken);
	seq_printf(seq, "parklot-batches:\t%lu\n",
		   atomic_long_read(&lots->nr_batches));
	seq_printf(seq, "parklot-empty-wakes:\t%lu\n",
		   atomic_long_read(&lots->nr_empty));
	if (parklot_is_built(PARKLOT_FEAT_CREW) && lots->pool)
		parklot_pool_show(lots->pool, seq);
}
