/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * I/O that parks the task, not the worker.
 */
#ifndef PARKLOT_IO_H
#define PARKLOT_IO_H

#include "base.h"

#include <sys/socket.h>
#include <sys/uio.h>

PL_BEGIN_DECLS

/*
 * Each is the system call of its name: same arguments, its result or -errno.
 * Those that send never raise SIGPIPE.  Besides -ETIMEDOUT, -EINTR and
 * -ECANCELED (the buffer is the caller's again in each case; what was
 * transferred before is reported instead): -ENOMEM, -EAGAIN.
 *
 * A call goes through io_uring, unless a nonblocking attempt on a socket
 * succeeds; where io_uring is missing or not allowed, through epoll and plain
 * calls that do not block.  Then files may block the worker.
 */
PL_API ssize_t pl_read(int fd, void *buf, size_t n);
PL_API ssize_t pl_read_until(int fd, void *buf, size_t n, uint64_t deadline_ns);
PL_API ssize_t pl_write(int fd, const void *buf, size_t n);
PL_API ssize_t pl_write_until(int fd, const void *buf, size_t n,
			      uint64_t deadline_ns);
PL_API ssize_t pl_recv(int fd, void *buf, size_t n, int flags);
PL_API ssize_t pl_recv_until(int fd, void *buf, size_t n, int flags,
			     uint64_t deadline_ns);
PL_API ssize_t pl_send(int fd, const void *buf, size_t n, int flags);
PL_API ssize_t pl_send_until(int fd, const void *buf, size_t n, int flags,
			     uint64_t deadline_ns);
PL_API int pl_accept(int fd, struct sockaddr *addr, socklen_t *len, int flags);
PL_API int pl_accept_until(int fd, struct sockaddr *addr, socklen_t *len,
			   int flags, uint64_t deadline_ns);
PL_API int pl_connect(int fd, const struct sockaddr *addr, socklen_t len);
PL_API int pl_connect_until(int fd, const struct sockaddr *addr, socklen_t len,
			    uint64_t deadline_ns);

PL_API ssize_t pl_pread(int fd, void *buf, size_t n, off_t offset);
PL_API ssize_t pl_pread_until(int fd, void *buf, size_t n, off_t offset,
			      uint64_t deadline_ns);
PL_API ssize_t pl_pwrite(int fd, const void *buf, size_t n, off_t offset);
PL_API ssize_t pl_pwrite_until(int fd, const void *buf, size_t n, off_t offset,
			       uint64_t deadline_ns);
PL_API ssize_t pl_readv(int fd, const struct iovec *iov, int nr);
PL_API ssize_t pl_readv_until(int fd, const struct iovec *iov, int nr,
			      uint64_t deadline_ns);
PL_API ssize_t pl_writev(int fd, const struct iovec *iov, int nr);
PL_API ssize_t pl_writev_until(int fd, const struct iovec *iov, int nr,
			       uint64_t deadline_ns);
PL_API ssize_t pl_recvmsg(int fd, struct msghdr *msg, int flags);
PL_API ssize_t pl_recvmsg_until(int fd, struct msghdr *msg, int flags,
				uint64_t deadline_ns);
PL_API ssize_t pl_sendmsg(int fd, const struct msghdr *msg, int flags);
PL_API ssize_t pl_sendmsg_until(int fd, const struct msghdr *msg, int flags,
				uint64_t deadline_ns);

/**
 * pl_sendfile() - sendfile(2): send @n bytes of a file
 * @out:    a socket, which becomes non-blocking and stays so; or another file,
 *          which may block the worker
 * @in:     a file; to read it may block the worker
 * @offset: where to begin, moved by what was sent; NULL: at the file's
 *          position, which moves instead
 *
 * Return: the number of bytes, which may be fewer; 0 at the end of the file;
 * else as above.
 */
PL_API ssize_t pl_sendfile(int out, int in, off_t *offset, size_t n);
PL_API ssize_t pl_sendfile_until(int out, int in, off_t *offset, size_t n,
				 uint64_t deadline_ns);

struct mmsghdr;

/*
 * recvmmsg(2) and sendmmsg(2): they wait for the first of @nr messages, and
 * return the number of those that could be had without a further wait.  With
 * MSG_ERRQUEUE, pl_recvmmsg() does not wait.
 */
PL_API int pl_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int nr,
		       int flags);
PL_API int pl_recvmmsg_until(int fd, struct mmsghdr *msgs, unsigned int nr,
			     int flags, uint64_t deadline_ns);
PL_API int pl_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int nr,
		       int flags);
PL_API int pl_sendmmsg_until(int fd, struct mmsghdr *msgs, unsigned int nr,
			     int flags, uint64_t deadline_ns);

/**
 * pl_poll() - wait until @fd has one of @events
 * @fd:          any descriptor that can be polled
 * @events:      POLLIN, POLLOUT ... of <poll.h>; POLLERR and POLLHUP always
 *               count
 * @deadline_ns: as everywhere; one in the past only looks
 *
 * Return: the events that it has; -ETIMEDOUT: none; else as above.
 */
PL_API int pl_poll(int fd, uint32_t events, uint64_t deadline_ns);

struct pollfd;

/**
 * pl_poll_many() - poll(2): wait until one of several descriptors has events
 * @fds:         as for poll(): a negative descriptor is left out, and revents
 *               of each is set
 * @nr:          of @fds; 0 waits for the deadline alone
 * @deadline_ns: as everywhere; one in the past only looks
 *
 * Takes a descriptor of the library's while it waits, if it has any to watch.
 * As with poll(), a close of one of them ends the call or not; pl_close() makes
 * no difference.
 *
 * Return: how many have events; -ETIMEDOUT: none; -EINVAL: @fds is NULL, or
 * longer than RLIMIT_NOFILE; -EMFILE, -ENFILE; else as above.  revents is set
 * only with the first two.
 */
PL_API int pl_poll_many(struct pollfd *fds, unsigned int nr,
			uint64_t deadline_ns);

/**
 * pl_open() - open(2); a slow file system or a FIFO blocks the task only
 * @mode: of a file that O_CREAT or O_TMPFILE creates, otherwise 0
 *
 * Without io_uring the call blocks the worker, and neither a deadline, an
 * interrupt nor a cancel ends it.
 *
 * Return: a descriptor; -EINVAL for NULL; else as above.
 */
PL_API int pl_open(const char *path, int flags, mode_t mode);
PL_API int pl_open_until(const char *path, int flags, mode_t mode,
			 uint64_t deadline_ns);

/**
 * pl_close() - close @fd; not a point of cancellation
 *
 * Calls of this header that wait on it, in whatever task or thread, return
 * -EBADF.  pl_close() does not wait for them.
 *
 * Return: as close().
 */
PL_API int pl_close(int fd);

struct io_uring_sqe;

/** pl_io_sqe_init() - an empty SQE, to be prepared by any io_uring_prep_*() */
PL_API void pl_io_sqe_init(struct io_uring_sqe *sqe);

/**
 * pl_io_wait() - submit a copy of @sqe and wait for its completion
 *
 * Gives access to all that one request of io_uring can do.  user_data is the
 * library's.  Of several completions, as of a send without a copy, it waits for
 * the last, and returns the first one's res.
 *
 * Return: the completion's res; -EINVAL: @sqe is NULL, is multishot, or has
 * other flags than IOSQE_ASYNC; else as above; -EOPNOTSUPP without io_uring.
 */
PL_API int pl_io_wait(struct io_uring_sqe *sqe, uint64_t deadline_ns);

#define PL_IO_LINKED_MAX	32

/**
 * pl_io_wait_linked() - submit copies of @nr SQEs at a time, wait for all
 * @sqe:         an array, of entries as for pl_io_wait(); any but the last may
 *               have IOSQE_IO_HARDLINK
 * @res:         the results, as many
 * @nr:          1 to PL_IO_LINKED_MAX
 * @deadline_ns: as everywhere, for all of them
 *
 * The kernel begins each when the one before has succeeded.  After one that
 * fails, or reads or writes less than was asked for, no later one is begun;
 * with IOSQE_IO_HARDLINK the next is begun all the same, also if the call gives
 * up.  The descriptor of each is looked up when it is begun.
 *
 * Whatever is returned, but -EINVAL, sets each of @res: to the completion's
 * res, or -ECANCELED: it was not begun, or ended by the call that gave up;
 * -EAGAIN: the kernel had no memory for it.
 *
 * Return: 0: each has ended by itself, or was not begun after another; -EINVAL:
 * @sqe or @res is NULL, @nr is out of range, or an entry is refused; else as
 * pl_io_wait().
 */
PL_API int pl_io_wait_linked(const struct io_uring_sqe *sqe, int *res,
			     unsigned int nr, uint64_t deadline_ns);

PL_END_DECLS

#endif /* PARKLOT_IO_H */
