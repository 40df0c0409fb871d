// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages that cannot be swapped are charged as io_uring charges the pages that
 * it pins: to the user's locked pages, against RLIMIT_MEMLOCK of the process
 * that does the SETUP, unless it has CAP_IPC_LOCK; and to the process, which
 * shows them as VmPin in its status. The allocations themselves charge the
 * memory cgroup.
 *
 * account_locked_vm() would charge the process alone: a user could pin as much
 * as the limit in each of its processes. The counts of user namespaces
 * (ucounts) are not exported to modules, so containers that share a user id
 * share the limit, as they do for io_uring.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/parklot.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>

#include "charge.h"
#include "inject.h"

/* Takes no lock, so that no user waits for another one. */
static int user_charge(struct user_struct *user, unsigned long nr_pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	long old = atomic_long_read(&user->locked_vm), new;

	do {
		new = old + nr_pages;
		if (new > limit)
			return -ENOMEM;
		PARKLOT_INJECT("charge");
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &old, new));
	return 0;
}

/**
 * parklot_charge_take() - charge the caller for pages
 * @charge:   zeroed
 * @nr_pages: the number of pages that the caller is going to pin
 *
 * Return: 0, or -ENOMEM if the user may not pin that many more.
 */
int parklot_charge_take(struct parklot_charge *charge, unsigned long nr_pages)
{
	struct user_struct *user = NULL;
	int err;

	/* A missing capability is normal: the audit log need not have it. */
	if (!has_capability_noaudit(current, CAP_IPC_LOCK)) {
		user = current_user();
		err = user_charge(user, nr_pages);
		if (err)
			return err;
		get_uid(user);
	}
	charge->user = user;
	charge->nr_pages = nr_pages;
	charge->mm = current->mm;
	mmgrab(charge->mm);
	atomic64_add(nr_pages, &charge->mm->pinned_vm);
	return 0;
}

/**
 * parklot_charge_return() - undo parklot_charge_take()
 * @charge: after parklot_charge_take(), or zeroed
 *
 * Context: any that may sleep.
 */
void parklot_charge_return(struct parklot_charge *charge)
{
	if (!charge->nr_pages)
		return;
	atomic64_sub(charge->nr_pages, &charge->mm->pinned_vm);
	mmdrop(charge->mm);
	if (!charge->user)
		return;
	atomic_long_sub(charge->nr_pages, &charge->user->locked_vm);
	free_uid(charge->user);
}
