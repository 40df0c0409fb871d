/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * poll: waiting for events of one descriptor, or of several
 *
 * Several are put into an epoll set of their own, which is itself a descriptor
 * to wait for: one request, whatever their number, that one cancel ends.  What
 * they have is asked by poll(2), before and after: it knows files that epoll
 * refuses, and descriptors that occur twice.
 *
 * A set has files, not descriptors.  If one is closed that another descriptor
 * still has, the set tells its events, and poll(2) those of a file that has got
 * the number: then a new set is made.
 */
#include "base/sys.h"
#include "io/io.h"
#include "wait/wait.h"

#include "parklot.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

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

	/* A file that epoll refuses has all its events now, or never. */
	if (ret == -EPERM)
		return 0;
	if (ret != -EEXIST)
		return ret == -ENOSPC ? -ENOMEM : (int)ret;
	ev.events = events_of(fds, nr, fd);
	return (int)pl__syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_MOD, fd, &ev);
}

/* The last error, after all are added that can be. */
static int poll_set_add_all(int epfd, const struct pollfd *fds, unsigned int nr)
{
	unsigned int i;
	int ret, err = 0;

	for (i = 0; i < nr; i++) {
		ret = fds[i].fd < 0 ? 0 : poll_set_add(epfd, fds, nr, i);
		if (ret)
			err = ret;
	}
	return err;
}

/*
 * Returns how many of @fds have events, -errno, or 0 if the wait was for a file
 * that is no longer theirs.  Events that poll(2) finds count for more than an
 * error: it tells of closed descriptors, and of files without events.
 */
static int poll_by_set(struct pollfd *fds, unsigned int nr,
		       uint64_t deadline_ns)
{
	int found, ret, epfd = pl__epoll();

	if (epfd < 0)
		return epfd;
	ret = poll_set_add_all(epfd, fds, nr);
	found = poll_now(fds, nr);
	if (!ret && !found) {
		ret = pl__io_poll(epfd, POLLIN, deadline_ns);
		found = poll_now(fds, nr);
	}
	pl__close(epfd);
	if (found) {
		pl__interrupt_restore(ret);
		return found;
	}
	/* Closed between both calls. */
	return ret < 0 && ret != -EBADF && ret != -ENOENT ? ret : 0;
}

/* A set takes a descriptor; with nothing to watch none is needed. */
static int poll_or_sleep(struct pollfd *fds, unsigned int nr,
			 uint64_t deadline_ns)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (fds[i].fd >= 0)
			return poll_by_set(fds, nr, deadline_ns);
	return pl_sleep_until(deadline_ns);
}

int pl_poll_many(struct pollfd *fds, unsigned int nr, uint64_t deadline_ns)
{
	int ret;

	if (nr && !fds)
		return -EINVAL;
	ret = pl__wait_pending();
	if (!ret)
		ret = poll_now(fds, nr);
	while (!ret && deadline_ns > pl__now_ns())
		ret = poll_or_sleep(fds, nr, deadline_ns);
	if (ret)
		return ret;
	pl_yield();
	return -ETIMEDOUT;
}

int pl_poll(int fd, uint32_t events, uint64_t deadline_ns)
{
	return pl__io_poll(fd, events, deadline_ns);
}

#ifdef PL_TSAN

#include <sanitizer/tsan_interface.h>

static char all_io;

void pl__io_order_release(void)
{
	__tsan_release(&all_io);
}

void pl__io_order_acquire(void)
{
	__tsan_acquire(&all_io);
}

#endif
