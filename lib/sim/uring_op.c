/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sim/uring_op.h"
#include "sim/io.h"
#include "sim/sim.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

bool pl__sim_op_has_file(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_NOP: case IORING_OP_TIMEOUT: case IORING_OP_OPENAT:
	case IORING_OP_LINK_TIMEOUT: case IORING_OP_ASYNC_CANCEL:
	case PL__SIM_FUTEX_WAIT:
		return false;
	}
	return true;
}

bool pl__sim_op_is_of_socket(const struct io_uring_sqe *sqe)
{
	return sqe->opcode == IORING_OP_RECV || sqe->opcode == IORING_OP_SEND ||
	       sqe->opcode == IORING_OP_RECVMSG ||
	       sqe->opcode == IORING_OP_SENDMSG;
}

bool pl__sim_op_has_failed(const struct io_uring_sqe *sqe, int res)
{
	bool counts = sqe->opcode == IORING_OP_READ ||
		      sqe->opcode == IORING_OP_WRITE;

	if (sqe->opcode == IORING_OP_RECV || sqe->opcode == IORING_OP_SEND)
		counts = sqe->msg_flags & MSG_WAITALL;
	return res < 0 || (counts && (uint32_t)res != sqe->len);
}

static bool is_ready_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return PL__SIM_REAL(poll)(&p, 1, 0) > 0;
}

bool pl__sim_is_open(int fd)
{
	struct pollfd p = { .fd = fd };

	return fd >= 0 && (PL__SIM_REAL(poll)(&p, 1, 0) <= 0 ||
			   !(p.revents & POLLNVAL));
}

short pl__sim_op_events(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_POLL_ADD:
		return (short)sqe->poll32_events;
	case IORING_OP_WRITE: case IORING_OP_WRITEV:
	case IORING_OP_SEND: case IORING_OP_SENDMSG: case IORING_OP_CONNECT:
		return POLLOUT;
	}
	return POLLIN;
}

/* At an offset, or without one if the file has none. */
static long move(const struct io_uring_sqe *sqe, int fd, struct iovec *iov,
		 int nr, bool writes)
{
	off_t at = (off_t)sqe->off;
	long ret = -1;

	errno = ESPIPE;
	if (at >= 0)
		ret = writes ? PL__SIM_REAL(pwritev)(fd, iov, nr, at) :
			       PL__SIM_REAL(preadv)(fd, iov, nr, at);
	if (ret < 0 && errno == ESPIPE)
		ret = writes ? PL__SIM_REAL(writev)(fd, iov, nr) :
			       PL__SIM_REAL(readv)(fd, iov, nr);
	return ret;
}

/* The first call begins it, a later one would say that it has begun. */
static long sim_connect(struct pl__sim_op *op)
{
	socklen_t len = sizeof(int);
	int err = 0;
	long ret;

	if (op->has_begun) {
		ret = getsockopt(op->fd, SOL_SOCKET, SO_ERROR, &err, &len);
		errno = ret ? errno : err;
		return errno ? -1 : 0;
	}
	ret = PL__SIM_REAL(connect)(op->fd, pl__sim_ptr(op->sqe.addr),
				    (socklen_t)op->sqe.off);
	if (!ret || errno != EINPROGRESS)
		return ret;
	op->has_begun = true;
	pl__sim_io_changed();
	errno = EAGAIN;
	return -1;
}

/* What is left of a message of which a part was moved. */
static struct msghdr sim_rest(const struct msghdr *msg, size_t done,
			      struct iovec *rest)
{
	struct msghdr m = *msg;

	while (m.msg_iovlen && done >= m.msg_iov->iov_len) {
		done -= m.msg_iov->iov_len;
		m.msg_iov++;
		m.msg_iovlen--;
	}
	if (done) {
		rest->iov_base = (char *)m.msg_iov->iov_base + done;
		rest->iov_len = m.msg_iov->iov_len - done;
		m.msg_iov = rest;
		m.msg_iovlen = 1;
	}
	return m;
}

static long sim_message(struct pl__sim_op *op, int flags)
{
	struct msghdr *msg = pl__sim_ptr(op->sqe.addr), rest;
	struct iovec one;

	if (op->done) {
		rest = sim_rest(msg, (size_t)op->done, &one);
		msg = &rest;
	}
	return op->sqe.opcode == IORING_OP_SENDMSG ?
	       PL__SIM_REAL(sendmsg)(op->fd, msg, flags) :
	       PL__SIM_REAL(recvmsg)(op->fd, msg, flags);
}

static long sim_request(struct pl__sim_op *op)
{
	const struct io_uring_sqe *sqe = &op->sqe;
	struct iovec *iov = pl__sim_ptr(sqe->addr);
	struct iovec one = { iov, sqe->len };
	int flags = (int)sqe->msg_flags | MSG_DONTWAIT;
	char *at = (char *)pl__sim_ptr(sqe->addr) + op->done;
	size_t left = sqe->len - (size_t)op->done;

	switch (sqe->opcode) {
	case IORING_OP_READ:
		one.iov_len = pl__sim_io_part(op->fd, one.iov_len, 0);
		return move(sqe, op->fd, &one, 1, false);
	case IORING_OP_READV:
		return move(sqe, op->fd, iov, (int)sqe->len, false);
	case IORING_OP_WRITE:
		return move(sqe, op->fd, &one, 1, true);
	case IORING_OP_WRITEV:
		return move(sqe, op->fd, iov, (int)sqe->len, true);
	case IORING_OP_RECV:
		left = pl__sim_io_part(op->fd, left, flags);
		return PL__SIM_REAL(recv)(op->fd, at, left, flags);
	case IORING_OP_SEND:
		return PL__SIM_REAL(send)(op->fd, at, left, flags);
	case IORING_OP_RECVMSG: case IORING_OP_SENDMSG:
		return sim_message(op, flags);
	case IORING_OP_ACCEPT:
		return PL__SIM_REAL(accept4)(op->fd, pl__sim_ptr(sqe->addr),
					     pl__sim_ptr(sqe->addr2),
					     (int)sqe->accept_flags);
	case IORING_OP_CONNECT:
		return sim_connect(op);
	case IORING_OP_FSYNC:
		return fsync(op->fd);
	}
	errno = EINVAL;
	return -1;
}

/* All bytes that are asked for; their number is known when it has ended. */
static size_t want_of(const struct io_uring_sqe *sqe)
{
	const struct msghdr *msg = pl__sim_ptr(sqe->addr);
	size_t sum = 0, i;

	if (sqe->opcode == IORING_OP_RECV || sqe->opcode == IORING_OP_SEND)
		return sqe->len;
	for (i = 0; i < (size_t)msg->msg_iovlen; i++)
		sum += msg->msg_iov[i].iov_len;
	return sum;
}

/* -EAGAIN: what MSG_WAITALL waits for is not there. */
static int sim_sum(struct pl__sim_op *op, int ret)
{
	if (!pl__sim_op_is_of_socket(&op->sqe) ||
	    !(op->sqe.msg_flags & MSG_WAITALL) ||
	    op->sqe.msg_flags & MSG_DONTWAIT || !pl__sim_io_is_stream(op->fd))
		return ret;
	if (ret > 0)
		op->done += ret;
	if (ret == -EAGAIN || (ret > 0 && (size_t)op->done < want_of(&op->sqe)))
		return -EAGAIN;
	return op->done ? op->done : ret;
}

static int set_blocking(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) ? -errno :
								      fd;
}

/* Whether a FIFO that was opened to be read has a writer, or has had one. */
static bool has_writer(int fd)
{
	int nr = 0;
	char byte;

	return (!PL__SIM_REAL(ioctl)(fd, FIONREAD, &nr) && nr) ||
	       PL__SIM_REAL(read)(fd, &byte, 1) < 0;
}

/* An end of a FIFO waits for the other one. */
static int open_file(struct pl__sim_op *op)
{
	const struct io_uring_sqe *sqe = &op->sqe;
	int flags = (int)sqe->open_flags, mode = flags & O_ACCMODE, fd;
	struct stat st;
	bool waits = mode != O_RDWR && !(flags & O_NONBLOCK) &&
		     !fstatat(sqe->fd, pl__sim_ptr(sqe->addr), &st, 0) &&
		     S_ISFIFO(st.st_mode);

	fd = op->is_fd_own ? op->fd :
			     openat(sqe->fd, pl__sim_ptr(sqe->addr),
				    flags | (waits ? O_NONBLOCK : 0), sqe->len);
	if (fd < 0)
		return waits && errno == ENXIO ? -EAGAIN : -errno;
	if (!op->is_fd_own)
		pl__sim_io_changed();
	op->fd = fd;
	op->is_fd_own = waits && mode == O_RDONLY && !has_writer(fd);
	if (op->is_fd_own)
		return -EAGAIN;
	return waits ? set_blocking(fd) : fd;
}

int pl__sim_op_attempt(struct pl__sim_op *op)
{
	struct pollfd p = {
		.fd = op->fd,
		.events = pl__sim_op_events(&op->sqe),
	};
	long ret;
	int was;

	if (op->sqe.opcode == IORING_OP_OPENAT)
		return open_file(op);
	if (op->sqe.opcode == IORING_OP_POLL_ADD)
		return PL__SIM_REAL(poll)(&p, 1, 0) > 0 ? p.revents : -EAGAIN;
	was = pl__sim_io_begin(op->fd, op->sqe.fd <= STDERR_FILENO);
	if (!was && !pl__sim_op_is_of_socket(&op->sqe) &&
	    !is_ready_for(op->fd, p.events))
		return -EAGAIN;
	ret = sim_request(op);
	pl__sim_io_end(op->fd, was);
	if (ret >= 0)
		pl__sim_io_changed();
	return sim_sum(op, ret < 0 ? -errno : (int)ret);
}

/* O_NONBLOCK says nothing to a request. */
bool pl__sim_op_may_wait(const struct pl__sim_op *op)
{
	return !pl__sim_op_is_of_socket(&op->sqe) ||
	       !(op->sqe.msg_flags & MSG_DONTWAIT);
}

bool pl__sim_op_is_known(unsigned int opcode)
{
	static const unsigned char known[] = {
		IORING_OP_NOP, IORING_OP_READ, IORING_OP_READV, IORING_OP_WRITE,
		IORING_OP_WRITEV, IORING_OP_RECV, IORING_OP_SEND,
		IORING_OP_RECVMSG, IORING_OP_SENDMSG, IORING_OP_ACCEPT,
		IORING_OP_CONNECT, IORING_OP_POLL_ADD, IORING_OP_TIMEOUT,
		IORING_OP_ASYNC_CANCEL, IORING_OP_OPENAT, IORING_OP_FSYNC,
		IORING_OP_LINK_TIMEOUT, PL__SIM_FUTEX_WAIT,
	};

	return memchr(known, (int)opcode, sizeof(known));
}

bool pl__sim_op_is_valid(const struct io_uring_sqe *sqe)
{
	uint32_t more = 0;

	if (sqe->opcode == IORING_OP_POLL_ADD)
		more = sqe->len;
	else if (sqe->opcode == IORING_OP_ACCEPT)
		more = sqe->ioprio;
	else if (pl__sim_op_is_of_socket(sqe))
		more = sqe->ioprio & ~IORING_RECVSEND_POLL_FIRST;

	return pl__sim_op_is_known(sqe->opcode) && !more &&
	       !(sqe->flags & (unsigned char)~(PL__SIM_LINKED | IOSQE_ASYNC));
}
