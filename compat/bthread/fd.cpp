// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Descriptors: tasks wait by parklot's I/O, where bthread has an epoll thread
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "bthread/unstable.h"
#include "butil/fd_utility.h"
#include "deadline.h"
#include "keep_errno.h"

namespace butil {
int pthread_fd_wait(int fd, unsigned events, const timespec *abstime);
}

namespace bthread {

/* They have the numbers of POLLIN and so on; EPOLLET and such mean nothing. */
static const unsigned WAITABLE = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP |
				 EPOLLERR | EPOLLHUP;

static int fd_wait_in_task(int fd, unsigned events, const timespec *abstime)
{
	const int was = errno;
	const int got = pl_poll(fd, events & WAITABLE, to_deadline(abstime));

	if (got < 0)
		return fail(-got);
	if (got & POLLNVAL)
		return fail(EBADF);
	errno = was;
	return 0;
}

static int connected(int err, int was)
{
	if (err)
		return fail(-err);
	errno = was;
	return 0;
}

/* bthread's epoll threads, which its tests stop; there are none. */
int stop_and_join_epoll_threads()
{
	return 0;
}

}  // namespace bthread

extern "C" {

int bthread_fd_timedwait(int fd, unsigned events, const timespec *abstime)
{
	if (fd < 0 || !(events & bthread::WAITABLE))
		return bthread::fail(EINVAL);
	if (!pl_self())
		return butil::pthread_fd_wait(fd, events, abstime);
	return bthread::fd_wait_in_task(fd, events, abstime);
}

int bthread_fd_wait(int fd, unsigned events)
{
	return bthread_fd_timedwait(fd, events, nullptr);
}

int bthread_timed_connect(int fd, const sockaddr *addr, socklen_t len,
			  const timespec *abstime)
{
	const int was = errno;

	return bthread::connected(pl_connect_until(fd, addr, len,
					bthread::to_deadline(abstime)), was);
}

int bthread_connect(int fd, const sockaddr *addr, socklen_t len)
{
	if (!pl_self())
		return ::connect(fd, addr, len);
	return bthread_timed_connect(fd, addr, len, nullptr);
}

int bthread_close(int fd)
{
	const int was = errno;

	return bthread::connected(pl_close(fd), was);
}

}  // extern "C"
