// SPDX-License-Identifier: GPL-2.0-only
/* Structs and times that come from user space. */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>

#include "uaccess.h"

/**
 * parklot_copy_in_other() - parklot_copy_in() for a size other than ours
 * @dst:   the module's struct
 * @ksize: its size
 * @first: the size of its first version
 * @src:   user space's struct
 * @size:  its size as user space knows it
 *
 * Return: as parklot_copy_in().
 */
int parklot_copy_in_other(void *dst, size_t ksize, size_t first,
			  const void __user *src, size_t size)
{
	if (size < first)
		return -EINVAL;
	return copy_struct_from_user(dst, ksize, src, size);
}

/**
 * parklot_deadline() - convert a deadline to the machine's CLOCK_MONOTONIC
 * @deadline_ns: of the caller's time namespace; any, PARKLOT_FOREVER too
 *
 * Return: the deadline, or KTIME_MAX for none.
 */
ktime_t parklot_deadline(u64 deadline_ns)
{
	const struct time_namespace *ns;
	ktime_t offset = 0;

	if (deadline_ns >= KTIME_MAX)
		return KTIME_MAX;
	if (IS_ENABLED(CONFIG_TIME_NS)) {
		ns = current->nsproxy->time_ns;
		offset = timespec64_to_ktime(ns->offsets.monotonic);
	}
	/* A deadline before the machine's start is past; avoid an underflow. */
	if (offset > 0 && deadline_ns < offset)
		return 0;
	return min_t(u64, deadline_ns - offset, KTIME_MAX);
}
