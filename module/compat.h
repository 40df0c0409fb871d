/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What older kernels lack. Tested by presence: what is no macro is looked
 * for by Kbuild, which then defines PARKLOT_HAS_*.
 */
#ifndef PARKLOT_COMPAT_H
#define PARKLOT_COMPAT_H

#include <linux/gfp.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/wait.h>
#ifdef PARKLOT_HAS_URING
#include <linux/io_uring/cmd.h>
#endif

#include "refuse.h"

/* The floor, which dkms.conf has too, as a pattern: this came with 6.1. */
#ifndef TASK_FREEZABLE
#error "parklot needs Linux 6.1 or later"
#endif

/*
 * Charged to the caller's cgroup. A caller is told that there is no memory: it
 * is not killed for it, and the log says nothing.
 */
#define PARKLOT_GFP \
	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* What a class is asked by: not constant in 6.1.192. */
#ifdef PARKLOT_HAS_CONST_DEVNODE
#define DEVNODE_CONST	const
#else
#define DEVNODE_CONST
#endif

/* Not in 6.1.192. */
#ifndef PARKLOT_HAS_VM_FLAGS_MOD
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* Not in 6.12.95. */
#ifndef PARKLOT_HAS_HRTIMER_SETUP
static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

/*
 * Not in 6.1.192, where a sleeping task is never left on its run queue for a
 * while, as it is since.
 */
#ifndef PARKLOT_HAS_TASK_IS_RUNNABLE
static inline bool task_is_runnable(struct task_struct *task)
{
	return task->on_rq;
}
#endif

/*
 * Runs @task on this processor, if it may run here. The flags are the
 * scheduler's own (kernel/sched/sched.h), but default_wake_function() lets them
 * pass since the commit that brought complete_on_current_cpu(), which is not
 * exported. Kbuild looks for that, and has their values from wake-flags.sh. Not
 * in 6.1.192: there, and in kernels of which the values are not known,
 * PARKLOT_FEAT_HANDOFF is not offered.
 */
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

#ifdef PARKLOT_HAS_URING
/* Two results in 6.12.95, one here. */
static inline void uring_done(struct io_uring_cmd *cmd, int res,
			      unsigned int issue_flags)
{
#ifdef PARKLOT_HAS_URING_DONE32
	io_uring_cmd_done(cmd, res, issue_flags);
#else
	io_uring_cmd_done(cmd, res, 0, issue_flags);
#endif
}

/* What a callback in the task gets: the command in 6.12.95. */
#ifdef PARKLOT_HAS_URING_FROM_TW
#define URING_CALLBACK(name, fn) \
	static void name(struct io_tw_req req, io_tw_token_t tw) \
	{ \
		fn(io_uring_cmd_from_tw(req), \
		   IO_URING_CMD_TASK_WORK_ISSUE_FLAGS); \
	}
#else
#define URING_CALLBACK(name, fn) \
	static void name(struct io_uring_cmd *cmd, unsigned int issue_flags) \
	{ \
		fn(cmd, issue_flags); \
	}
#endif
#endif /* PARKLOT_HAS_URING */

#endif /* PARKLOT_COMPAT_H */
