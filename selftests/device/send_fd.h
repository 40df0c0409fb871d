/* SPDX-License-Identifier: GPL-2.0-only */
/* Descriptors that are passed over a socket. */
#ifndef SELFTESTS_SEND_FD_H
#define SELFTESTS_SEND_FD_H

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union fd_message {
	struct cmsghdr	align;
	char		buf[CMSG_SPACE(sizeof(int))];
};

/* Returns 0, or -errno; -EAGAIN instead of waiting. */
static inline int send_fd(int sock, int fd)
{
	union fd_message control = {};
	struct iovec iov = { .iov_base = "", .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	return sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 :
								      -errno;
}

/* Returns a descriptor; -ENOMSG: none came; -EPIPE: the end; or -errno. */
static inline int receive_fd(int sock)
{
	union fd_message control = {};
	char c;
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t n;
	int fd;

	do {
		n = recvmsg(sock, &msg, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (!n)
		return -EPIPE;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS)
		return -ENOMSG;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(int));
	return fd;
}

#endif /* SELFTESTS_SEND_FD_H */
