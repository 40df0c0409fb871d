/* SPDX-License-Identifier: GPL-2.0-only */
/* What calls have in common, by ioctl or by io_uring. */
#ifndef PARKLOT_CALL_H
#define PARKLOT_CALL_H

#include <linux/ktime.h>
#include <linux/parklot.h>
#include <linux/types.h>
#include <linux/uaccess.h>

struct file;
struct files_struct;
struct parklot_lot;
struct parklot_yard;

/* One WAKE, checked. */
struct parklot_round {
	struct parklot_yard		*yard;
	struct parklot_wake_entry	__user *uentries;
	u32				nr_entries;
	u32				limit;
	struct parklot_wake_entry	entry[PARKLOT_MAX_BATCH];
};

int parklot_copy_in_other(void *dst, size_t ksize, size_t first,
			  const void __user *src, size_t size);
ktime_t parklot_deadline(u64 deadline_ns);
bool parklot_call_is_lost(struct parklot_lot *lot, u32 nr_interrupts,
			  struct file *file);
void parklot_call_closed(struct file *file, struct files_struct *files);

int parklot_round_prepare(struct parklot_round *round,
			  struct parklot_yard *yard,
			  const struct parklot_wake *wake);
u32 parklot_round_wake(struct parklot_round *round, bool hands_off);
int parklot_round_report(const struct parklot_round *round, u32 woken,
			 struct parklot_wake __user *uwake);
int parklot_call_wake(struct parklot_yard *yard,
		      struct parklot_wake __user *uwake, size_t size);

/**
 * parklot_copy_in() - a struct of user space's
 * @dst:   ours
 * @ksize: how large it is here, a constant: that spares the usual case checks
 * @first: how large its first version was: PARKLOT_*_SIZE_VER0
 * @src:   theirs
 * @size:  how large they know it
 *
 * What they do not know is zero.
 *
 * Return: 0, -EINVAL if it is smaller than any version, -E2BIG if it is larger
 * and not zero beyond, or -EFAULT.
 */
static __always_inline int parklot_copy_in(void *dst, size_t ksize,
					   size_t first,
					   const void __user *src, size_t size)
{
	if (size != ksize)
		return parklot_copy_in_other(dst, ksize, first, src, size);
	return copy_from_user(dst, src, ksize) ? -EFAULT : 0;
}

#endif /* PARKLOT_CALL_H */
