/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * iovec: I/O at a position, by vector and by message
 */
#include "io/io.h"
#include "base/sys.h"
#include "wait/wait.h"

#include "parklot.h"

#include <liburing.h>
#include <poll.h>
#include <sys/syscall.h>

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

/*
 * mmsg: several messages by one system call, once there is one
 *
 * io_uring has no such request.  The call is made without blocking; only if not
 * even the first message can be had does the task wait: for the descriptor, or
 * for the request that sends the first message, as a datagram socket is
 * writable though its peer takes no more.
 */

static long mmsg_now(long number, int fd, struct mmsghdr *msgs, unsigned int nr,
		     int flags)
{
	long ret;

	if (number == SYS_sendmmsg)
		pl__io_order_release();
	do {
		ret = pl__syscall(number, fd, msgs, nr, flags | MSG_DONTWAIT,
				  NULL);
	} while (ret == -EINTR);
	if (ret > 0 && number == SYS_recvmmsg)
		pl__io_order_acquire();
	return ret;
}

int pl_recvmmsg_until(int fd, struct mmsghdr *msgs, unsigned int nr, int flags,
		      uint64_t deadline_ns)
{
	/* Events say nothing of errors that are asked for: recvmsg(2). */
	const bool waits = !(flags & (MSG_DONTWAIT | MSG_ERRQUEUE));
	long ret = pl__wait_pending();

	while (ret >= 0) {
		ret = mmsg_now(SYS_recvmmsg, fd, msgs, nr, flags);
		if (ret != -EAGAIN || !waits) {
			pl__io_take_turn();
			return (int)ret;
		}
		ret = pl_poll(fd, POLLIN, deadline_ns);
	}
	return (int)ret;
}

/* No other message follows on a part of this one: a stream would have a gap. */
static bool is_sent_in_part(const struct mmsghdr *m)
{
	size_t len = 0, i, nr = m->msg_hdr.msg_iovlen;

	for (i = 0; i < nr; i++)
		len += m->msg_hdr.msg_iov[i].iov_len;
	return m->msg_len < len;
}

/* Returns 1 with the first message sent, or -errno. */
static int mmsg_send_first(int fd, struct mmsghdr *msgs, int flags,
			   uint64_t deadline_ns)
{
	ssize_t ret = pl_sendmsg_until(fd, &msgs->msg_hdr, flags, deadline_ns);

	if (ret < 0)
		return (int)ret;
	msgs->msg_len = (unsigned int)ret;
	return 1;
}

int pl_sendmmsg_until(int fd, struct mmsghdr *msgs, unsigned int nr, int flags,
		      uint64_t deadline_ns)
{
	long more, ret = pl__wait_pending();

	if (ret)
		return (int)ret;
	ret = mmsg_now(SYS_sendmmsg, fd, msgs, nr, flags | MSG_NOSIGNAL);
	if (ret != -EAGAIN || flags & MSG_DONTWAIT) {
		pl__io_take_turn();
		return (int)ret;
	}
	ret = mmsg_send_first(fd, msgs, flags, deadline_ns);
	if (ret < 0 || nr == 1 || is_sent_in_part(msgs))
		return (int)ret;
	more = mmsg_now(SYS_sendmmsg, fd, msgs + 1, nr - 1,
			flags | MSG_NOSIGNAL);
	return more > 0 ? (int)more + 1 : 1;
}

int pl_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int nr, int flags)
{
	return pl_recvmmsg_until(fd, msgs, nr, flags, PL_FOREVER);
}

int pl_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int nr, int flags)
{
	return pl_sendmmsg_until(fd, msgs, nr, flags, PL_FOREVER);
}
