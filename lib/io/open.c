/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * open: files, devices and FIFOs, by their paths
 */
#include "io/io.h"

#include "parklot.h"

#include <fcntl.h>
#include <liburing.h>

int pl_openat_until(int dirfd, const char *path, int flags, mode_t mode,
		    uint64_t deadline_ns)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_openat(&sqe, dirfd, path, flags, mode);
	/*
	 * The kernel's first attempt is one with O_NONBLOCK, which opens a FIFO
	 * without a writer, or fails with ENXIO: a thread of the kernel's is
	 * asked at once.
	 */
	if (!(flags & O_NONBLOCK))
		sqe.flags |= IOSQE_ASYNC;
	return pl__io(&sqe, 0, deadline_ns);
}

int pl_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return pl_openat_until(dirfd, path, flags, mode, PL_FOREVER);
}

int pl_open_until(const char *path, int flags, mode_t mode,
		  uint64_t deadline_ns)
{
	return pl_openat_until(AT_FDCWD, path, flags, mode, deadline_ns);
}

int pl_open(const char *path, int flags, mode_t mode)
{
	return pl_open_until(path, flags, mode, PL_FOREVER);
}
