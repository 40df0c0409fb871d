/* SPDX-License-Identifier: GPL-2.0-only */
/* Names for what differs between kernels, or is longer to say in them. */
#ifndef PARKLOT_COMPAT_H
#define PARKLOT_COMPAT_H

#ifndef PARKLOT_IN_TREE
/*
 * Replacements for what older kernels lack are chosen by presence, not by
 * version: macros are tested here; Kbuild looks for other names and defines
 * PARKLOT_HAS_*. For one kernel, scripts/kernel-series decides these conditions
 * and defines PARKLOT_IN_TREE; a comment inside of one goes with it.
 */
#endif

#include <linux/gfp.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/wait.h>

#ifndef PARKLOT_IN_TREE
#include "refuse.h"

/* The oldest kernel, as in dkms.conf, where it is a pattern: 6.1 has this. */
#ifndef TASK_FREEZABLE
#error "parklot needs Linux 6.1 or later"
#endif
#endif

/*
 * Charged to the caller's cgroup. If there is no memory the call fails; the
 * caller is not killed, and the log says nothing.
 */
#define PARKLOT_GFP \
	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* The device that a class's callback gets. */
#ifdef PARKLOT_HAS_CONST_DEVNODE
#define DEVNODE_CONST	const
#else
/* Not constant in 6.1.192. */
#define DEVNODE_CONST
#endif

#ifndef PARKLOT_HAS_VM_FLAGS_MOD
/* Not in 6.1.192. */
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

#ifndef PARKLOT_HAS_HRTIMER_SETUP
/* Not in 6.12.95. */
static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

#ifndef PARKLOT_HAS_TASK_IS_RUNNABLE
/*
 * Not in 6.1.192, where a sleeping task leaves its run queue at once. Later
 * kernels may leave it there for a while.
 */
static inline bool task_is_runnable(struct task_struct *task)
{
	return task->on_rq;
}
#endif

#ifndef PARKLOT_IN_TREE
/*
 * The flags below are the scheduler's own (kernel/sched/sched.h), but
 * default_wake_function() lets them pass since the commit that brought
 * complete_on_current_cpu(), which is not exported. Kbuild looks for that name,
 * and takes the flags' values from wake-flags.sh. PARKLOT_FEAT_HANDOFF is not
 * offered on 6.1.192, which lacks it, nor on kernels for which the values are
 * not known.
 */
#endif
/* Wakes @task on this processor, if it may run here. */
static inline void wake_up_here(struct task_struct *task)
{
#ifdef PARKLOT_HAS_HANDOFF
	struct wait_queue_entry entry = { .private = task };

	default_wake_function(&entry, TASK_NORMAL,
			      PARKLOT_WF_SYNC | PARKLOT_WF_CURRENT_CPU, NULL);
#else
	wake_up_process(task);
#endif
}

#endif /* PARKLOT_COMPAT_H */
