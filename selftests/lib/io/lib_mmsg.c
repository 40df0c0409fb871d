/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_recvmmsg() and pl_sendmmsg() wait for the first message, and transfer what
 * can be had with it: from tasks, tasks on the worker's stack and threads.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"

RT_IO_FIXTURE(mmsg)

#define NR	8

/* Messages of one byte each. */
struct batch {
	char bytes[NR];
	struct iovec iov[NR];
	struct mmsghdr msgs[NR];
};

static int sockets[2];

static void batch_init(struct batch *b)
{
	int i;

	memset(b, 0, sizeof(*b));
	for (i = 0; i < NR; i++) {
		b->bytes[i] = (char)('a' + i);
		b->iov[i].iov_base = &b->bytes[i];
		b->iov[i].iov_len = 1;
		b->msgs[i].msg_hdr.msg_iov = &b->iov[i];
		b->msgs[i].msg_hdr.msg_iovlen = 1;
	}
}

static void send_as_each(void (*fn)(void *arg))
{
	make_pair_of(SOCK_DGRAM, sockets);
	run_as_each(fn, NULL);
	close_pair(sockets);
}

static void send_and_receive(void *arg)
{
	struct batch out, in;

	batch_init(&out);
	batch_init(&in);
	memset(in.bytes, 0, NR);
	EXPECT_EQ(NR - 1, pl_sendmmsg(sockets[0], out.msgs, NR - 1, 0));
	EXPECT_EQ(1, out.msgs[NR - 2].msg_len);
	EXPECT_EQ(2, pl_recvmmsg(sockets[1], in.msgs, 2, 0));
	EXPECT_EQ(NR - 3, pl_recvmmsg(sockets[1], in.msgs + 2, NR - 2, 0));
	EXPECT_EQ(0, memcmp(in.bytes, "abcdefg", NR));
	EXPECT_EQ(1, in.msgs[NR - 2].msg_len);
	EXPECT_EQ(0, in.msgs[NR - 1].msg_len);
	EXPECT_EQ(0, pl_sendmmsg(sockets[0], out.msgs, 0, 0));
}

TEST_F(mmsg, those_that_are_there_come_together)
{
	send_as_each(send_and_receive);
}

static void wait_not(void *arg)
{
	const uint64_t end = in_ms(3);
	struct batch b;

	batch_init(&b);
	EXPECT_EQ(-EAGAIN, pl_recvmmsg(sockets[1], b.msgs, NR, MSG_DONTWAIT));
	EXPECT_EQ(-EAGAIN, pl_recvmmsg(sockets[1], b.msgs, NR, MSG_ERRQUEUE));
	EXPECT_EQ(-ETIMEDOUT,
		  pl_recvmmsg_until(sockets[1], b.msgs, NR, 0, 0));
	EXPECT_EQ(-ETIMEDOUT,
		  pl_recvmmsg_until(sockets[1], b.msgs, NR, 0, end));
	EXPECT_LE(end, pl_now());
	EXPECT_EQ(-EBADF, pl_recvmmsg(999999, b.msgs, NR, 0));
	EXPECT_EQ(-EBADF, pl_sendmmsg(999999, b.msgs, NR, 0));
}

TEST_F(mmsg, empty_socket_ends_it_at_once_or_at_the_deadline)
{
	send_as_each(wait_not);
}

/* Until a task waits in a call. */
static void wait_for_io(void)
{
	while (rt_stat().io_in_flight != 1)
		pl_yield();
}

static void send_late(void *arg)
{
	struct batch b;

	batch_init(&b);
	wait_for_io();
	EXPECT_EQ(3, pl_sendmmsg(sockets[0], b.msgs, 3, 0));
}

static void receive_early(void *arg)
{
	struct batch b;
	pl_task_t sender;
	int nr = 0, ret;

	batch_init(&b);
	ASSERT_EQ(0, pl_spawn(&sender, send_late, NULL, NULL));
	while (nr < 3) {
		ret = pl_recvmmsg(sockets[1], b.msgs + nr,
				  (unsigned int)(NR - nr), 0);
		ASSERT_LT(0, ret);
		nr += ret;
	}
	EXPECT_EQ(3, nr);
	EXPECT_EQ(0, memcmp(b.bytes, "abc", 3));
	EXPECT_EQ(0, pl_join(sender));
}

TEST_F(mmsg, receiver_waits_for_the_first)
{
	send_as_each(receive_early);
}

/* Returns how many messages the socket took, until it took no more. */
static int fill(void)
{
	struct batch b;
	int nr = 0, ret;

	batch_init(&b);
	while ((ret = pl_sendmmsg(sockets[0], b.msgs, NR, MSG_DONTWAIT)) > 0)
		nr += ret;
	EXPECT_EQ(-EAGAIN, ret);
	EXPECT_LT(0, nr);
	return nr;
}

static void drain(int nr)
{
	struct batch b;
	int ret;

	batch_init(&b);
	for (; nr > 0; nr -= ret) {
		ret = pl_recvmmsg(sockets[1], b.msgs,
				  nr < NR ? (unsigned int)nr : NR, 0);
		ASSERT_LT(0, ret);
	}
	EXPECT_EQ(0, nr);
}

static void drain_late(void *arg)
{
	wait_for_io();
	drain(*(int *)arg);
}

static void send_to_full(void *arg)
{
	int nr = fill(), sent, i;
	pl_task_t receiver;
	struct batch b;

	batch_init(&b);
	EXPECT_EQ(-ETIMEDOUT, pl_sendmmsg_until(sockets[0], b.msgs, NR, 0,
						in_ms(3)));
	ASSERT_EQ(0, pl_spawn(&receiver, drain_late, &nr, NULL));
	sent = pl_sendmmsg(sockets[0], b.msgs, NR, 0);
	EXPECT_LE(1, sent);
	for (i = 0; i < sent; i++)
		EXPECT_EQ(1, b.msgs[i].msg_len);
	EXPECT_EQ(0, pl_join(receiver));
	drain(sent);
}

TEST_F(mmsg, sender_waits_until_the_peer_takes_the_first)
{
	send_as_each(send_to_full);
}

static void receive_when_cancelled(void *arg)
{
	struct batch b;

	batch_init(&b);
	EXPECT_EQ(1, pl_sendmmsg(sockets[0], b.msgs, 1, 0));
	EXPECT_EQ(0, pl_cancel(pl_self()));
	EXPECT_EQ(-ECANCELED, pl_sendmmsg(sockets[0], b.msgs, 1, 0));
	EXPECT_EQ(-ECANCELED, pl_recvmmsg(sockets[1], b.msgs, NR, 0));
}

TEST_F(mmsg, cancelled_task_transfers_nothing)
{
	make_pair_of(SOCK_DGRAM, sockets);
	run_in_task(receive_when_cancelled, NULL);
	drain(1);
	close_pair(sockets);
}

static bool had_turn;

static void take_turn(void *arg)
{
	had_turn = true;
}

/* Calls of which none waits, by the only worker. */
static void send_until_turn(void *arg)
{
	struct batch b;
	pl_task_t t;
	int i;

	batch_init(&b);
	ASSERT_EQ(0, pl_spawn(&t, take_turn, NULL, NULL));
	for (i = 0; i < 1000 && !had_turn; i++) {
		EXPECT_EQ(1, pl_sendmmsg(sockets[0], b.msgs, 1, 0));
		EXPECT_EQ(1, pl_recvmmsg(sockets[1], b.msgs, 1, 0));
	}
	EXPECT_TRUE(had_turn);
	EXPECT_EQ(0, pl_join(t));
}

TEST_F(mmsg, other_tasks_have_a_turn_between_calls_that_do_not_wait)
{
	make_pair_of(SOCK_DGRAM, sockets);
	start_with(1, 1);
	had_turn = false;
	run_in_task(send_until_turn, NULL);
	close_pair(sockets);
}

/* ---- a stream ---- */

#define LONG	(64 * 1024)

static char long_bytes[2][LONG];

/* In pieces, so that a part of the first message finds room. */
static void *drain_stream(void *arg)
{
	static char bytes[LONG / 8];

	while (read(sockets[1], bytes, sizeof(bytes)) > 0)
		;
	return arg;
}

static void fill_stream(void)
{
	while (send(sockets[0], long_bytes[0], LONG, MSG_DONTWAIT) > 0)
		;
}

/* The second message does not follow on a part of the first. */
static void send_two_long(void *arg)
{
	struct mmsghdr msgs[2] = { 0 };
	struct iovec iov[2];
	pthread_t thread;
	int i, ret, size = LONG / 8;

	for (i = 0; i < 2; i++) {
		iov[i] = (struct iovec){ long_bytes[i], LONG };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	ASSERT_EQ(0, setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &size,
				sizeof(size)));
	fill_stream();
	ASSERT_EQ(0, pthread_create(&thread, NULL, drain_stream, NULL));
	ret = pl_sendmmsg(sockets[0], msgs, 2, 0);
	EXPECT_LT(0, ret);
	if (ret == 2)
		EXPECT_EQ(LONG, msgs[0].msg_len);
	EXPECT_EQ(0, pl_close(sockets[0]));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, pl_close(sockets[1]));
}

TEST_F(mmsg, no_message_follows_on_a_part_of_another)
{
	int i;

	if (getenv("TEST_EMULATED"))
		SKIP(return, "the emulator sends behind a part itself");
	for (i = 0; i < 50; i++) {
		run_in_task(send_two_long, NULL);
		run_as(PL_STACK_WORKER, send_two_long, NULL);
		send_two_long(NULL);
	}
}

TEST_HARNESS_MAIN
