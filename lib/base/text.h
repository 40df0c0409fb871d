/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * text: what is told, put together without memory, locks or locale
 *
 * So a signal handler may, and a task with little stack.
 */
#ifndef PL_TEXT_H
#define PL_TEXT_H

#include "base/base.h"

/* Begins as { .fd = fd }. */
struct pl__text {
	int	fd;
	int	error;		/* of the first write that failed */
	size_t	n;
	char	buf[512];
};

void pl__text_put(struct pl__text *t, const char *s);
void pl__text_number(struct pl__text *t, uint64_t v, unsigned int base);

/* "0x" and so on. */
void pl__text_hex(struct pl__text *t, uint64_t v);

/* Writes what is not written yet: 0, or the first error of all. */
int pl__text_flush(struct pl__text *t);

#endif /* PL_TEXT_H */
