/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * socket: received from, sent to, accepted, connected
 */
#include "io/io.h"

#include "parklot.h"

#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>

ssize_t pl_recv_until(int fd, void *buf, size_t n, int flags,
		      uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	flags = pl__io_recv_flags(flags);
	io_uring_prep_recv(&sqe, fd, buf, pl__io_clamp(n), flags);
	return pl__io(&sqe, flags & MSG_DONTWAIT ? 0 : POLLIN, deadline_ns);
}

ssize_t pl_send_until(int fd, const void *buf, size_t n, int flags,
		      uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_send(&sqe, fd, buf, pl__io_clamp(n),
			   flags | MSG_NOSIGNAL);
	return pl__io(&sqe, flags & MSG_DONTWAIT ? 0 : POLLOUT, deadline_ns);
}

int pl_accept_until(int fd, struct sockaddr *addr, socklen_t *len, int flags,
		    uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_accept(&sqe, fd, addr, len, flags);
	return pl__io(&sqe, POLLIN, deadline_ns);
}

/* Linux 6.1 returns EALREADY after a spurious wakeup (seen under load). */
int pl_connect_until(int fd, const struct sockaddr *addr, socklen_t len,
		     uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };
	int ret;

	io_uring_prep_connect(&sqe, fd, addr, len);
	do {
		ret = pl__io(&sqe, 0, deadline_ns);
		if (ret != -EALREADY)
			return ret;
		ret = pl__io_poll(fd, POLLOUT, deadline_ns);
	} while (ret > 0);
	return ret;
}

ssize_t pl_recv(int fd, void *buf, size_t n, int flags)
{
	return pl_recv_until(fd, buf, n, flags, PL_FOREVER);
}

ssize_t pl_send(int fd, const void *buf, size_t n, int flags)
{
	return pl_send_until(fd, buf, n, flags, PL_FOREVER);
}

int pl_accept(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return pl_accept_until(fd, addr, len, flags, PL_FOREVER);
}

int pl_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return pl_connect_until(fd, addr, len, PL_FOREVER);
}
