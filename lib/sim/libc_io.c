/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Reading and writing, and what waits until one can. */
#include "sim/device.h"
#include "sim/io.h"
#include "sim/sim.h"
#include "sim/state.h"
#include "sim/uring.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

PL__SIM_API ssize_t readv(int fd, const struct iovec *iov, int nr)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(readv)(fd, iov, nr);
	return PL__SIM_IO("readv", fd, POLLIN, false,
			  PL__SIM_REAL(readv)(fd, iov, nr));
}

PL__SIM_API ssize_t recv(int fd, void *buf, size_t size, int flags)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(recv)(fd, buf, size, flags);
	size = pl__sim_io_part(fd, size, flags);
	return PL__SIM_IO("recv", fd, POLLIN, flags & MSG_DONTWAIT,
			  PL__SIM_REAL(recv)(fd, buf, size, flags));
}

PL__SIM_API ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(recvmsg)(fd, msg, flags);
	return PL__SIM_IO("recvmsg", fd, POLLIN, flags & MSG_DONTWAIT,
			  PL__SIM_REAL(recvmsg)(fd, msg, flags));
}

PL__SIM_API int accept4(int fd, struct sockaddr *addr, socklen_t *len,
			int flags)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(accept4)(fd, addr, len, flags);
	return (int)PL__SIM_IO("accept", fd, POLLIN, false,
			       PL__SIM_REAL(accept4)(fd, addr, len, flags));
}

PL__SIM_API int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(accept)(fd, addr, len);
	return accept4(fd, addr, len, 0);
}

/* What is left after a part was written, as where the writer waits. */
static ssize_t write_all(const char *where, int fd, const char *buf,
			 size_t size, int flags, bool is_socket)
{
	int was = pl__sim_io_begin(fd, flags & MSG_DONTWAIT);
	size_t done = 0;
	ssize_t n;

	pl__sim_io_end(fd, was);
	do {
		n = is_socket ?
		    PL__SIM_IO(where, fd, POLLOUT, flags & MSG_DONTWAIT,
			       PL__SIM_REAL(send)(fd, buf + done, size - done,
						  flags)) :
		    PL__SIM_IO(where, fd, POLLOUT, false,
			       PL__SIM_REAL(write)(fd, buf + done,
						   size - done));
		if (n < 0)
			return done ? (ssize_t)done : n;
		done += (size_t)n;
	} while (was && n && done < size);
	return (ssize_t)done;
}

PL__SIM_API ssize_t write(int fd, const void *buf, size_t size)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(write)(fd, buf, size);
	return write_all("write", fd, buf, size, 0, false);
}

PL__SIM_API ssize_t send(int fd, const void *buf, size_t size, int flags)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(send)(fd, buf, size, flags);
	return write_all("send", fd, buf, size, flags, true);
}

PL__SIM_API ssize_t writev(int fd, const struct iovec *iov, int nr)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(writev)(fd, iov, nr);
	return PL__SIM_IO("writev", fd, POLLOUT, false,
			  PL__SIM_REAL(writev)(fd, iov, nr));
}

PL__SIM_API ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(sendmsg)(fd, msg, flags);
	return PL__SIM_IO("sendmsg", fd, POLLOUT, flags & MSG_DONTWAIT,
			  PL__SIM_REAL(sendmsg)(fd, msg, flags));
}

PL__SIM_API int close(int fd)
{
	struct pl__sim_space *space = NULL;
	int ret;

	pl__sim_point("close");
	if (pl__sim_is_on) {
		pl__sim_uring_closes(fd);
		space = pl__sim_device_at(fd);
	}
	ret = PL__SIM_REAL(close)(fd);
	if (space)
		pl__sim_device_closed(space);
	pl__sim_io_changed();
	return ret;
}

PL__SIM_API int shutdown(int fd, int how)
{
	int ret;

	pl__sim_point("shutdown");
	ret = PL__SIM_REAL(shutdown)(fd, how);
	pl__sim_io_changed();
	return ret;
}

/* ---- poll() and its like ---- */

static uint64_t ms_to_ns(int ms)
{
	return ms < 0 ? PL__SIM_FOREVER : (uint64_t)ms * 1000000;
}

PL__SIM_API int poll(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(poll)(fds, nr, timeout_ms);
	return pl__sim_poll("poll", fds, nr, ms_to_ns(timeout_ms));
}

PL__SIM_API int ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *ts,
		      const sigset_t *mask)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(ppoll)(fds, nr, ts, mask);
	return pl__sim_poll("ppoll", fds, nr,
			    ts ? pl__sim_ns(ts) : PL__SIM_FOREVER);
}

PL__SIM_API int epoll_wait(int epfd, struct epoll_event *events, int max,
			   int timeout_ms)
{
	struct pollfd p = { .fd = epfd, .events = POLLIN };
	int n;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(epoll_wait)(epfd, events, max, timeout_ms);
	pl__sim_point("epoll_wait");
	/* poll() may have no descriptors left to look at. */
	pl__sim_uring_show();
	n = PL__SIM_REAL(epoll_wait)(epfd, events, max, 0);
	if (n)
		return n;
	/* As after SIGCONT, without a handler. */
	if (timeout_ms && pl__sim_one_in(pl__sim.interrupt_in)) {
		errno = EINTR;
		return -1;
	}
	pl__sim_poll("epoll_wait", &p, 1, ms_to_ns(timeout_ms));
	return PL__SIM_REAL(epoll_wait)(epfd, events, max, 0);
}

PL__SIM_API int epoll_pwait(int epfd, struct epoll_event *events, int max,
			    int timeout_ms, const sigset_t *mask)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(epoll_pwait)(epfd, events, max, timeout_ms,
						 mask);
	return epoll_wait(epfd, events, max, timeout_ms);
}
