/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "base/sigsafe_buf.h"
#include "base/sys.h"

int pl__sigsafe_flush(struct pl__sigsafe_buf *t)
{
	size_t done = 0;
	ssize_t ret;

	while (!t->error && done < t->n) {
		ret = t->is_hasty ?
			pl__fd_try_write(t->fd, t->buf + done, t->n - done) :
			pl__fd_write(t->fd, t->buf + done, t->n - done);
		if (ret >= 0)
			done += (size_t)ret;
		else if (ret != -EINTR)
			t->error = (int)ret;
	}
	t->n = 0;
	return t->error;
}

void pl__sigsafe_put(struct pl__sigsafe_buf *t, const char *s)
{
	while (*s) {
		if (t->n == sizeof(t->buf))
			pl__sigsafe_flush(t);
		t->buf[t->n++] = *s++;
	}
}

void pl__sigsafe_number(struct pl__sigsafe_buf *t, uint64_t v,
			unsigned int base)
{
	char digits[24];
	size_t i = sizeof(digits);

	digits[--i] = '\0';
	do {
		digits[--i] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	pl__sigsafe_put(t, digits + i);
}

void pl__sigsafe_int(struct pl__sigsafe_buf *t, int v)
{
	pl__sigsafe_put(t, v < 0 ? "-" : "");
	pl__sigsafe_number(t, v < 0 ? -(uint64_t)v : (uint64_t)v, 10);
}

void pl__sigsafe_hex(struct pl__sigsafe_buf *t, uint64_t v)
{
	pl__sigsafe_put(t, "0x");
	pl__sigsafe_number(t, v, 16);
}
