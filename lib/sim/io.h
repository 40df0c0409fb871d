/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * io: waiting for a descriptor, which stays the kernel's
 *
 * A call that would wait is made without waiting, again and again, each time
 * that another thread's call may have changed what it finds.
 */
#ifndef PL_SIM_IO_H
#define PL_SIM_IO_H

#include "sim/uring.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Something was written, read, opened or closed; and how often so far. */
void pl__sim_io_changed(void);
uint64_t pl__sim_io_nr_changes(void);

/* As poll(), but @timeout_ns; PL__SIM_FOREVER: none. */
int pl__sim_poll(const char *where, struct pollfd *fds, nfds_t nr,
		 uint64_t timeout_ns);

/*
 * Makes a descriptor non-blocking; returns what pl__sim_io_end() is given to
 * undo it, or 0: the caller does not want to wait, or it cannot be said.
 */
int pl__sim_io_begin(int fd, bool dont_wait);
void pl__sim_io_end(int fd, int before);
void pl__sim_io_wait(const char *where, int fd, short events);

/* Whether @fd is a stream: what one call does not read, the next one may. */
bool pl__sim_io_is_stream(int fd);
/* How much of @size a read of @fd is to ask for: the seed may make it short. */
size_t pl__sim_io_part(int fd, size_t size, int flags);

/* A descriptor of a file that says @text, to be read; -1 with errno. */
int pl__sim_io_text(const char *text);

/* @call, which waits for @events of @fd unless @fd or @dont_wait forbid it. */
#define PL__SIM_IO(where, fd, events, dont_wait, call) __extension__ ({	\
	int __before;							\
	long __ret;							\
									\
	pl__sim_point(where);						\
	pl__sim_uring_pass();						\
	for (;;) {							\
		__before = pl__sim_io_begin(fd, dont_wait);		\
		__ret = (long)(call);					\
		pl__sim_io_end(fd, __before);				\
		pl__sim_io_changed();					\
		if (__ret >= 0 || errno != EAGAIN || !__before)		\
			break;						\
		pl__sim_io_wait(where, fd, events);			\
	}								\
	__ret;								\
})

#endif /* PL_SIM_IO_H */
