// SPDX-License-Identifier: GPL-2.0-only
/*
 * Too few run: who says so, and who is called.
 *
 * The counts are the words in the counters page themselves, where user space
 * cannot write.
 *
 * 1. No shortage is overlooked. It is one if fewer than `target' run, the
 * backlog is not 0, and somebody is parked. Three may bring it about; each
 * writes its own word and then reads those of the others:
 *
 *	blocks, parks or leaves		raises the backlog (user space)
 *	nr_running--			backlog = 1
 *	full barrier	[crew-a]	full barrier
 *	if (shortage)			if (nr_running < target)
 *	    check			    WAKE
 *
 * Who parks is on the list and counted before he looks, so that of two hands,
 * one of which blocks and one parks, the later one sees the shortage.
 *
 * 2. A check, under the roster's lock, calls one, or sets the timer for when
 * it is due: when the shortage is as old as stall_ns, and not too soon after
 * the last call, nor during one. Each time nr_running falls below target the
 * shortage begins anew: a hand that comes back soon, over and over again, is
 * never replaced.
 *
 * 3. Locks: a lot's, then the roster's. Whom to call is found under the
 * roster's and called under his lot's, which is taken after; with
 * interrupts off all along, so that the hand, which RCU frees, is still there.
 */
#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/mm.h>
#include <linux/parklot.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "crew.h"
#include "inject.h"
#include "lot.h"
#include "trace.h"

static unsigned int crew_interval_us = 50;
module_param(crew_interval_us, uint, 0644);
MODULE_PARM_DESC(crew_interval_us, "least time between two calls of a crew");

static_assert(sizeof(atomic_t) == sizeof(u32));

static atomic_t *count_of(struct parklot_roster *roster, enum parklot_duty duty)
{
	switch (duty) {
	case PARKLOT_RUNS:
		return roster->nr_running;
	case PARKLOT_BLOCKED:
		return roster->nr_blocked;
	case PARKLOT_PARKED:
		return roster->nr_parked;
	default:
		return NULL;
	}
}

/**
 * parklot_roster_count() - a hand goes from one duty to another
 * @roster: whose
 * @from:   is one fewer
 * @to:     is one more, and that first
 *
 * A full barrier if any of them is counted. [crew-a] pairs with itself, in
 * another hand's call, and with that of who raises the backlog.
 *
 * Context: any, the scheduler's included.
 */
void parklot_roster_count(struct parklot_roster *roster,
			  enum parklot_duty from, enum parklot_duty to)
{
	atomic_t *more = count_of(roster, to);
	atomic_t *fewer = count_of(roster, from);
	u32 left;

	if (more)
		atomic_inc_return(more);
	PARKLOT_INJECT("count");
	if (fewer) {
		left = atomic_dec_return(fewer);
		if (from == PARKLOT_RUNS &&
		    left + 1 == READ_ONCE(roster->target) &&
		    READ_ONCE(roster->stall_ns))
			WRITE_ONCE(roster->since, ktime_get_mono_fast_ns());
	}
}

/**
 * parklot_roster_is_short() - is somebody parked who should run?
 * @roster: any
 *
 * To be looked at after parklot_roster_count(), whose [crew-a] is between the
 * caller's own word and all that is read here.
 *
 * Context: any, the scheduler's included.
 */
bool parklot_roster_is_short(const struct parklot_roster *roster)
{
	u32 running = atomic_read(roster->nr_running);

	return running < READ_ONCE(roster->target) &&
	       running < READ_ONCE(roster->max) &&
	       READ_ONCE(*roster->backlog) && atomic_read(roster->nr_parked);
}

static void set_timer(struct parklot_roster *roster, u64 due)
{
	lockdep_assert_held(&roster->lock);
	if (!hrtimer_is_queued(&roster->timer))
		hrtimer_start(&roster->timer, ns_to_ktime(due),
			      HRTIMER_MODE_ABS_HARD);
}

/*
 * The last one parked, but for those who are about to leave their lots by
 * themselves: they run, or park anew and then look themselves. Each of them
 * has a processor, so they are few.
 */
static struct parklot_lot *find(struct parklot_roster *roster,
				struct parklot_hand **hand)
{
	struct parklot_hand *last;
	struct parklot_lot *lot;

	lockdep_assert_held(&roster->lock);
	list_for_each_entry(last, &roster->parked, entry) {
		lot = READ_ONCE(last->watch.lot);
		if (!lot)
			continue;
		*hand = last;
		return lot;
	}
	return NULL;
}

/*
 * Whom to call now, and where; the timer is set if it is not time yet. While
 * one is being called nobody else is: who calls him looks again behind that.
 */
static struct parklot_lot *choose(struct parklot_roster *roster,
				  struct parklot_hand **hand)
{
	u64 now, due, interval;
	struct parklot_lot *lot;

	lockdep_assert_held(&roster->lock);
	if (roster->is_calling)
		return NULL;
	if (!parklot_roster_is_short(roster)) {
		roster->seen = 0;
		return NULL;
	}
	now = ktime_get_ns();
	if (!roster->seen)
		roster->seen = now;
	due = max(roster->seen, READ_ONCE(roster->since)) + roster->stall_ns;
	due = max(due, roster->next);
	if (now < due) {
		set_timer(roster, due);
		return NULL;
	}
	lot = find(roster, hand);
	if (lot) {
		interval = (u64)READ_ONCE(crew_interval_us) * NSEC_PER_USEC;
		roster->is_calling = true;
		roster->next = now + interval;
	}
	return lot;
}

/* If still too few run, the next one is the timer's to call. */
static void note_call(struct parklot_roster *roster, u32 slot)
{
	trace_parklot_replace(slot, atomic_read(roster->nr_running));
	raw_spin_lock(&roster->lock);
	roster->is_calling = false;
	WRITE_ONCE(roster->nr_called, roster->nr_called + 1);
	if (parklot_roster_is_short(roster))
		set_timer(roster, roster->next);
	raw_spin_unlock(&roster->lock);
}

/* Who was to be called left by himself: he runs, but may not be enough. */
static void note_miss(struct parklot_roster *roster)
{
	raw_spin_lock(&roster->lock);
	roster->is_calling = false;
	roster->next = 0;
	if (parklot_roster_is_short(roster))
		set_timer(roster, ktime_get_ns());
	raw_spin_unlock(&roster->lock);
}

/**
 * parklot_roster_check() - let one run instead of another, if it is time
 * @roster: any
 *
 * Tries once: if the one chosen leaves his lot by himself just then, the timer
 * has it done anew, with interrupts on in between.
 *
 * Context: any but the scheduler's; no locks held.
 */
void parklot_roster_check(struct parklot_roster *roster)
{
	struct parklot_hand *hand;
	struct parklot_lot *lot;
	unsigned long flags;

	local_irq_save(flags);
	raw_spin_lock(&roster->lock);
	lot = choose(roster, &hand);
	raw_spin_unlock(&roster->lock);
	if (lot) {
		PARKLOT_INJECT("call");
		if (parklot_lot_call(lot, &hand->watch, PARKLOT_CALLED))
			note_call(roster, hand->slot);
		else
			note_miss(roster);
	}
	local_irq_restore(flags);
}

static void check_by_irq(struct irq_work *work)
{
	parklot_roster_check(container_of(work, struct parklot_roster, work));
}

static enum hrtimer_restart check_by_timer(struct hrtimer *timer)
{
	parklot_roster_check(container_of(timer, struct parklot_roster,
					  timer));
	return HRTIMER_NORESTART;
}

/**
 * parklot_roster_create() - a crew without hands
 * @nr_slots: how many there may be, not 0
 * @counters: where to count; nobody else writes it
 * @words:    where the backlog is; anybody may write anything to it
 *
 * Until parklot_roster_set() it counts and calls nobody.
 *
 * Return: it, or -ENOMEM.
 */
struct parklot_roster *
parklot_roster_create(u32 nr_slots, struct parklot_counters *counters,
		      const struct parklot_words *words)
{
	struct parklot_roster *roster;

	roster = kzalloc(sizeof(*roster), PARKLOT_GFP);
	if (!roster)
		return ERR_PTR(-ENOMEM);
	roster->hand = kvcalloc(nr_slots, sizeof(*roster->hand),
				PARKLOT_GFP);
	if (!roster->hand) {
		kfree(roster);
		return ERR_PTR(-ENOMEM);
	}
	roster->nr_slots = nr_slots;
	roster->mm = current->mm;
	roster->nr_running = (atomic_t *)&counters->nr_running;
	roster->nr_blocked = (atomic_t *)&counters->nr_blocked;
	roster->nr_parked = (atomic_t *)&counters->nr_parked;
	roster->backlog = &words->backlog;
	roster->max = U32_MAX;
	raw_spin_lock_init(&roster->lock);
	INIT_LIST_HEAD(&roster->parked);
	roster->work = IRQ_WORK_INIT_HARD(check_by_irq);
	hrtimer_setup(&roster->timer, check_by_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_HARD);
	return roster;
}

/**
 * parklot_roster_destroy() - free @roster
 * @roster: has no hands, and no notifier is in the middle of it
 *
 * Context: may sleep.
 */
void parklot_roster_destroy(struct parklot_roster *roster)
{
	irq_work_sync(&roster->work);
	hrtimer_cancel(&roster->timer);
	kvfree(roster->hand);
	kfree(roster);
}

/**
 * parklot_roster_set() - how many are to run
 * @roster: any
 * @crew:   as user space wants it
 *
 * Return: 0, or -EINVAL.
 */
int parklot_roster_set(struct parklot_roster *roster,
		       const struct parklot_crew *crew)
{
	if (crew->flags || crew->target > crew->max)
		return -EINVAL;

	raw_spin_lock_irq(&roster->lock);
	WRITE_ONCE(roster->target, crew->target);
	WRITE_ONCE(roster->max, crew->max);
	WRITE_ONCE(roster->stall_ns, crew->stall_ns);
	roster->seen = 0;
	/* It may be set for what is not so any more. */
	hrtimer_try_to_cancel(&roster->timer);
	raw_spin_unlock_irq(&roster->lock);

	parklot_roster_check(roster);
	return 0;
}

/**
 * parklot_roster_show() - the counts, for fdinfo
 * @roster: any
 * @seq:    where to
 */
void parklot_roster_show(const struct parklot_roster *roster,
			 struct seq_file *seq)
{
	seq_printf(seq, "parklot-running:\t%u\n",
		   atomic_read(roster->nr_running));
	seq_printf(seq, "parklot-blocked:\t%u\n",
		   atomic_read(roster->nr_blocked));
	seq_printf(seq, "parklot-replaced:\t%llu\n",
		   READ_ONCE(roster->nr_called));
}
