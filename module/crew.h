/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A roster: how many of a space's crew run, and who is parked and may be let
 * run. Knows lots, but neither threads nor how they block (hand.c).
 */
#ifndef PARKLOT_CREW_H
#define PARKLOT_CREW_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "lot.h"

struct mm_struct;
struct parklot_counters;
struct parklot_crew;
struct parklot_words;
struct seq_file;
struct task_struct;

enum parklot_duty {
	PARKLOT_RUNS,
	PARKLOT_BLOCKED,
	PARKLOT_PARKED,
	PARKLOT_IDLE,
	PARKLOT_GONE,
};

/*
 * I: set at init.  L: lock held.  W: written with the lock held, read without.
 * M: hand.c's lock held.  A: changed by whoever counts.
 */
struct parklot_roster {
	struct mm_struct	*mm;		/* I: only its identity */
	atomic_t		*nr_running;	/* A: in the counters */
	atomic_t		*nr_blocked;	/* A: in the counters */
	atomic_t		*nr_parked;	/* A: in the counters */
	const u32		*backlog;	/* I: user space's word */
	u32			target;		/* W */
	u32			max;		/* W */
	u32			stall_ns;	/* W */

	/* What is written, by workers that block and park. */
	raw_spinlock_t		lock ____cacheline_aligned_in_smp;
	u64			since;		/* A: under target, ns */
	struct list_head	parked;		/* L: hands, last one first */
	u64			seen;		/* L: shortage, ns; 0: none */
	u64			next;		/* L: no call before, ns */
	bool			is_calling;	/* L: one, this very moment */
	u64			nr_called;	/* W */
	struct hrtimer		timer;		/* L: to check later */
	struct irq_work		work;		/* to check soon */

	u32			nr_slots;	/* I */
	struct parklot_hand	**hand;		/* M: nr_slots */
	bool			needs_grace;	/* M: to be freed by RCU */
};

#ifdef PARKLOT_HAS_CREW
/*
 * O: its own thread.  M: hand.c's lock held.  L: the roster's lock held.
 * I: set at init.
 */
struct parklot_hand {
	struct preempt_notifier	notifier;	/* O */
	struct parklot_watch	watch;
	struct parklot_roster	*roster;	/* M: NULL by [hand-a] */
	struct task_struct	*task;		/* I: referenced */
	const u32		*word;		/* I: user space's state */
	u32			slot;		/* I */
	bool			is_in_park;	/* O */
	atomic_t		duty;		/* enum parklot_duty */
	struct list_head	entry;		/* L */
	struct llist_node	dead;
	struct rcu_head		rcu;
};
#endif

struct parklot_roster *
parklot_roster_create(u32 nr_slots, struct parklot_counters *counters,
		      const struct parklot_words *words);
void parklot_roster_destroy(struct parklot_roster *roster);
int parklot_roster_set(struct parklot_roster *roster,
		       const struct parklot_crew *crew);

void parklot_roster_count(struct parklot_roster *roster,
			  enum parklot_duty from, enum parklot_duty to);
bool parklot_roster_is_short(const struct parklot_roster *roster);
void parklot_roster_check(struct parklot_roster *roster);
void parklot_roster_show(const struct parklot_roster *roster,
			 struct seq_file *seq);

#endif /* PARKLOT_CREW_H */
