/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "ring/ring.h"
#include "base/sys.h"

#include <fcntl.h>
#include <limits.h>
#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef RWF_NOWAIT
# define RWF_NOWAIT	0x00000008	/* musl 1.2.3 lacks it */
#endif

static void *ptr(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

static bool is_write(const struct io_uring_sqe *sqe)
{
	return sqe->opcode == IORING_OP_WRITE ||
	       sqe->opcode == IORING_OP_WRITEV;
}

/* ---- what an operation waits for ---- */

static enum pl__sync_op_kind kind_of(int fd)
{
	struct stat st;

	if (pl__fd_stat(fd, &st))
		return PL__SYNC_OP_OTHER;
	if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode) || S_ISDIR(st.st_mode))
		return PL__SYNC_OP_FILE;
	return S_ISSOCK(st.st_mode) ? PL__SYNC_OP_SOCKET : PL__SYNC_OP_OTHER;
}

void pl__sync_op_init(struct pl__sync_op *c, const struct io_uring_sqe *sqe)
{
	c->sqe = sqe;
	c->done = 0;
	c->kind = PL__SYNC_OP_SOCKET;
	c->events = POLLOUT;
	switch (sqe->opcode) {
	case IORING_OP_READ:
	case IORING_OP_READV:
		c->events = POLLIN;
		/* fallthrough */
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
		c->kind = kind_of(sqe->fd);
		break;
	case IORING_OP_RECV:
	case IORING_OP_RECVMSG:
	case IORING_OP_ACCEPT:
		c->events = POLLIN;
		break;
	case IORING_OP_POLL_ADD:
		c->events = (uint16_t)sqe->poll32_events;
		break;
	}
}

/* The events that are pending on @fd, or -EBADF. */
static int sync_op_poll(int fd, uint32_t events)
{
	struct pollfd p = { .fd = fd, .events = (short)events };
	struct timespec now = { 0 };
	long ret;

	/* ppoll() has no events for a negative descriptor, and no error. */
	if (fd < 0)
		return -EBADF;
	ret = pl__syscall(SYS_ppoll, &p, 1, &now, NULL);
	if (ret < 0)
		return (int)ret;
	return p.revents & POLLNVAL ? -EBADF : p.revents;
}

static int poll_once(struct pl__sync_op *c)
{
	int ret = sync_op_poll(c->sqe->fd, c->events);

	return ret ? ret : -EAGAIN;
}

/* ---- reading and writing ---- */

/* Reads or writes at @offset; -1: at the file's own position. */
static long sync_op_move(struct pl__sync_op *c, const struct iovec *iov,
			 size_t nr, uint64_t offset, int flags)
{
	bool writes = is_write(c->sqe);
	int fd = c->sqe->fd;

	if (flags)
		return pl__syscall(writes ? SYS_pwritev2 : SYS_preadv2, fd, iov,
				   nr, offset, 0, flags);
	if (offset == (uint64_t)-1)
		return pl__syscall(writes ? SYS_writev : SYS_readv, fd, iov,
				   nr);
	return pl__syscall(writes ? SYS_pwritev : SYS_preadv, fd, iov, nr,
			   offset);
}

/*
 * Reads or writes at the offset, or without it if the file has none, as
 * io_uring.
 */
static long move_anywhere(struct pl__sync_op *c, const struct iovec *iov,
			  size_t nr, int flags)
{
	long ret = sync_op_move(c, iov, nr, c->sqe->off, flags);

	return ret == -ESPIPE ? sync_op_move(c, iov, nr, (uint64_t)-1,
					     flags) : ret;
}

/* Writes at most PIPE_BUF bytes, which a pipe that is ready can take. */
static long write_a_little(struct pl__sync_op *c, const struct iovec *iov,
			   size_t nr)
{
	struct iovec one;

	for (; nr && !iov->iov_len; nr--)
		iov++;
	if (!nr)
		return 0;
	one = *iov;
	if (one.iov_len > PIPE_BUF)
		one.iov_len = PIPE_BUF;
	return move_anywhere(c, &one, 1, 0);
}

static long move_if_ready(struct pl__sync_op *c, const struct iovec *iov,
			  size_t nr)
{
	int ret = sync_op_poll(c->sqe->fd, c->events);

	if (ret <= 0)
		return ret ? ret : -EAGAIN;
	return is_write(c->sqe) ? write_a_little(c, iov, nr) :
				  move_anywhere(c, iov, nr, 0);
}

static bool is_empty(const struct iovec *iov, size_t nr)
{
	while (nr && !iov->iov_len) {
		iov++;
		nr--;
	}
	return !nr;
}

/*
 * Reading of nothing neither waits nor takes a datagram, as recvmsg(2) would.
 * That has found @iov to be readable memory before it is looked into here.
 */
static bool reads_nothing(const struct pl__sync_op *c, const struct msghdr *msg)
{
	struct msghdr look = *msg;
	long ret;

	if (!c->sqe->len || c->sqe->opcode == IORING_OP_READ)
		return !c->sqe->len;
	ret = pl__syscall(SYS_recvmsg, c->sqe->fd, &look,
			  MSG_DONTWAIT | MSG_PEEK);
	return (!ret || ret == -EAGAIN) &&
	       is_empty(msg->msg_iov, (size_t)msg->msg_iovlen);
}

static long move_by_message(struct pl__sync_op *c, struct iovec *iov, size_t nr)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = nr };

	if (nr > IOV_MAX)
		return -EINVAL;
	if (!is_write(c->sqe) && reads_nothing(c, &msg))
		return 0;
	return pl__syscall(is_write(c->sqe) ? SYS_sendmsg : SYS_recvmsg,
			   c->sqe->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static long read_or_write(struct pl__sync_op *c)
{
	const struct io_uring_sqe *sqe = c->sqe;
	struct iovec one = { ptr(sqe->addr), sqe->len }, *iov = &one;
	size_t nr = 1;
	long ret;

	if (sqe->opcode == IORING_OP_READV || sqe->opcode == IORING_OP_WRITEV) {
		iov = ptr(sqe->addr);
		nr = sqe->len;
	}
	if (c->kind == PL__SYNC_OP_FILE)
		return sync_op_move(c, iov, nr, sqe->off, 0);
	if (c->kind == PL__SYNC_OP_SOCKET)
		return move_by_message(c, iov, nr);
	ret = move_anywhere(c, iov, nr, RWF_NOWAIT);
	return ret == -EOPNOTSUPP || ret == -ENOSYS ?
	       move_if_ready(c, iov, nr) : ret;
}

/* ---- sockets ---- */

static bool is_stream(int fd)
{
	socklen_t len = sizeof(int);
	int type = 0;

	pl__syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len);
	return type == SOCK_STREAM;
}

/*
 * With MSG_WAITALL, adds @ret to the bytes done; -EAGAIN until all are, or the
 * stream has ended.
 */
static long add_up(struct pl__sync_op *c, long ret, size_t want)
{
	if (!(c->sqe->msg_flags & MSG_WAITALL) ||
	    c->sqe->msg_flags & MSG_DONTWAIT || !is_stream(c->sqe->fd))
		return ret;
	if (ret > 0)
		c->done += (int)ret;
	if (ret == -EAGAIN || (ret > 0 && (size_t)c->done < want))
		return -EAGAIN;
	return c->done ? c->done : ret;
}

static long send_or_recv(struct pl__sync_op *c)
{
	const struct io_uring_sqe *sqe = c->sqe;
	bool is_send = sqe->opcode == IORING_OP_SEND;
	size_t want = sqe->len;
	long ret;

	ret = pl__syscall(is_send ? SYS_sendto : SYS_recvfrom, sqe->fd,
			  (char *)ptr(sqe->addr) + c->done,
			  want - (size_t)c->done,
			  sqe->msg_flags | MSG_DONTWAIT);
	return add_up(c, ret, want);
}

/*
 * Sets @rest to the rest of the part of @msg that byte @done is in; returns the
 * sum of all parts, of which the kernel moves no more than PL__TRANSFER_MAX.
 */
static size_t rest_of(const struct msghdr *msg, size_t done, struct iovec *rest)
{
	size_t i, at, total = 0;

	for (i = 0; i < (size_t)msg->msg_iovlen; i++) {
		at = total;
		total += msg->msg_iov[i].iov_len;
		if (done < at || done >= total)
			continue;
		rest->iov_base = (char *)msg->msg_iov[i].iov_base + (done - at);
		rest->iov_len = total - done;
		if (rest->iov_len > PL__TRANSFER_MAX - done)
			rest->iov_len = PL__TRANSFER_MAX - done;
	}
	return total < PL__TRANSFER_MAX ? total : PL__TRANSFER_MAX;
}

static long by_message(struct pl__sync_op *c)
{
	const struct io_uring_sqe *sqe = c->sqe;
	bool is_send = sqe->opcode == IORING_OP_SENDMSG;
	struct msghdr *msg = ptr(sqe->addr), more = { 0 };
	struct iovec rest = { 0 };
	size_t want = 0;
	long ret;

	if (sqe->msg_flags & MSG_WAITALL)
		want = rest_of(msg, (size_t)c->done, &rest);
	if (c->done) {
		more.msg_iov = &rest;
		more.msg_iovlen = 1;
		msg = &more;
	}
	ret = pl__syscall(is_send ? SYS_sendmsg : SYS_recvmsg, sqe->fd, msg,
			  sqe->msg_flags | MSG_DONTWAIT);
	return add_up(c, ret, want);
}

/*
 * Another thread may accept first, so the socket becomes non-blocking, and
 * stays so.
 */
static long accept_one(struct pl__sync_op *c)
{
	const struct io_uring_sqe *sqe = c->sqe;
	long mode = pl__syscall(SYS_fcntl, sqe->fd, F_GETFL);

	if (mode >= 0 && !(mode & O_NONBLOCK))
		pl__syscall(SYS_fcntl, sqe->fd, F_SETFL, mode | O_NONBLOCK);
	return pl__syscall(SYS_accept4, sqe->fd, ptr(sqe->addr),
			   ptr(sqe->addr2), sqe->accept_flags);
}

/*
 * A second connect() returns the result of the first.  No event says that a
 * full backlog has room again.
 */
static long connect_to(struct pl__sync_op *c)
{
	const struct io_uring_sqe *sqe = c->sqe;
	long ret, mode = pl__syscall(SYS_fcntl, sqe->fd, F_GETFL);
	bool blocks = mode >= 0 && !(mode & O_NONBLOCK);

	if (blocks)
		pl__syscall(SYS_fcntl, sqe->fd, F_SETFL, mode | O_NONBLOCK);
	ret = pl__syscall(SYS_connect, sqe->fd, ptr(sqe->addr), sqe->off);
	if (blocks)
		pl__syscall(SYS_fcntl, sqe->fd, F_SETFL, mode);
	c->events = ret == -EAGAIN ? 0 : POLLOUT;
	return ret == -EINPROGRESS || ret == -EALREADY ? -EAGAIN : ret;
}

/* ---- all of them ---- */

static long once(struct pl__sync_op *c)
{
	switch (c->sqe->opcode) {
	case IORING_OP_READ:
	case IORING_OP_READV:
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
		return read_or_write(c);
	case IORING_OP_RECV:
	case IORING_OP_SEND:
		return send_or_recv(c);
	case IORING_OP_RECVMSG:
	case IORING_OP_SENDMSG:
		return by_message(c);
	case IORING_OP_ACCEPT:
		return accept_one(c);
	case IORING_OP_CONNECT:
		return connect_to(c);
	case IORING_OP_POLL_ADD:
		return poll_once(c);
	}
	return -EOPNOTSUPP;
}

static bool is_patient(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_RECV:
	case IORING_OP_SEND:
	case IORING_OP_RECVMSG:
	case IORING_OP_SENDMSG:
		return !(sqe->msg_flags & MSG_DONTWAIT);
	}
	return true;
}

bool pl__sync_op_would_block(struct pl__sync_op *c, int *res)
{
	long ret;

	do {
		ret = once(c);
	} while (ret == -EINTR);
	*res = (int)ret;
	return ret == -EAGAIN && c->kind != PL__SYNC_OP_FILE &&
	       is_patient(c->sqe);
}
