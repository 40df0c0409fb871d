// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spaces: who owns one, what it is made of, how many a user may have.
 *
 * A space is made at open and is empty until SETUP gives it a yard: the lots
 * and the two areas of shared pages. The yard is published once and lives as
 * long as the space, which lives as long as the open file: calls in flight and
 * mappings hold it. So nothing here is counted, and nothing is freed under a
 * sleeper.
 *
 *	setup				any other call
 *	make the yard			yard = space->yard	[setup-b]
 *	space->yard = yard  [setup-a]	if (yard) use it
 */
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/parklot.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/stddef.h>
#include <linux/uidgid.h>
#include <linux/wait.h>

#include "crew.h"
#include "feature.h"
#include "hand.h"
#include "inject.h"
#include "space.h"

/* A line each, and the same for programs of 32 bits. */
static_assert(sizeof(struct parklot_counters) == PARKLOT_LINE);
static_assert(sizeof(struct parklot_words) == PARKLOT_LINE);
static_assert(sizeof(struct parklot_lot_counters) == PARKLOT_LINE);
static_assert(sizeof(struct parklot_lot_words) == PARKLOT_LINE);
static_assert(sizeof(struct parklot_worker_words) == PARKLOT_LINE);
static_assert(offsetof(struct parklot_park, deadline_ns) % 8 == 0);
static_assert(offsetof(struct parklot_wake_park, park) % 8 == 0);

/*
 * More than any user's processes need; a space pins 200 KiB at most, and 72
 * bytes a worker.
 */
#define PARKLOT_MAX_SPACES	1024

/* U: users_lock held. */
struct parklot_user {
	struct list_head	entry;		/* U */
	kuid_t			uid;		/* I */
	u32			nr_spaces;	/* U: deferred too */
	u32			nr_deferred;	/* U: closed, not free yet */
};

/*
 * A space with a crew is freed a grace period after its close. Until then its
 * user pays for it, and while so many are due that user's opens wait.
 */
#define PARKLOT_MAX_DEFERRED	64

static DECLARE_WAIT_QUEUE_HEAD(deferred_wait);
static atomic_t nr_deferred_done = ATOMIC_INIT(0);

static DEFINE_MUTEX(users_lock);
static LIST_HEAD(users);

static struct parklot_user *user_find(kuid_t uid)
{
	struct parklot_user *user;

	lockdep_assert_held(&users_lock);
	list_for_each_entry(user, &users, entry)
		if (uid_eq(user->uid, uid))
			return user;

	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return ERR_PTR(-ENOMEM);
	user->uid = uid;
	list_add(&user->entry, &users);
	return user;
}

static void user_drop(struct parklot_user *user)
{
	lockdep_assert_held(&users_lock);
	if (user->nr_spaces)
		return;
	list_del(&user->entry);
	kfree(user);
}

/* Is there a space that will be free without anybody doing anything? */
static bool user_has_to_wait(const struct parklot_user *user)
{
	lockdep_assert_held(&users_lock);
	return user->nr_deferred >= PARKLOT_MAX_DEFERRED ||
	       (user->nr_deferred && user->nr_spaces >= PARKLOT_MAX_SPACES);
}

/* One space more for the caller's user, -EMFILE, or -EAGAIN: wait first. */
static struct parklot_user *user_charge(void)
{
	struct parklot_user *user;

	mutex_lock(&users_lock);
	user = user_find(current_uid());
	if (IS_ERR(user))
		goto out;
	if (user_has_to_wait(user)) {
		user = ERR_PTR(-EAGAIN);
		goto out;
	}
	if (user->nr_spaces >= PARKLOT_MAX_SPACES &&
	    !capable(CAP_SYS_RESOURCE)) {
		user_drop(user);
		user = ERR_PTR(-EMFILE);
		goto out;
	}
	user->nr_spaces++;
out:
	mutex_unlock(&users_lock);
	return user;
}

static struct parklot_user *user_charge_wait(void)
{
	struct parklot_user *user;
	int done;

	for (;;) {
		/* [charge-a] pairs with [charge-b] in user_undefer(). */
		done = atomic_read_acquire(&nr_deferred_done);
		PARKLOT_INJECT("charge-a");
		user = user_charge();
		if (user != ERR_PTR(-EAGAIN))
			return user;
		if (wait_event_killable(deferred_wait,
				atomic_read(&nr_deferred_done) != done))
			return ERR_PTR(-EINTR);
	}
}

static void user_uncharge(struct parklot_user *user)
{
	mutex_lock(&users_lock);
	user->nr_spaces--;
	user_drop(user);
	mutex_unlock(&users_lock);
}

static void user_defer(struct parklot_user *user)
{
	mutex_lock(&users_lock);
	user->nr_deferred++;
	mutex_unlock(&users_lock);
}

static void user_undefer(struct parklot_user *user)
{
	mutex_lock(&users_lock);
	user->nr_deferred--;
	user->nr_spaces--;
	user_drop(user);
	mutex_unlock(&users_lock);
	/*
	 * [charge-b] pairs with [charge-a] in user_charge_wait(): an opener
	 * that has seen the old numbers sees this count change.
	 */
	atomic_inc_return(&nr_deferred_done);
	PARKLOT_INJECT("charge-b");
	wake_up_all(&deferred_wait);
}

static void area_free(struct parklot_area *area)
{
	u32 i;

	for (i = 0; i < area->nr_pages; i++)
		__free_page(area->pages[i]);
	kfree(area->pages);
}

/* Room for @nr_lines; on failure area_free() undoes what was done. */
static int area_alloc(struct parklot_area *area, u32 nr_lines)
{
	u32 nr_pages = DIV_ROUND_UP(nr_lines * PARKLOT_LINE, PAGE_SIZE);
	struct page *page;

	area->pages = kcalloc(nr_pages, sizeof(*area->pages),
			      GFP_KERNEL_ACCOUNT);
	if (!area->pages)
		return -ENOMEM;
	while (area->nr_pages < nr_pages) {
		page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!page)
			return -ENOMEM;
		area->pages[area->nr_pages++] = page;
	}
	return 0;
}

/* Line @nr as the kernel maps it: no line crosses a page. */
static void *area_line(const struct parklot_area *area, u32 nr)
{
	u32 offset = nr * PARKLOT_LINE;

	return page_address(area->pages[offset / PAGE_SIZE]) +
	       offset % PAGE_SIZE;
}

static void yard_free(struct parklot_yard *yard)
{
	if (!yard)
		return;
	if (parklot_is_built(PARKLOT_FEAT_CREW) && yard->roster)
		parklot_roster_destroy(yard->roster);
	area_free(&yard->words);
	area_free(&yard->counters);
	kvfree(yard->lot);
	kfree(yard);
}

/* 0 workers are no crew. */
static int yard_man(struct parklot_yard *yard, u32 nr_workers)
{
	struct parklot_roster *roster;

	if (!parklot_is_built(PARKLOT_FEAT_CREW) || !nr_workers)
		return 0;
	roster = parklot_roster_create(nr_workers,
				       area_line(&yard->counters, 0),
				       area_line(&yard->words, 0));
	if (IS_ERR(roster))
		return PTR_ERR(roster);
	yard->roster = roster;
	return 0;
}

static struct parklot_yard *yard_create(u32 nr_lots, u32 nr_workers)
{
	struct parklot_yard *yard;
	u32 i;

	yard = kzalloc(sizeof(*yard), GFP_KERNEL_ACCOUNT);
	if (!yard)
		return ERR_PTR(-ENOMEM);
	yard->nr_lots = nr_lots;
	/*
	 * A power of two, since only these are sure to be aligned. Whoever
	 * asks is told if it cannot be had, and need not fill the log.
	 */
	yard->lot = kvzalloc(roundup_pow_of_two(nr_lots * sizeof(*yard->lot)),
			     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!yard->lot || area_alloc(&yard->counters, 1 + nr_lots) ||
	    area_alloc(&yard->words, 1 + nr_lots + nr_workers) ||
	    yard_man(yard, nr_workers)) {
		yard_free(yard);
		return ERR_PTR(-ENOMEM);
	}
	for (i = 0; i < nr_lots; i++) {
		parklot_lot_init(&yard->lot[i],
				 area_line(&yard->counters, 1 + i),
				 area_line(&yard->words, 1 + i));
		/* So that the first park looks for its descriptor. */
		yard->lot[i].nr_settled = ~0U;
	}
	return yard;
}

/**
 * parklot_space_create() - an empty space of the calling process
 *
 * Return: the space, or an error pointer: -EMFILE if the user has too many,
 * -ENOMEM, -EINTR if the caller is killed, or -EINVAL from a kernel thread.
 */
struct parklot_space *parklot_space_create(void)
{
	struct parklot_space *space;

	if (!current->mm)
		return ERR_PTR(-EINVAL);
	space = kzalloc(sizeof(*space), GFP_KERNEL_ACCOUNT);
	if (!space)
		return ERR_PTR(-ENOMEM);
	space->user = user_charge_wait();
	if (IS_ERR(space->user)) {
		int err = PTR_ERR(space->user);

		kfree(space);
		return ERR_PTR(err);
	}
	mutex_init(&space->setup_lock);
	/* Not its memory, only its identity: the pointer is not used again. */
	space->mm = current->mm;
	mmgrab(space->mm);
	space->files = current->files;
	return space;
}

/* All but the charge. */
static void space_free(struct parklot_space *space)
{
	yard_free(space->yard);
	mmdrop(space->mm);
	mutex_destroy(&space->setup_lock);
	kfree(space);
}

static void space_free_deferred(struct work_struct *work)
{
	struct parklot_space *space = container_of(to_rcu_work(work),
						   struct parklot_space,
						   free_work);
	struct parklot_user *user = space->user;

	space_free(space);
	user_undefer(user);
}

/* Does a notifier of the scheduler's still use the crew? */
static bool space_is_in_use(struct parklot_space *space)
{
	struct parklot_yard *yard = space->yard;

	return parklot_is_built(PARKLOT_FEAT_CREW) && yard && yard->roster &&
	       parklot_hand_dismiss(yard->roster);
}

/**
 * parklot_space_destroy() - free @space, now or soon
 * @space: no call is in flight on it and nothing of it is mapped
 *
 * Context: does not wait for a grace period, of which many closes in a row
 * would take one each.
 */
void parklot_space_destroy(struct parklot_space *space)
{
	struct parklot_user *user = space->user;

	if (space_is_in_use(space)) {
		user_defer(user);
		INIT_RCU_WORK(&space->free_work, space_free_deferred);
		parklot_hand_defer(&space->free_work);
		return;
	}
	space_free(space);
	user_uncharge(user);
}

/**
 * parklot_space_is_own() - does @space belong to the calling process?
 * @space: any
 */
bool parklot_space_is_own(const struct parklot_space *space)
{
	return space->mm == current->mm;
}

/**
 * parklot_space_setup() - make the lots and the shared pages
 * @space: any
 * @setup: what is wanted; the sizes are filled in
 *
 * Return: 0, -EBUSY the second time, -EINVAL, -EOPNOTSUPP if workers are
 * wanted and cannot be had, or -ENOMEM.
 */
int parklot_space_setup(struct parklot_space *space,
			struct parklot_setup *setup)
{
	struct parklot_yard *yard;

	if (setup->flags || setup->reserved || !setup->nr_lots ||
	    setup->nr_lots > PARKLOT_MAX_LOTS ||
	    setup->nr_workers > PARKLOT_MAX_WORKERS)
		return -EINVAL;
	if (setup->nr_workers && !parklot_has(PARKLOT_FEAT_CREW))
		return -EOPNOTSUPP;

	mutex_lock(&space->setup_lock);
	yard = space->yard ? ERR_PTR(-EBUSY) :
			     yard_create(setup->nr_lots, setup->nr_workers);
	if (!IS_ERR(yard))
		/* [setup-a] pairs with [setup-b] in parklot_space_yard(). */
		smp_store_release(&space->yard, yard);
	mutex_unlock(&space->setup_lock);
	if (IS_ERR(yard))
		return PTR_ERR(yard);

	setup->counters_size = yard->counters.nr_pages * PAGE_SIZE;
	setup->words_size = yard->words.nr_pages * PAGE_SIZE;
	return 0;
}

/**
 * parklot_space_yard() - what SETUP made
 * @space: any
 *
 * Return: it, or NULL before SETUP.
 */
struct parklot_yard *parklot_space_yard(struct parklot_space *space)
{
	PARKLOT_INJECT("setup-b");
	/* [setup-b] pairs with [setup-a] in parklot_space_setup(). */
	return smp_load_acquire(&space->yard);
}

/**
 * parklot_space_interrupt() - send everybody home who is parked in @space
 * @space: any
 */
void parklot_space_interrupt(struct parklot_space *space)
{
	struct parklot_yard *yard = parklot_space_yard(space);
	u32 i;

	for (i = 0; yard && i < yard->nr_lots; i++)
		parklot_lot_interrupt(&yard->lot[i]);
}

/**
 * parklot_yard_join() - the caller joins the crew
 * @yard: whose
 * @slot: any number
 *
 * Return: 0, -EINVAL if there is no such slot, -EBUSY if it is taken or the
 * caller has one, -EOPNOTSUPP or -ENOMEM.
 */
int parklot_yard_join(struct parklot_yard *yard, u32 slot)
{
	struct parklot_roster *roster = yard->roster;

	if (!parklot_is_built(PARKLOT_FEAT_CREW))
		return -EOPNOTSUPP;
	if (!roster || slot >= roster->nr_slots)
		return -EINVAL;
	slot = array_index_nospec(slot, roster->nr_slots);
	return parklot_hand_join(roster, slot,
				 area_line(&yard->words,
					   1 + yard->nr_lots + slot));
}

/**
 * parklot_yard_show() - what goes on, more or less, for fdinfo
 * @yard: whose
 * @seq:  where to
 */
void parklot_yard_show(struct parklot_yard *yard, struct seq_file *seq)
{
	u32 i, nr_parked = 0;
	u64 nr_woken = 0;

	for (i = 0; i < yard->nr_lots; i++) {
		nr_parked += READ_ONCE(yard->lot[i].nr_parked);
		nr_woken += READ_ONCE(yard->lot[i].nr_woken);
	}
	seq_printf(seq, "parklot-lots:\t%u\n", yard->nr_lots);
	seq_printf(seq, "parklot-parked:\t%u\n", nr_parked);
	seq_printf(seq, "parklot-wakes:\t%llu\n", nr_woken);
	seq_printf(seq, "parklot-batches:\t%lu\n",
		   atomic_long_read(&yard->nr_batches));
	seq_printf(seq, "parklot-empty-wakes:\t%lu\n",
		   atomic_long_read(&yard->nr_empty));
	if (parklot_is_built(PARKLOT_FEAT_CREW) && yard->roster)
		parklot_roster_show(yard->roster, seq);
}
