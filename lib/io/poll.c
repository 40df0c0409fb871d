/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * poll: waiting for events of one descriptor, or of several
 *
 * Several are put into an epoll set of their own, which is itself a descriptor
 * to wait for: one request, whatever their number, that one cancel ends.  What
 * they have is asked by poll(2), before and after: it knows files that epoll
 * refuses, and descriptors that occur twice.
 */
#include "base/sys.h"
#include "io/io.h"
#include "wait/wait.h"

#include "parklot.h"

#include <liburing.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

int pl_poll(int fd, uint32_t events, uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };
	int ret;

	io_uring_prep_poll_add(&sqe, fd, events);
	ret = pl__io(&sqe, 0, deadline_ns);
	/* A hang-up sets other events that the caller did not ask for. */
	return ret < 0 ? ret : ret & (int)(events | POLLERR | POLLHUP);
}

/* How many of @fds have events, or -errno. */
static int poll_now(struct pollfd *fds, unsigned int nr)
{
	struct timespec now = { 0 };
	long ret;

	do {
		ret = pl__syscall(SYS_ppoll, fds, nr, &now, NULL);
	} while (ret == -EINTR);
	return (int)ret;
}

/* What all entries of @fd wait for. */
static uint32_t events_of(const struct pollfd *fds, unsigned int nr, int fd)
{
	uint32_t events = 0;
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (fds[i].fd == fd)
			events |= (uint16_t)fds[i].events;
	return events;
}

static int poll_set_add(int epfd, const struct pollfd *fds, unsigned int nr,
			unsigned int i)
{
	int fd = fds[i].fd;
	struct epoll_event ev = { .events = (uint16_t)fds[i].events };
	long ret = pl__syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_ADD, fd, &ev);

	if (ret != -EEXIST)
		return (int)ret;
	ev.events = events_of(fds, nr, fd);
	return (int)pl__syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_MOD, fd, &ev);
}

/* What poll(2) has to tell of a descriptor, it tells: no event is needed. */
static int poll_set_add_all(int epfd, const struct pollfd *fds, unsigned int nr)
{
	unsigned int i;
	int ret;

	for (i = 0; i < nr; i++) {
		if (fds[i].fd < 0)
			continue;
		ret = poll_set_add(epfd, fds, nr, i);
		if (ret && ret != -EBADF && ret != -EPERM)
			return ret;
	}
	return 0;
}

/* An event may be over before poll(2) looks. */
static int poll_set_wait(int epfd, struct pollfd *fds, unsigned int nr,
			 uint64_t deadline_ns)
{
	int found, ret = 0;

	for (;;) {
		found = poll_now(fds, nr);
		if (found) {
			pl__interrupt_restore(ret);
			return found;
		}
		if (ret < 0)
			return ret;
		ret = pl_poll(epfd, POLLIN, deadline_ns);
	}
}

static int poll_by_set(struct pollfd *fds, unsigned int nr,
		       uint64_t deadline_ns)
{
	int ret, epfd = pl__epoll();

	if (epfd < 0)
		return epfd;
	ret = poll_set_add_all(epfd, fds, nr);
	if (!ret)
		ret = poll_set_wait(epfd, fds, nr, deadline_ns);
	pl__close(epfd);
	return ret;
}

int pl_poll_many(struct pollfd *fds, unsigned int nr, uint64_t deadline_ns)
{
	int ret;

	if (nr && !fds)
		return -EINVAL;
	ret = pl__wait_pending();
	if (!ret)
		ret = poll_now(fds, nr);
	if (ret)
		return ret;
	if (deadline_ns > pl__now_ns())
		return poll_by_set(fds, nr, deadline_ns);
	pl_yield();
	return -ETIMEDOUT;
}
