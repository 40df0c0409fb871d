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

#endif /* PARKLOT_UACCESS_H */
