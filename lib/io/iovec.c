/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * iovec: I/O at a position, by vector and by message
 */
#include "io/io.h"

#include "parklot.h"

#include <liburing.h>
#include <poll.h>

/* io_uring's number for the file's own position; callers cannot ask for it. */
#define AT_POSITION	((uint64_t)-1)

ssize_t pl_pread_until(int fd, void *buf, size_t n, off_t offset,
		       uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	if (offset < 0)
		return -EINVAL;
	io_uring_prep_read(&sqe, fd, buf, pl__io_clamp(n), (uint64_t)offset);
	return pl__io(&sqe, POLLIN, deadline_ns);
}

ssize_t pl_pwrite_until(int fd, const void *buf, size_t n, off_t offset,
			uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	if (offset < 0)
		return -EINVAL;
	io_uring_prep_write(&sqe, fd, buf, pl__io_clamp(n), (uint64_t)offset);
	return pl__io(&sqe, POLLOUT, deadline_ns);
}

ssize_t pl_readv_until(int fd, const struct iovec *iov, int nr,
		       uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	if (nr < 0)
		return -EINVAL;
	io_uring_prep_readv(&sqe, fd, iov, (unsigned int)nr, AT_POSITION);
	return pl__io(&sqe, POLLIN, deadline_ns);
}

ssize_t pl_writev_until(int fd, const struct iovec *iov, int nr,
			uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	if (nr < 0)
		return -EINVAL;
	io_uring_prep_writev(&sqe, fd, iov, (unsigned int)nr, AT_POSITION);
	return pl__io(&sqe, POLLOUT, deadline_ns);
}

static uint32_t unless_dontwait(int flags, uint32_t events)
{
	return flags & MSG_DONTWAIT ? 0 : events;
}

ssize_t pl_recvmsg_until(int fd, struct msghdr *msg, int flags,
			 uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	flags = pl__io_recv_flags(flags);
	io_uring_prep_recvmsg(&sqe, fd, msg, (unsigned int)flags);
	return pl__io(&sqe, unless_dontwait(flags, POLLIN), deadline_ns);
}

ssize_t pl_sendmsg_until(int fd, const struct msghdr *msg, int flags,
			 uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_sendmsg(&sqe, fd, msg,
			      (unsigned int)flags | MSG_NOSIGNAL);
	return pl__io(&sqe, unless_dontwait(flags, POLLOUT), deadline_ns);
}

ssize_t pl_pread(int fd, void *buf, size_t n, off_t offset)
{
	return pl_pread_until(fd, buf, n, offset, PL_FOREVER);
}

ssize_t pl_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
	return pl_pwrite_until(fd, buf, n, offset, PL_FOREVER);
}

ssize_t pl_readv(int fd, const struct iovec *iov, int nr)
{
	return pl_readv_until(fd, iov, nr, PL_FOREVER);
}

ssize_t pl_writev(int fd, const struct iovec *iov, int nr)
{
	return pl_writev_until(fd, iov, nr, PL_FOREVER);
}

ssize_t pl_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return pl_recvmsg_until(fd, msg, flags, PL_FOREVER);
}

ssize_t pl_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return pl_sendmsg_until(fd, msg, flags, PL_FOREVER);
}
