/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The same as lib_io_kinds.c where there is no io_uring; and what only that
 * has to take care of.
 */
#define RT_IO	"poll"

#include "lib_io_kinds.c"

static int bind_datagrams(struct sockaddr_un *sun, socklen_t *len)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	*len = sizeof(sa_family_t);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)sun, *len));
	*len = sizeof(*sun);
	ASSERT_EQ(0, getsockname(fd, (struct sockaddr *)sun, len));
	return fd;
}

#define NR_SENDERS	64

/* From so many sockets that it is not they who are full: the last, of none. */
static int fill_datagrams(struct sockaddr_un *sun, socklen_t len, int *fd)
{
	int i, nr;

	for (i = 0; i < NR_SENDERS; i++) {
		fd[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
		for (nr = 0; sendto(fd[i], "x", 1, MSG_DONTWAIT,
				    (struct sockaddr *)sun, len) == 1;)
			nr++;
		if (!nr)
			break;
	}
	EXPECT_EQ(EAGAIN, errno);
	return i;
}

static void receive_later(void *arg)
{
	char c;

	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	EXPECT_EQ(1, pl_recv(*(int *)arg, &c, 1, 0));
	EXPECT_EQ('x', c);
}

/*
 * Its own end is writable, though the other takes no more.  (Linux 6.18's
 * io_uring sends an empty datagram then.)
 */
static void send_to_full(void *arg)
{
	struct iovec iov = { (void *)"z", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct sockaddr_un sun;
	int to, fd[NR_SENDERS], nr, i;
	pl_task_t t;
	char c = 0;

	(void)arg;
	to = bind_datagrams(&sun, &msg.msg_namelen);
	nr = fill_datagrams(&sun, msg.msg_namelen, fd);
	msg.msg_name = &sun;
	EXPECT_EQ(-ETIMEDOUT, pl_sendmsg_until(fd[nr], &msg, 0, in_ms(2)));
	t = spawn(receive_later, &to);
	EXPECT_EQ(1, pl_sendmsg(fd[nr], &msg, 0));
	join(t);
	while (c != 'z')
		ASSERT_EQ(1, pl_recv_until(to, &c, 1, 0, in_ms(10000)));
	for (i = 0; i <= nr; i++)
		EXPECT_EQ(0, pl_close(fd[i]));
	EXPECT_EQ(0, pl_close(to));
}

TEST_F(kinds, datagram_waits_for_a_peer_that_takes_no_more)
{
	start_with(2, 0);
	run_as_each(send_to_full, NULL);
}
