// SPDX-License-Identifier: GPL-2.0-only
/*
 * Too few run: who says so, and who is called.
 *
 * The tallies lie in the counters pages themselves, where user space cannot
 * write: a line for each processor, that only this processor writes, since
 * workers block far more often than anybody wants to know how many run. Lines
 * of workers would do as well, but their number is user space's to choose, and
 * the sum is taken with interrupts off.
 *
 * 1. No shortage is overlooked. It is one if fewer than `target' run, the
 * backlog is not 0, and somebody is parked. Three may bring it about; each
 * writes its own word and then reads those of the others:
 *
 *	blocks, parks or leaves		raises the backlog (user space)
 *	running.out++			backlog = 1
 *	full barrier	[crew-a]	full barrier
 *	if (backlog and any parked)	sum
 *	    sum, under lock		if (sum < target)
 *	    if (sum < target)		    WAKE
 *		call
 *
 * Of all those barriers one is the last. The thread behind it reads what was
 * written before any of them, so it sees every `out', the backlog and the list
 * of the parked; and a sum is never too high (2). It may be too low, as that of
 * a thread that returns meanwhile: then the check, or the call, was needless.
 *
 * Who parks is on the list and counted before he looks, so that of two hands,
 * one of which blocks and one parks, the later one sees the shortage.
 *
 * 2. A sum counts each hand once at most. It may enter and leave on several
 * processors while their lines are read:
 *
 *	hand				sum
 *	running.out++, on one		read each `in'
 *	full barrier	[crew-a]	read barrier		[crew-b]
 *	running.in++, on another	read each `out'
 *
 * If its last `in' is read, so is the `out' before that.
 *
 * 3. A check, under the roster's lock, calls one, or sets the timer for when
 * it is due: when the shortage is as old as stall_ns, and not too soon after
 * the last call, nor during one. Each time a hand brings what runs below target
 * the shortage begins anew: a hand that comes back soon, over and over again,
 * is never replaced.
 *
 * 4. Locks: a lot's, then the roster's. Whom to call is found under the
 * roster's and called under his lot's, which is taken after; with
 * interrupts off all along, so that the hand, which RCU frees, is still there.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
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

/**
 * parklot_roster_use_line() - give this processor a line of the crew's
 * @roster: which has never run here
 *
 * The only write to what several share, once for each processor.
 *
 * Context: interrupts are off.
 * Return: the line.
 */
struct parklot_cpu_counters *
parklot_roster_use_line(struct parklot_roster *roster)
{
	int nr = atomic_inc_return(roster->nr_cpus) - 1;

	roster->own[smp_processor_id()] = roster->line[nr];
	return roster->line[nr];
}

/**
 * parklot_roster_running() - how many run
 * @roster: any
 *
 * Reads as many lines as there are processors on which the crew has run.
 *
 * Return: that, or fewer if some come and go meanwhile, but not more.
 */
u32 parklot_roster_running(const struct parklot_roster *roster)
{
	u32 i, nr = 0;

	for (i = 0; i < atomic_read(roster->nr_cpus); i++)
		nr += READ_ONCE(roster->line[i]->running.in);
	/* [crew-b] pairs with [crew-a] in parklot_roster_count(). */
	smp_rmb();
	PARKLOT_INJECT("crew-b");
	for (i = 0; i < atomic_read(roster->nr_cpus); i++)
		nr -= READ_ONCE(roster->line[i]->running.out);
	return max_t(s32, nr, 0);
}

/* Is somebody parked who should run? If so, @nr_running do. */
static bool is_short(const struct parklot_roster *roster, u32 *nr_running)
{
	if (!parklot_roster_needs_check(roster))
		return false;
	*nr_running = parklot_roster_running(roster);
	return *nr_running < READ_ONCE(roster->target) &&
	       *nr_running < READ_ONCE(roster->max);
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
 * @has_stopped: a hand has just stopped to run. If with that too few do it is
 * a new shortage, even if nobody has seen the end of the last one.
 */
static struct parklot_lot *choose(struct parklot_roster *roster,
				  bool has_stopped, struct parklot_hand **hand)
{
	u64 now, due, interval;
	struct parklot_lot *lot;
	u32 nr_running;

	lockdep_assert_held(&roster->lock);
	if (roster->is_calling)
		return NULL;
	if (!is_short(roster, &nr_running)) {
		roster->seen = 0;
		return NULL;
	}
	now = ktime_get_ns();
	if (!roster->seen ||
	    (has_stopped && nr_running + 1 == roster->target))
		roster->seen = now;
	due = max(roster->seen + roster->stall_ns, roster->next);
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
	u32 nr_running;

	if (trace_parklot_replace_enabled())
		trace_parklot_replace(slot, parklot_roster_running(roster));
	raw_spin_lock(&roster->lock);
	roster->is_calling = false;
	WRITE_ONCE(roster->nr_called, roster->nr_called + 1);
	if (is_short(roster, &nr_running))
		set_timer(roster, roster->next);
	raw_spin_unlock(&roster->lock);
}

/* Who was to be called left by himself: he runs, but may not be enough. */
static void note_miss(struct parklot_roster *roster)
{
	u32 nr_running;

	raw_spin_lock(&roster->lock);
	roster->is_calling = false;
	roster->next = 0;
	if (is_short(roster, &nr_running))
		set_timer(roster, ktime_get_ns());
	raw_spin_unlock(&roster->lock);
}

static void check(struct parklot_roster *roster, bool has_stopped)
{
	struct parklot_hand *hand;
	struct parklot_lot *lot;
	unsigned long flags;

	local_irq_save(flags);
	raw_spin_lock(&roster->lock);
	lot = choose(roster, has_stopped, &hand);
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

/**
 * parklot_roster_check() - let one run instead of another, if it is time
 * @roster: one of its hands has just stopped to run
 *
 * Tries once: if the one chosen leaves his lot by himself just then, the timer
 * has it done anew, with interrupts on in between.
 *
 * Context: any but the scheduler's; no locks held.
 */
void parklot_roster_check(struct parklot_roster *roster)
{
	check(roster, true);
}

static void check_by_irq(struct irq_work *work)
{
	check(container_of(work, struct parklot_roster, work), true);
}

static enum hrtimer_restart check_by_timer(struct hrtimer *timer)
{
	check(container_of(timer, struct parklot_roster, timer), false);
	return HRTIMER_NORESTART;
}

static void roster_free(struct parklot_roster *roster)
{
	kvfree(roster->own);
	kvfree(roster->line);
	kvfree(roster->hand);
	kfree(roster);
}

/* Room for the hands, and for what of theirs each processor counts. */
static int roster_alloc(struct parklot_roster *roster, u32 nr_slots)
{
	roster->hand = kvcalloc(nr_slots, sizeof(*roster->hand), PARKLOT_GFP);
	roster->line = kvcalloc(nr_cpu_ids, sizeof(*roster->line),
				PARKLOT_GFP);
	roster->own = kvcalloc(nr_cpu_ids, sizeof(*roster->own), PARKLOT_GFP);
	return roster->hand && roster->line && roster->own ? 0 : -ENOMEM;
}

/**
 * parklot_roster_create() - a crew without hands
 * @nr_slots: how many there may be, not 0
 * @counters: where to say how many lines are in use; nobody else writes it
 * @words:    where the backlog is; anybody may write anything to it
 *
 * It is not to be used before parklot_roster_set_line() has given it nr_cpu_ids
 * lines. Until parklot_roster_set() it counts and calls nobody.
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
	if (roster_alloc(roster, nr_slots)) {
		roster_free(roster);
		return ERR_PTR(-ENOMEM);
	}
	roster->nr_slots = nr_slots;
	roster->mm = current->mm;
	roster->nr_cpus = (atomic_t *)&counters->nr_cpus;
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
 * parklot_roster_set_line() - give one processor a place to count
 * @roster: without hands so far
 * @nr:     below nr_cpu_ids: the first is used first
 * @line:   zeroed; nobody else writes it
 */
void parklot_roster_set_line(struct parklot_roster *roster, u32 nr,
			     struct parklot_cpu_counters *line)
{
	roster->line[nr] = line;
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
	roster_free(roster);
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
	u32 i, nr_blocked = 0;

	for (i = 0; i < atomic_read(roster->nr_cpus); i++)
		nr_blocked += READ_ONCE(roster->line[i]->blocked.in) -
			      READ_ONCE(roster->line[i]->blocked.out);
	seq_printf(seq, "parklot-running:\t%u\n",
		   parklot_roster_running(roster));
	seq_printf(seq, "parklot-blocked:\t%d\n", max_t(s32, nr_blocked, 0));
	seq_printf(seq, "parklot-replaced:\t%llu\n",
		   READ_ONCE(roster->nr_called));
}
