/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sigsafe_buf: text output without memory allocation, locks or locale
 *
 * So signal handlers and tasks with little stack can use it.
 */
#ifndef PL_SIGSAFE_BUF_H
#define PL_SIGSAFE_BUF_H

#include "base/base.h"

/* Initialized to { .fd = fd }; is_hasty: a write that would block fails. */
struct pl__sigsafe_buf {
	int	fd;
	bool	is_hasty;
	int	error;		/* -errno of the first failed write, or 0 */
	size_t	n;
	char	buf[512];
};

void pl__sigsafe_put(struct pl__sigsafe_buf *t, const char *s);
void pl__sigsafe_number(struct pl__sigsafe_buf *t, uint64_t v,
			unsigned int base);

/* Puts it in decimal, with its sign. */
void pl__sigsafe_int(struct pl__sigsafe_buf *t, int v);

/* Puts "0x" and hexadecimal digits. */
void pl__sigsafe_hex(struct pl__sigsafe_buf *t, uint64_t v);

/* Writes the rest; returns 0 or the -errno of the first failed write. */
int pl__sigsafe_flush(struct pl__sigsafe_buf *t);

#endif /* PL_SIGSAFE_BUF_H */
