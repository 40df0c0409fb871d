/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sendfile: from a file to a socket, without a buffer of the caller's
 *
 * By the system call, and not by io_uring's splices: these go by a pipe, and
 * each of them by a thread of the kernel's.  The call has no flag against
 * blocking, so the socket becomes non-blocking, and stays so; where it takes no
 * more, the task waits for it as in pl_poll().
 */
#include "base/sys.h"
#include "io/io.h"
#include "io/io_order.h"
#include "wait/wait.h"

#include "parklot.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

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
