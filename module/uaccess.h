/* SPDX-License-Identifier: GPL-2.0-only */
/* Structs and times that come from user space. */
#ifndef PARKLOT_UACCESS_H
#define PARKLOT_UACCESS_H

#include <linux/ktime.h>
#include <linux/types.h>
#include <linux/uaccess.h>

int parklot_copy_in_other(void *dst, size_t ksize, size_t first,
			  const void __user *src, size_t size);
ktime_t parklot_deadline(u64 deadline_ns);

/**
 * parklot_copy_in() - copy a struct from user space
 * @dst:   the module's struct
 * @ksize: its size, a constant: that spares the usual case the checks
 * @first: the size of its first version: PARKLOT_*_SIZE_VER0
 * @src:   user space's struct
 * @size:  its size as user space knows it
 *
 * Fields that user space does not know are zero.
 *
 * Return: 0, -EINVAL if @size is smaller than any version, -E2BIG if it is
 * larger than @ksize and the rest is not zero, or -EFAULT.
 */
static __always_inline int parklot_copy_in(void *dst, size_t ksize,
					   size_t first,
					   const void __user *src, size_t size)
{
	if (size != ksize)
		return parklot_copy_in_other(dst, ksize, first, src, size);
	return copy_from_user(dst, src, ksize) ? -EFAULT : 0;
}

#endif /* PARKLOT_UACCESS_H */
