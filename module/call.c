// SPDX-License-Identifier: GPL-2.0-only
/*
 * What calls have in common, by ioctl or by io_uring: structs from user space,
 * deadlines, the end of the last descriptor, and a WAKE, of which all is
 * checked before anything is done.
 */
#include <linux/bitops.h>
#include <linux/fdtable.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/parklot.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>

#include "call.h"
#include "inject.h"
#include "space.h"
#include "trace.h"

/**
 * parklot_copy_in_other() - parklot_copy_in() for who knows it otherwise
 * @dst:   ours
 * @ksize: how large it is here
 * @first: how large its first version was
 * @src:   theirs
 * @size:  how large they know it
 *
 * Return: as that says.
 */
int parklot_copy_in_other(void *dst, size_t ksize, size_t first,
			  const void __user *src, size_t size)
{
	if (size < first)
		return -EINVAL;
	return copy_struct_from_user(dst, ksize, src, size);
}

/**
 * parklot_deadline() - the caller's CLOCK_MONOTONIC to the machine's
 * @deadline_ns: any, PARKLOT_FOREVER too
 *
 * Return: when, or KTIME_MAX.
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
	/* Before the machine's start is long ago, not an underflow. */
	if (offset > 0 && deadline_ns < offset)
		return 0;
	return min_t(u64, deadline_ns - offset, KTIME_MAX);
}

/* Under one hold of a table's lock at most so many numbers are looked at. */
#define PARKLOT_FILES_AT_ONCE	256

/*
 * A descriptor of @file in @files, from number @fd on: that, or -1. Not by
 * iterate_fd(), which looks at all unused numbers that follow in one hold.
 */
static int file_find(struct files_struct *files, const struct file *file,
		     unsigned int fd)
{
	unsigned int end, max;
	struct fdtable *table;

	do {
		spin_lock(&files->file_lock);
		table = files_fdtable(files);
		max = table->max_fds;
		end = min(fd + PARKLOT_FILES_AT_ONCE, max);
		for_each_set_bit_from(fd, table->open_fds, end)
			if (rcu_access_pointer(table->fd[fd]) == file)
				break;
		spin_unlock(&files->file_lock);
		if (fd < end)
			return fd;
		cond_resched();
	} while (end < max);
	return -1;
}

/*
 * Begins where the last search ended, so that a table full of duplicates is
 * closed in linear time. A duplicate that is moved meanwhile may be missed.
 */
static bool table_has(struct files_struct *files, struct parklot_space *space,
		      const struct file *file)
{
	unsigned int hint = READ_ONCE(space->fd_hint);
	int fd;

	fd = file_find(files, file, hint);
	if (fd < 0 && hint)
		fd = file_find(files, file, 0);
	if (fd < 0)
		return false;
	WRITE_ONCE(space->fd_hint, fd);
	return true;
}

/**
 * parklot_call_is_lost() - was the descriptor closed that a parker came by?
 * @lot:	   where it is going to park
 * @nr_interrupts: the lot's, looked at before
 * @file:	   by which it came
 *
 * So it is if the caller's table of descriptors has none of this space any
 * more: then no thread with the same table can wake it.
 *
 *	park				close
 *	n = nr_interrupts [close-b]	the descriptor leaves the table
 *	has_others = true		full barrier		[close-c]
 *	full barrier	  [close-d]	if (the opener's table || has_others)
 *	if (not in the table)		    if (not in the table), under lock:
 *	    return			        nr_interrupts++	[close-a]
 *	under lock:			        everybody off the list
 *	    if (nr_interrupts == n)
 *		onto the list
 *
 * A close that the look at n missed is met under the lock; one that it saw
 * has emptied the table before. Only a parker by another table than the
 * opener's writes has_others: it sees the empty table, or the close sees
 * has_others. A close before SETUP's end interrupts no lot: so the first park
 * on each lot looks as well, and has the same barrier behind its look at the
 * yard. By the opener's table the others look only after a close.
 */
bool parklot_call_is_lost(struct parklot_lot *lot, u32 nr_interrupts,
			  struct file *file)
{
	struct parklot_space *space = file->private_data;
	struct files_struct *files = current->files;

	if (files != space->files)
		WRITE_ONCE(space->has_others, true);
	else if (nr_interrupts == READ_ONCE(lot->nr_settled))
		return false;
	/* [close-d] pairs with [close-c] in parklot_call_closed(). */
	smp_mb();
	PARKLOT_INJECT("close-d");
	if (!table_has(files, space, file))
		return true;
	if (files == space->files)
		WRITE_ONCE(lot->nr_settled, nr_interrupts);
	return false;
}

/**
 * parklot_call_closed() - a descriptor was closed
 * @file:  of it
 * @files: the table that it is not in any more, or NULL if it was in none
 *
 * If none is left there, the space's sleepers are interrupted. Those who
 * parked by another table, which has one, park again.
 *
 * To look for the last one takes as long as the table is: that is spared to
 * spaces without lots, of which a user may have as many as there are
 * descriptors. Of the others RLIMIT_MEMLOCK allows few.
 */
void parklot_call_closed(struct file *file, struct files_struct *files)
{
	struct parklot_space *space = file->private_data;

	/* [close-c] pairs with [close-d] in parklot_call_is_lost(). */
	smp_mb();
	PARKLOT_INJECT("close-c");
	if (!files || !parklot_space_yard(space) ||
	    (files != space->files && !READ_ONCE(space->has_others)))
		return;
	if (!table_has(files, space, file))
		parklot_space_interrupt(space);
}

/*
 * All entries at once, so that user memory is opened once: reads them, and
 * writes what is where the results go, which proves that they can be written.
 */
static int round_copy_in(struct parklot_round *round)
{
	struct parklot_wake_entry __user *uentry = round->uentries;
	struct parklot_wake_entry *entry = round->entry;
	struct parklot_wake_entry *end = entry + round->nr_entries;

	if (entry == end)
		return 0;
	if (!user_access_begin(uentry, round->nr_entries * sizeof(*entry)))
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

/* Inline, as the two below are: WAKE is the call that has to be quick. */
static __always_inline int round_prepare(struct parklot_round *round,
					 struct parklot_yard *yard,
					 const struct parklot_wake *wake)
{
	const struct parklot_wake_entry *entry = round->entry;
	u32 i;

	if (wake->nr_entries > PARKLOT_MAX_BATCH)
		return -EINVAL;
	round->yard = yard;
	round->uentries = u64_to_user_ptr(wake->entries);
	round->nr_entries = wake->nr_entries;
	round->limit = wake->limit;
	if (round_copy_in(round))
		return -EFAULT;
	for (i = 0; i < round->nr_entries; i++)
		if (entry[i].reserved || entry[i].lot >= yard->nr_lots)
			return -EINVAL;
	return 0;
}

static __always_inline u32 round_wake(struct parklot_round *round,
				      bool hands_off)
{
	struct parklot_wake_entry *entry = round->entry;
	u32 i, left = round->limit;
	struct parklot_batch batch __uninitialized;
	struct parklot_lot *lot;

	parklot_batch_begin(&batch, hands_off);
	for (i = 0; i < round->nr_entries && left; i++) {
		lot = parklot_yard_lot(round->yard, entry[i].lot);
		entry[i].woken = parklot_lot_wake(lot, min(entry[i].nr, left),
						  &batch);
		trace_parklot_wake(entry[i].lot, min(entry[i].nr, left),
				   entry[i].woken);
		left -= entry[i].woken;
	}
	parklot_batch_end(&batch);
	atomic_long_inc(&round->yard->nr_batches);
	if (left == round->limit)
		atomic_long_inc(&round->yard->nr_empty);
	return round->limit - left;
}

static __always_inline int round_report(const struct parklot_round *round,
					u32 woken,
					struct parklot_wake __user *uwake)
{
	struct parklot_wake_entry __user *uentry = round->uentries;
	const struct parklot_wake_entry *entry = round->entry;
	const struct parklot_wake_entry *end = entry + round->nr_entries;

	if (put_user(woken, &uwake->woken))
		return -EFAULT;
	if (entry == end)
		return woken;
	if (!user_access_begin(uentry, round->nr_entries * sizeof(*entry)))
		return -EFAULT;
	for (; entry < end; entry++, uentry++)
		unsafe_put_user(entry->woken, &uentry->woken, fault);
	user_access_end();
	return woken;
fault:
	user_access_end();
	return -EFAULT;
}

/**
 * parklot_round_prepare() - check a WAKE, its entries included
 * @round: on the caller's stack
 * @yard:  whose lots
 * @wake:  as user space wants it, but for the flags
 *
 * Proves that the results can be written.
 *
 * Return: 0, -EINVAL or -EFAULT.
 */
int parklot_round_prepare(struct parklot_round *round,
			  struct parklot_yard *yard,
			  const struct parklot_wake *wake)
{
	return round_prepare(round, yard, wake);
}

/**
 * parklot_round_wake() - the wakes
 * @round:     from parklot_round_prepare()
 * @hands_off: the last wakee gets the caller's processor
 *
 * Return: how many in all.
 */
u32 parklot_round_wake(struct parklot_round *round, bool hands_off)
{
	return round_wake(round, hands_off);
}

/**
 * parklot_round_report() - tell user space what the wakes came to
 * @round: after parklot_round_wake()
 * @woken: what that said
 * @uwake: whose @woken to fill in
 *
 * Return: @woken, or -EFAULT.
 */
int parklot_round_report(const struct parklot_round *round, u32 woken,
			 struct parklot_wake __user *uwake)
{
	return round_report(round, woken, uwake);
}

/*
 * All at once as well, for the size that is the usual one. Proves that the
 * result can be written. No flags: PARKLOT_WAKE_HANDOFF is for who parks then.
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
 * parklot_call_wake() - all of a WAKE
 * @yard:  whose lots
 * @uwake: what is wanted, and where the results go
 * @size:  of it, as user space knows it
 *
 * Return: how many were woken, or -errno.
 */
int parklot_call_wake(struct parklot_yard *yard,
		      struct parklot_wake __user *uwake, size_t size)
{
	struct parklot_round round __uninitialized;
	struct parklot_wake wake __uninitialized;
	int err;

	if (size == sizeof(wake))
		err = wake_copy_in(&wake, uwake);
	else
		err = wake_copy_in_other(&wake, uwake, size);
	if (err)
		return err;
	err = round_prepare(&round, yard, &wake);
	if (err)
		return err;
	return round_report(&round, round_wake(&round, false), uwake);
}
