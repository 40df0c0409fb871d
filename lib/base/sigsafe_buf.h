/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sigsafe_buf: what is told, put together without memory, locks or locale
 *
 * So a signal handler may, and a task with little stack.
 */
#ifndef PL_SIGSAFE_BUF_H
#define PL_SIGSAFE_BUF_H

#include "base/base.h"

/* Begins as { .fd = fd }. */
struct pl__sigsafe_buf {
	int	fd;
	int	error;		/* of the first write that failed */
	size_t	n;
	char	buf[512];
};

void pl__sigsafe_put(struct pl__sigsafe_buf *t, const char *s);
void pl__sigsafe_number(struct pl__sigsafe_buf *t, uint64_t v,
			unsigned int base);

/* "0x" and so on. */
void pl__sigsafe_hex(struct pl__sigsafe_buf *t, uint64_t v);

/* Writes what is not written yet: 0, or the first error of all. */
int pl__sigsafe_flush(struct pl__sigsafe_buf *t);

#endif /* PL_SIGSAFE_BUF_H */
