/* SPDX-License-Identifier: GPL-2.0-only */
/* PARK and WAKE as commands of io_uring. */
#ifndef PARKLOT_URING_H
#define PARKLOT_URING_H

struct io_uring_cmd;

int parklot_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);

#endif /* PARKLOT_URING_H */
