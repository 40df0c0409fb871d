// SPDX-License-Identifier: GPL-2.0-only
/* The close of a table's last descriptor ends the sleeps of its threads. */
#include <linux/bitops.h>
#include <linux/fdtable.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "close.h"
#include "inject.h"
#include "lot.h"
#include "space.h"

/* Numbers of descriptors looked at in one hold of a table's lock, at most. */
#define PARKLOT_FILES_AT_ONCE	256

/*
 * Returns the first descriptor of @file in @files, from number @fd on, or -1.
 * iterate_fd() would look at all unused numbers that follow in one hold.
 */
static int close_find_fd(struct files_struct *files, const struct file *file,
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
 * Does @files have a descriptor of @file? Begins where the last search ended,
 * so that a table full of duplicates is closed in linear time. A duplicate that
 * is moved meanwhile may be missed.
 */
static bool close_table_has(struct files_struct *files,
			    struct parklot_space *space,
			    const struct file *file)
{
	unsigned int hint = READ_ONCE(space->fd_hint);
	int fd;

	fd = close_find_fd(files, file, hint);
	if (fd < 0 && hint)
		fd = close_find_fd(files, file, 0);
	if (fd < 0)
		return false;
	WRITE_ONCE(space->fd_hint, fd);
	return true;
}

/**
 * parklot_close_was_last() - did the parker's table lose its last descriptor?
 * @lot:	   the lot on which the caller is going to park
 * @nr_interrupts: the lot's, read before
 * @file:	   the file of the space
 *
 * If the caller's table of descriptors has no descriptor of @file, no thread
 * with the same table can wake the caller.
 *
 *	park				close
 *	n = nr_interrupts [table-b]	the descriptor leaves the table
 *	has_others = true		full barrier		[table-c]
 *	full barrier	  [table-d]	if (the opener's table || has_others)
 *	if (not in the table)		    if (not in the table), under lock:
 *	    return			        nr_interrupts++	[table-a]
 *	under lock:			        all sleepers off the list
 *	    if (nr_interrupts == n)
 *		onto the list
 *
 * A close that comes after the read of n is found under the lock; a close that
 * comes before it has emptied the table. Only a parker by another table than
 * the opener's writes has_others: it sees the empty table, or the close sees
 * has_others. A close before SETUP's end interrupts no lot: so the first park
 * on each lot looks for its descriptor as well, after the same barrier behind
 * its read of the space's lots. Later parks by the opener's table look for it
 * only after a close.
 *
 * Return: true if the caller must not park.
 */
bool parklot_close_was_last(struct parklot_lot *lot, u32 nr_interrupts,
			    struct file *file)
{
	struct parklot_space *space = file->private_data;
	struct files_struct *files = current->files;

	if (files != space->files)
		WRITE_ONCE(space->has_others, true);
	else if (nr_interrupts == READ_ONCE(lot->nr_settled))
		return false;
	/*
	 * [table-d] pairs with [table-c] in parklot_close_done(): has_others is
	 * written before the table is read. Otherwise the close may find no
	 * other parkers, while this one finds the closed descriptor and sleeps.
	 */
	smp_mb();
	PARKLOT_INJECT("table-d");
	if (!close_table_has(files, space, file))
		return true;
	if (files == space->files)
		WRITE_ONCE(lot->nr_settled, nr_interrupts);
	return false;
}

/**
 * parklot_close_done() - interrupt the sleepers if the last descriptor is gone
 * @file:  the file of the closed descriptor
 * @files: the table that the descriptor left, or NULL if it was in none
 *
 * If @files has no other descriptor of @file, the space's sleepers are
 * interrupted. Those that parked by another table, which has one, park again.
 *
 * The search for the last descriptor takes time in proportion to the table.
 * Spaces without lots are spared the search: a user may have as many of them as
 * descriptors. RLIMIT_MEMLOCK allows few of the others.
 */
void parklot_close_done(struct file *file, struct files_struct *files)
{
	struct parklot_space *space = file->private_data;

	/*
	 * [table-c] pairs with [table-d] in parklot_close_was_last(): the
	 * descriptor leaves the table before has_others is read. Otherwise a
	 * parker by another table than the opener's could sleep for ever.
	 */
	smp_mb();
	PARKLOT_INJECT("table-c");
	if (!files || !parklot_space_lots(space) ||
	    (files != space->files && !READ_ONCE(space->has_others)))
		return;
	if (!close_table_has(files, space, file))
		parklot_space_interrupt(space);
}
