/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * syscall_name: the names of the system calls in which threads block
 *
 * The gdb script reads the table, too.
 */
#ifndef PL_SYSCALL_NAME_H
#define PL_SYSCALL_NAME_H

#include <stdbool.h>

struct pl__syscall_name {
	short		nr;
	bool		has_fd;	/* the first argument is a descriptor */
	char		name[21];
};

/* NULL: the table does not have it. */
const struct pl__syscall_name *pl__syscall_name(long nr);

#endif /* PL_SYSCALL_NAME_H */
