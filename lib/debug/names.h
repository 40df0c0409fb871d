/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * names: of io_uring's operations, and of the system calls in which threads
 * block
 *
 * The gdb script reads the tables, too.
 */
#ifndef PL_NAMES_H
#define PL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct pl__op_name {
	bool		has_fd;	/* sqe->fd is the descriptor it works on */
	char		name[23];
};

/* NULL: the table does not have it. */
const struct pl__op_name *pl__op_name(uint8_t opcode);

struct pl__syscall_name {
	short		nr;
	bool		has_fd;	/* the first argument is a descriptor */
	char		name[21];
};

/* NULL: the table does not have it. */
const struct pl__syscall_name *pl__syscall_name(long nr);

#endif /* PL_NAMES_H */
