/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * op_name: the names of io_uring's operations
 *
 * The gdb script reads the table, too.
 */
#ifndef PL_OP_NAME_H
#define PL_OP_NAME_H

#include <stdbool.h>
#include <stdint.h>

struct pl__op_name {
	bool		has_fd;	/* sqe->fd is the descriptor it works on */
	char		name[23];
};

/* NULL: the table does not have it. */
const struct pl__op_name *pl__op_name(uint8_t opcode);

#endif /* PL_OP_NAME_H */
