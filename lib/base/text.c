/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "base/text.h"
#include "base/sys.h"

int pl__text_flush(struct pl__text *t)
{
	size_t done = 0;
	ssize_t ret;

	while (!t->error && done < t->n) {
		ret = pl__fd_write(t->fd, t->buf + done, t->n - done);
		if (ret >= 0)
			done += (size_t)ret;
		else if (ret != -EINTR)
			t->error = (int)ret;
	}
	t->n = 0;
	return t->error;
}

void pl__text_put(struct pl__text *t, const char *s)
{
	while (*s) {
		if (t->n == sizeof(t->buf))
			pl__text_flush(t);
		t->buf[t->n++] = *s++;
	}
}

void pl__text_number(struct pl__text *t, uint64_t v, unsigned int base)
{
	char digits[24];
	size_t i = sizeof(digits);

	digits[--i] = '\0';
	do {
		digits[--i] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	pl__text_put(t, digits + i);
}

void pl__text_hex(struct pl__text *t, uint64_t v)
{
	pl__text_put(t, "0x");
	pl__text_number(t, v, 16);
}
