/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * file: opened, sent, and what io_uring refuses for want of threads
 *
 * A file is opened by io_uring, so that a slow file system, or a FIFO without a
 * peer, blocks the task only.  Where io_uring is missing the system call is
 * made as in pl_blocking(): it blocks the worker, beside which another one
 * runs, and nothing ends it.
 */
#include "base/sys.h"
#include "io/io.h"
#include "wait/wait.h"
#include "ring/ring.h"

#include "parklot.h"

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
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

/*
 * sendfile: from a file to a socket, without a buffer of the caller's
 *
 * By the system call, and not by io_uring's splices: these go by a pipe, and
 * each of them by a thread of the kernel's.  The call has no flag against
 * blocking, so the socket becomes non-blocking, and stays so; where it takes no
 * more, the task waits for it as in pl_poll().
 */

/* As the kernel has it: a bit for each signal. */
#define SIGPIPE_BIT	(1ULL << (SIGPIPE - 1))

/* Another file than a socket may be shared with programs that block on it. */
static int sendfile_make_nonblock(int fd)
{
	long mode = pl__syscall(SYS_fcntl, fd, F_GETFL);
	struct stat st;
	int ret;

	if (mode < 0)
		return (int)mode;
	if (mode & O_NONBLOCK)
		return 0;
	ret = pl__fd_stat(fd, &st);
	if (ret || !S_ISSOCK(st.st_mode))
		return ret;
	return (int)pl__syscall(SYS_fcntl, fd, F_SETFL, mode | O_NONBLOCK);
}

/*
 * SIGPIPE ends no program: the caller's thread has it blocked meanwhile, as
 * workers always have, and takes the one that the call caused.
 */
static long sendfile_once(int out, int in, off_t *offset, size_t n)
{
	const uint64_t set = SIGPIPE_BIT;
	const struct timespec now = { 0 };
	const bool is_task = pl__current();
	uint64_t old = 0;
	long ret;

	if (!is_task)
		pl__syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, &old,
			    sizeof(set));
	do {
		ret = pl__syscall(SYS_sendfile, out, in, offset, n);
	} while (ret == -EINTR);
	/* The end of the peer after a part was sent is not told otherwise. */
	if (ret == -EPIPE || (ret >= 0 && (size_t)ret < n))
		pl__syscall(SYS_rt_sigtimedwait, &set, NULL, &now,
			    sizeof(set));
	if (!is_task)
		pl__syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL,
			    sizeof(old));
	return ret;
}

/*
 * If the socket has room, the file may be one that has nothing yet, as a pipe;
 * those of a file system are always ready.
 */
ssize_t pl_sendfile_until(int out, int in, off_t *offset, size_t n,
			  uint64_t deadline_ns)
{
	bool for_in = false;
	long ret = pl__wait_pending();

	if (!ret)
		ret = sendfile_make_nonblock(out);
	while (ret >= 0) {
		pl__io_order_release();
		ret = sendfile_once(out, in, offset, n);
		if (ret != -EAGAIN) {
			pl__io_take_turn();
			return ret;
		}
		ret = for_in ? pl_poll(in, POLLIN, deadline_ns) :
			       pl_poll(out, POLLOUT, deadline_ns);
		for_in = !for_in;
	}
	return ret;
}

ssize_t pl_sendfile(int out, int in, off_t *offset, size_t n)
{
	return pl_sendfile_until(out, in, offset, n, PL_FOREVER);
}

struct refused_call {
	struct pl__sync_op	op;
	int			res;
};

static void refused_make(void *arg)
{
	struct refused_call *c = arg;

	pl__sync_op_would_block(&c->op, &c->res);
}

bool pl__refused_is(const struct io_uring_sqe *sqe)
{
	struct pl__sync_op op;

	switch (sqe->opcode) {
	case IORING_OP_READ:
	case IORING_OP_READV:
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
		pl__sync_op_init(&op, sqe);
		return op.kind == PL__SYNC_OP_FILE;
	case IORING_OP_OPENAT:
		return true;
	}
	return false;
}

int pl__refused_call(const struct io_uring_sqe *sqe)
{
	struct refused_call c;

	if (sqe->opcode == IORING_OP_OPENAT)
		return -EOPNOTSUPP;
	pl__sync_op_init(&c.op, sqe);
	pl_blocking(refused_make, &c);
	return c.res;
}
