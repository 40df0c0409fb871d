/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What older kernels lack. Tested by presence: what is no macro is looked
 * for by Kbuild, which then defines PARKLOT_HAS_*.
 */
#ifndef PARKLOT_COMPAT_H
#define PARKLOT_COMPAT_H

#include <linux/mm.h>
#include <linux/sched.h>

/* The floor, which dkms.conf has too, as a pattern: this came with 6.1. */
#ifndef TASK_FREEZABLE
#error "parklot needs Linux 6.1 or later"
#endif

/* Not in 6.1.192. */
#ifndef PARKLOT_HAS_VM_FLAGS_MOD
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

#endif /* PARKLOT_COMPAT_H */
