/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * open: a file is opened by io_uring, so that a slow file system, or a FIFO
 * without a peer, blocks the task only
 *
 * Where io_uring is missing the system call is made as in pl_blocking(): it
 * blocks the worker, beside which another one runs, and nothing ends it.
 */
#include "base/sys.h"
#include "io/io.h"

#include "parklot.h"

#include <fcntl.h>
#include <liburing.h>
#include <sys/syscall.h>

struct open_call {
	const char	*path;
	int		flags;
	mode_t		mode;
	int		ret;
};

static void open_by_call(void *arg)
{
	struct open_call *c = arg;

	c->ret = (int)pl__syscall(SYS_openat, AT_FDCWD, c->path, c->flags,
				  c->mode);
}

/* A file system may refuse with the same error: then it does so again. */
int pl_open_until(const char *path, int flags, mode_t mode,
		  uint64_t deadline_ns)
{
	struct open_call c = { path, flags, mode, -EINVAL };
	struct io_uring_sqe sqe = { 0 };
	int ret;

	if (!path)
		return -EINVAL;
	io_uring_prep_openat(&sqe, AT_FDCWD, path, flags, mode);
	/* At first it would try with O_NONBLOCK, which no FIFO waits with. */
	sqe.flags |= IOSQE_ASYNC;
	ret = pl__io(&sqe, 0, deadline_ns);
	if (ret != -EOPNOTSUPP)
		return ret;
	pl_blocking(open_by_call, &c);
	return c.ret;
}

int pl_open(const char *path, int flags, mode_t mode)
{
	return pl_open_until(path, flags, mode, PL_FOREVER);
}
