/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A page that is missing until the test fills it: a thread that touches the
 * page sleeps, by userfaultfd.
 */
#ifndef SELFTESTS_UFFD_PAGE_H
#define SELFTESTS_UFFD_PAGE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct uffd_page {
	int	uffd;
	size_t	size;
	void	*mem;
};

static inline int uffd_page_map(struct uffd_page *p)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int err;

	p->mem = mmap(NULL, p->size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->mem == MAP_FAILED)
		return -errno;
	reg.range.start = (uintptr_t)p->mem;
	reg.range.len = p->size;
	if (!ioctl(p->uffd, UFFDIO_API, &api) &&
	    !ioctl(p->uffd, UFFDIO_REGISTER, &reg))
		return 0;
	err = -errno;
	munmap(p->mem, p->size);
	return err;
}

/*
 * Returns 0, or -errno where there is no userfaultfd. With UFFD_USER_MODE_ONLY
 * in @flags, only user space may touch the page; this needs no privilege.
 */
static inline int uffd_page_open(struct uffd_page *p, int flags)
{
	int err;

	memset(p, 0, sizeof(*p));
	p->size = sysconf(_SC_PAGESIZE);
	/* poll() of a blocking userfaultfd returns POLLERR at once. */
	p->uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags);
	if (p->uffd < 0)
		return -errno;
	err = uffd_page_map(p);
	if (err)
		close(p->uffd);
	return err;
}

/* Waits until a thread has touched the page. */
static inline void uffd_page_await(const struct uffd_page *p)
{
	struct pollfd pollfd = { .fd = p->uffd, .events = POLLIN };

	while (poll(&pollfd, 1, -1) < 0)
		;
}

/* Fills the page, @size bytes of it from @data; returns 0, or -errno. */
static inline int uffd_page_bring(const struct uffd_page *p, const void *data,
				  size_t size)
{
	unsigned char copy[p->size];
	struct uffdio_copy come = {
		.dst = (uintptr_t)p->mem, .src = (uintptr_t)copy,
		.len = p->size,
	};

	memset(copy, 0, p->size);
	memcpy(copy, data, size);
	return ioctl(p->uffd, UFFDIO_COPY, &come) ? -errno : 0;
}

static inline void uffd_page_close(struct uffd_page *p)
{
	munmap(p->mem, p->size);
	close(p->uffd);
}

#endif /* SELFTESTS_UFFD_PAGE_H */
