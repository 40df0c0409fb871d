// SPDX-License-Identifier: GPL-2.0-only
/* A WAKE: all is checked before anything is done. */
#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/parklot.h>
#include <linux/uaccess.h>

#include "lot.h"
#include "space.h"
#include "trace.h"
#include "uaccess.h"
#include "wake.h"

/*
 * Reads all entries in one section of user access, and writes back the old
 * values of the results, which proves that they are writable.
 */
static int wake_copy_in_entries(struct parklot_wake_call *call)
{
	struct parklot_wake_entry __user *uentry = call->uentries;
	struct parklot_wake_entry *entry = call->entry;
	struct parklot_wake_entry *end = entry + call->nr_entries;

	if (entry == end)
		return 0;
	if (!user_access_begin(uentry, call->nr_entries * sizeof(*entry)))
		return -EFAULT;
	for (; entry < end; entry++, uentry++) {
		unsafe_get_user(entry->lot, &uentry->lot, fault);
		unsafe_get_user(entry->nr, &uentry->nr, fault);
		unsafe_get_user(entry->reserved, &uentry->reserved, fault);
		unsafe_get_user(entry->woken, &uentry->woken, fault);
		unsafe_put_user(entry->woken, &uentry->woken, fault);
		entry->woken = 0;
	}
	user_access_end();
	return 0;
fault:
	user_access_end();
	return -EFAULT;
}

/* Inline, as the two functions below: WAKE is the call that has to be fast. */
static __always_inline int wake_prepare(struct parklot_wake_call *call,
					struct parklot_lots *lots,
					const struct parklot_wake *wake)
{
	const struct parklot_wake_entry *entry = call->entry;
	u32 i;

	if (wake->nr_entries > PARKLOT_MAX_BATCH)
		return -EINVAL;
	call->lots = lots;
	call->uentries = u64_to_user_ptr(wake->entries);
	call->nr_entries = wake->nr_entries;
	call->limit = wake->limit;
	if (wake_copy_in_entries(call))
		return -EFAULT;
	for (i = 0; i < call->nr_entries; i++)
		if (entry[i].reserved || entry[i].lot >= lots->nr_lots)
			return -EINVAL;
	return 0;
}

static __always_inline u32 wake_run(struct parklot_wake_call *call,
				    bool handoff)
{
	struct parklot_wake_entry *entry = call->entry;
	u32 i, left = call->limit;
	struct parklot_batch batch __uninitialized;
	struct parklot_lot *lot;

	parklot_batch_begin(&batch, handoff);
	for (i = 0; i < call->nr_entries && left; i++) {
		lot = parklot_lots_get(call->lots, entry[i].lot);
		entry[i].woken = parklot_lot_wake(lot, min(entry[i].nr, left),
						  &batch);
		trace_parklot_wake(entry[i].lot, min(entry[i].nr, left),
				   entry[i].woken);
		left -= entry[i].woken;
	}
	parklot_batch_end(&batch);
	atomic_long_inc(&call->lots->nr_batches);
	if (left == call->limit)
		atomic_long_inc(&call->lots->nr_empty);
	return call->limit - left;
}

static __always_inline int wake_report(const struct parklot_wake_call *call,
				       u32 woken,
				       struct parklot_wake __user *uwake)
{
	struct parklot_wake_entry __user *uentry = call->uentries;
	const struct parklot_wake_entry *entry = call->entry;
	const struct parklot_wake_entry *end = entry + call->nr_entries;

	if (put_user(woken, &uwake->woken))
		return -EFAULT;
	if (entry == end)
		return 0;
	if (!user_access_begin(uentry, call->nr_entries * sizeof(*entry)))
		return -EFAULT;
	for (; entry < end; entry++, uentry++)
		unsafe_put_user(entry->woken, &uentry->woken, fault);
	user_access_end();
	return 0;
fault:
	user_access_end();
	return -EFAULT;
}

/**
 * parklot_wake_prepare() - check a WAKE, its entries included
 * @call: on the caller's stack
 * @lots: the space's lots
 * @wake: from user space, not checked but for the flags
 *
 * Proves that the results can be written.
 *
 * Return: 0, -EINVAL or -EFAULT.
 */
int parklot_wake_prepare(struct parklot_wake_call *call,
			 struct parklot_lots *lots,
			 const struct parklot_wake *wake)
{
	return wake_prepare(call, lots, wake);
}

/**
 * parklot_wake_run() - do the wakes
 * @call:    from parklot_wake_prepare()
 * @handoff: the last wakee gets the caller's processor
 *
 * Return: the number of wakees of all entries.
 */
u32 parklot_wake_run(struct parklot_wake_call *call, bool handoff)
{
	return wake_run(call, handoff);
}

/**
 * parklot_wake_report() - write the results of the wakes to user space
 * @call:  after parklot_wake_run()
 * @woken: its result
 * @uwake: user space's struct with the field @woken
 *
 * Return: 0 or -EFAULT.
 */
int parklot_wake_report(const struct parklot_wake_call *call, u32 woken,
			struct parklot_wake __user *uwake)
{
	return wake_report(call, woken, uwake);
}

/*
 * Reads a WAKE of the usual size in one section of user access, and proves that
 * the result can be written. No flags: PARKLOT_WAKE_HANDOFF is for a WAKE_PARK.
 */
static __always_inline int
wake_copy_in(struct parklot_wake *wake, struct parklot_wake __user *uwake)
{
	if (!user_access_begin(uwake, sizeof(*uwake)))
		return -EFAULT;
	unsafe_get_user(wake->entries, &uwake->entries, fault);
	unsafe_get_user(wake->nr_entries, &uwake->nr_entries, fault);
	unsafe_get_user(wake->flags, &uwake->flags, fault);
	unsafe_get_user(wake->limit, &uwake->limit, fault);
	unsafe_get_user(wake->woken, &uwake->woken, fault);
	if (!wake->flags)
		unsafe_put_user(wake->woken, &uwake->woken, fault);
	user_access_end();
	return wake->flags ? -EINVAL : 0;
fault:
	user_access_end();
	return -EFAULT;
}

static noinline int wake_copy_in_other(struct parklot_wake *wake,
				       struct parklot_wake __user *uwake,
				       size_t size)
{
	int err = parklot_copy_in_other(wake, sizeof(*wake),
					PARKLOT_WAKE_SIZE_VER0, uwake, size);

	return err ? err : wake_copy_in(wake, uwake);
}

/**
 * parklot_wake_user() - do a WAKE
 * @lots:  the space's lots
 * @uwake: user space's struct, for input and results
 * @size:  its size as user space knows it
 *
 * Return: 0 or -errno.
 */
int parklot_wake_user(struct parklot_lots *lots,
		      struct parklot_wake __user *uwake, size_t size)
{
	struct parklot_wake_call call __uninitialized;
	struct parklot_wake wake __uninitialized;
	int err;

	if (size == sizeof(wake))
		err = wake_copy_in(&wake, uwake);
	else
		err = wake_copy_in_other(&wake, uwake, size);
	if (err)
		return err;
	err = wake_prepare(&call, lots, &wake);
	if (err)
		return err;
	return wake_report(&call, wake_run(&call, false), uwake);
}
