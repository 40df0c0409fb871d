/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#ifndef BUF_H
#define BUF_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct buf {
	char	*at;
	size_t	len, size;
	bool	has_failed;	/* to become more */
};

/* Room for @n more; NULL: no memory. */
static inline char *buf_reserve(struct buf *b, size_t n)
{
	size_t size = b->size ? b->size : 32;
	char *at;

	while (size - b->len < n)
		size *= 2;
	if (size != b->size) {
		at = realloc(b->at, size);
		if (!at) {
			b->has_failed = true;
			return NULL;
		}
		b->at = at;
		b->size = size;
	}
	return b->at + b->len;
}

static inline void buf_append(struct buf *b, const void *at, size_t n)
{
	char *to = buf_reserve(b, n);

	if (to && n) {
		memcpy(to, at, n);
		b->len += n;
	}
}

static inline void buf_free(struct buf *b)
{
	free(b->at);
	memset(b, 0, sizeof(*b));
}

#endif /* BUF_H */
