/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "ring/uring_overflow.h"
#include "base/sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define HEADING		"CqOverflowList:"

/* A file that is read line by line. */
struct lines {
	int			fd;
	size_t			at, end;	/* of what was read */
	char			bytes[1024];
};

static int next_byte(struct lines *l)
{
	ssize_t n;

	if (l->at == l->end) {
		n = pl__fd_read(l->fd, l->bytes, sizeof(l->bytes));
		if (n <= 0)
			return -1;
		l->at = 0;
		l->end = (size_t)n;
	}
	return l->bytes[l->at++];
}

/* The next line, cut off at @size - 1 bytes; false: there is none. */
static bool next_line(struct lines *l, char *line, size_t size)
{
	size_t n = 0;
	int c;

	while ((c = next_byte(l)) >= 0 && c != '\n')
		if (n < size - 1)
			line[n++] = (char)c;
	line[n] = '\0';
	return c >= 0;
}

uint64_t pl__uring_overflow(int ring_fd, uint64_t nr_taken,
			    void (*take)(void *arg, uint64_t data, int res,
					 uint32_t flags),
			    void *arg)
{
	struct lines l = { .at = 0 };
	unsigned long long data;
	char line[96];
	uint64_t nr = 0;
	unsigned int flags;
	int res;

	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", ring_fd);
	l.fd = pl__open(line, O_RDONLY | O_CLOEXEC);
	if (l.fd < 0)
		return 0;
	while (next_line(&l, line, sizeof(line)))
		if (!strcmp(line, HEADING))
			break;
	while (next_line(&l, line, sizeof(line))) {
		if (sscanf(line, " user_data=%llu, res=%d, flags=%x", &data,
			   &res, &flags) != 3)
			break;
		if (nr++ >= nr_taken)
			take(arg, data, res, flags);
	}
	pl__close(l.fd);
	return nr > nr_taken ? nr - nr_taken : 0;
}
