/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What sockets give or take at once is had without the ring, and all that the
 * calls promise holds all the same.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"

RT_IO_FIXTURE(nonblock_first)

/* After so many calls that did not wait a task yields: lib/io/io.c. */
#define YIELD_EVERY	16

/* Two calls, none of which has to wait. */
static void send_there(int fd[2])
{
	char c = 0;

	EXPECT_EQ(1, pl_send(fd[0], "s", 1, 0));
	EXPECT_EQ(1, pl_recv(fd[1], &c, 1, 0));
	EXPECT_EQ('s', c);
}

/* Four of them. */
static void there_and_back(int fd[2])
{
	struct iovec iov = { &(char){ 'm' }, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char c = 0;

	send_there(fd);
	EXPECT_EQ(1, pl_sendmsg(fd[1], &msg, 0));
	iov.iov_base = &c;
	EXPECT_EQ(1, pl_recvmsg(fd[0], &msg, 0));
	EXPECT_EQ('m', c);
}

static void count_requests(void *arg)
{
	uint64_t before = rt_stat().io_submitted;
	int fd[2], i;

	make_pair(fd);
	for (i = 0; i < YIELD_EVERY; i++)
		there_and_back(fd);
	EXPECT_EQ(0, rt_stat().io_submitted - before);
	close_pair(fd);
}

TEST_F(nonblock_first, ready_socket_takes_no_request)
{
	start_with(1, 1);
	run_in_task(count_requests, NULL);
	run_as(PL_STACK_WORKER, count_requests, NULL);
}

TEST_F(nonblock_first, ready_socket_takes_no_task_for_a_thread)
{
	uint64_t before;
	int fd[2];

	start_with(1, 1);
	before = rt_stat().tasks_spawned;
	make_pair(fd);
	there_and_back(fd);
	EXPECT_EQ(before, rt_stat().tasks_spawned);
	close_pair(fd);
}

/* ---- whether it is tried ---- */

/* Messages, which fill no buffer of two. */
static void make_message_pair(int fd[2])
{
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				fd));
}

static void receive_one(int fd)
{
	char buf[2];

	EXPECT_EQ(1, pl_recv(fd, buf, sizeof(buf), 0));
}

/* Each question has to be waited for: there are none yet. */
static void answer(int fd, int nr)
{
	for (; nr; nr--) {
		receive_one(fd);
		EXPECT_EQ(1, pl_send(fd, "!", 1, 0));
	}
}

static void ask(int fd, int nr, const char *question)
{
	char c = '?';

	for (; nr; nr--) {
		EXPECT_TRUE(UNTIL(rt_stat().io_in_flight == 1));
		EXPECT_EQ(strlen(question),
			  write(fd, question, strlen(question)));
		EXPECT_EQ(1, read(fd, &c, 1));
	}
}

/* Of as many receives of what is there, how many went by the ring. */
static uint64_t nr_by_ring(int fd, int nr)
{
	uint64_t before = rt_stat().io_submitted;

	for (; nr; nr--)
		receive_one(fd);
	return rt_stat().io_submitted - before;
}

#define NR_THERE	(2 * YIELD_EVERY)

static uint64_t nr_untried, nr_later;
static int nr_questions;

static void find_there(void *arg)
{
	int *fd = arg, i;

	answer(fd[1], nr_questions);
	for (i = 0; i < 2 * NR_THERE; i++)
		ASSERT_EQ(1, write(fd[0], "?", 1));
	nr_untried += nr_by_ring(fd[1], NR_THERE);
	nr_later += nr_by_ring(fd[1], NR_THERE);
}

/* How many it lets pass when there is something depends on how many came. */
TEST_F(nonblock_first, failed_attempts_stop_until_one_would_succeed)
{
	pl_task_t t;
	int fd[2];

	start_with(1, 1);
	for (nr_questions = 40; nr_questions < 56; nr_questions += 3) {
		make_message_pair(fd);
		t = spawn(find_there, fd);
		ask(fd[0], nr_questions, "?");
		join(t);
		close_pair(fd);
	}
	EXPECT_LE(6, nr_untried);
	EXPECT_GE(6 * 17, nr_untried);
	EXPECT_EQ(0, nr_later);
}

#define NR_LONG		64

/* One byte at a time of the two that each question has. */
static void answer_long(void *arg)
{
	char c;
	int fd = *(int *)arg, i;

	for (i = 0; i < NR_LONG; i++) {
		EXPECT_EQ(1, pl_recv(fd, &c, 1, 0));
		EXPECT_EQ(1, pl_recv(fd, &c, 1, 0));
		EXPECT_EQ(1, pl_send(fd, &c, 1, 0));
	}
}

TEST_F(nonblock_first, full_buffer_is_followed_by_an_attempt)
{
	pl_task_t t;
	int fd[2];

	make_pair(fd);
	start_with(1, 1);
	t = spawn(answer_long, &fd[1]);
	ask(fd[0], NR_LONG, "??");
	join(t);
	/* The first of each pair. */
	EXPECT_GE(NR_LONG, rt_stat().io_submitted);
	close_pair(fd);
}

static void receive_two(void *arg)
{
	char buf[3];

	EXPECT_EQ(2, pl_recv(((int *)arg)[1], buf, sizeof(buf), 0));
}

/* Half comes before the request is on its way, and is no event. */
static void send_halves(void *arg)
{
	int *fd = arg;

	EXPECT_EQ(1, pl_send(fd[0], "1", 1, 0));
	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	EXPECT_EQ(1, pl_send(fd[0], "2", 1, 0));
}

static void receive_after_attempt(void *arg)
{
	int *fd = arg, two = 2;
	pl_task_t t[2];

	ASSERT_EQ(0, setsockopt(fd[1], SOL_SOCKET, SO_RCVLOWAT, &two,
				sizeof(two)));
	t[0] = spawn(send_halves, fd);
	t[1] = spawn(receive_two, fd);	/* the newest goes first */
	join(t[1]);
	join(t[0]);
}

TEST_F(nonblock_first, failed_attempt_waits_for_an_event)
{
	int fd[2];

	if (!make_tcp_pair(fd))
		SKIP(return, "no loopback interface");
	start_with(1, 1);
	run_in_task(receive_after_attempt, fd);
	close_pair(fd);
}

/* ---- what holds all the same ---- */

static bool had_turn;

static void take_turn(void *arg)
{
	had_turn = true;
}

static void never_wait(void *arg)
{
	int fd[2], nr = 0;
	pl_task_t other;

	make_pair(fd);
	other = spawn(take_turn, NULL);
	while (!had_turn && nr++ < YIELD_EVERY)
		there_and_back(fd);
	EXPECT_TRUE(had_turn);
	join(other);
	close_pair(fd);
}

TEST_F(nonblock_first, task_that_never_waits_lets_others_run)
{
	start_with(1, 1);
	run_in_task(never_wait, NULL);
}

static int asked[2];

/* Two requests, one after the other. */
static void receive_both(void *arg)
{
	int i;

	for (i = 0; i < 2; i++)
		receive_one(asked[1]);
	had_turn = true;
}

/* A turn for each request to be made, and one for each to be seen to end. */
static void never_wait_beside_request(void *arg)
{
	pl_task_t other;
	int fd[2], nr;

	make_pair(fd);
	make_message_pair(asked);
	other = spawn(receive_both, NULL);
	for (nr = 0; nr < YIELD_EVERY; nr++)
		there_and_back(fd);
	EXPECT_EQ(1, write(asked[0], "?", 1));
	for (nr = 0; nr < YIELD_EVERY; nr++)
		there_and_back(fd);
	EXPECT_EQ(1, write(asked[0], "?", 1));
	for (nr = 0; nr < YIELD_EVERY; nr++)
		there_and_back(fd);
	EXPECT_TRUE(had_turn);
	join(other);
	close_pair(fd);
	close_pair(asked);
}

TEST_F(nonblock_first, task_that_never_waits_lets_requests_end)
{
	start_with(1, 1);
	run_in_task(never_wait_beside_request, NULL);
}

/* ---- turns ---- */

#define NR_HOT		8
#define NR_REQUESTS	100

static int last_served, nr_in_a_row, most_in_a_row, nr_serving;

/* One worker: what it counts needs no atomic access. */
static void serve_on(void *arg)
{
	int fd[2], i;

	make_pair(fd);
	nr_serving++;
	for (i = 0; i < NR_REQUESTS; i++) {
		nr_in_a_row = last_served == fd[0] ? nr_in_a_row + 1 : 1;
		last_served = fd[0];
		if (nr_serving == NR_HOT && nr_in_a_row > most_in_a_row)
			most_in_a_row = nr_in_a_row;
		send_there(fd);
	}
	nr_serving--;
	close_pair(fd);
}

static void serve_all(void *arg)
{
	pl_task_t t[NR_HOT];
	int i;

	for (i = 0; i < NR_HOT; i++)
		t[i] = spawn(serve_on, NULL);
	for (i = 0; i < NR_HOT; i++)
		join(t[i]);
	EXPECT_EQ(1, most_in_a_row);
}

TEST_F(nonblock_first, connections_with_requests_take_turns)
{
	start_with(1, 1);
	run_in_task(serve_all, NULL);
}

/* ---- connections ---- */

#define NR_CONNECTIONS	(4 * YIELD_EVERY)

static int backlog, clients[NR_CONNECTIONS];

/* All of them wait to be accepted. */
static void make_backlog(void)
{
	struct sockaddr_un sun;
	socklen_t len;
	int i;

	backlog = listen_locally(&sun, &len, NR_CONNECTIONS);
	for (i = 0; i < NR_CONNECTIONS; i++) {
		clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ASSERT_EQ(0, connect(clients[i], (struct sockaddr *)&sun, len));
	}
}

static void accept_one(void)
{
	int fd = pl_accept(backlog, NULL, NULL, SOCK_CLOEXEC);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, pl_close(fd));
}

static void close_backlog(void)
{
	int i;

	for (i = 0; i < NR_CONNECTIONS; i++)
		close(clients[i]);
	EXPECT_EQ(0, pl_close(backlog));
}

static atomic_int nr_turns;

/* It accepts one for each so many of them without a wait: lib/io/io.c. */
#define ACCEPT_EVENTS	4
#define NR_EVENTS	(ACCEPT_EVENTS * YIELD_EVERY)

static int events[NR_EVENTS][2];

static void serve_event(void *arg)
{
	receive_one(*(int *)arg);
	nr_turns++;
}

/* Some before these have their turns, and not all. */
static void accept_beside_events(void *arg)
{
	pl_task_t t[NR_EVENTS];
	int i;

	for (i = 0; i < NR_EVENTS; i++) {
		make_message_pair(events[i]);
		t[i] = spawn(serve_event, &events[i][1]);
	}
	accept_one();
	while (rt_stat().io_in_flight < NR_EVENTS)
		pl_yield();
	for (i = 0; i < NR_EVENTS; i++)
		EXPECT_EQ(1, write(events[i][0], "?", 1));
	nr_turns = 0;
	for (i = 1; i < NR_EVENTS / ACCEPT_EVENTS; i++)
		accept_one();
	EXPECT_EQ(0, nr_turns);
	for (; i < NR_CONNECTIONS; i++)
		accept_one();
	EXPECT_LT(0, nr_turns);
	for (i = 0; i < NR_EVENTS; i++) {
		join(t[i]);
		close_pair(events[i]);
	}
}

TEST_F(nonblock_first, connections_are_accepted_beside_events)
{
	start_with(1, 1);
	make_backlog();
	run_in_task(accept_beside_events, NULL);
	close_backlog();
}

/* ---- deadlines, and who is cancelled ---- */

/* As often as it takes to have gone both ways. */
static void look_only(void *arg)
{
	char c;
	int fd[2], i;

	make_pair(fd);
	for (i = 0; i < YIELD_EVERY; i++) {
		EXPECT_EQ(1, pl_send_until(fd[0], "x", 1, 0, 1));
		EXPECT_EQ(1, pl_recv_until(fd[1], &c, 1, 0, 1));
		EXPECT_EQ(-ETIMEDOUT, pl_recv_until(fd[1], &c, 1, 0, 1));
	}
	close_pair(fd);
}

TEST_F(nonblock_first, past_deadline_returns_ready_data)
{
	run_in_task(look_only, NULL);
	run_as(PL_STACK_WORKER, look_only, NULL);
	look_only(NULL);
}

static void be_called(void *arg)
{
	char c = 0;
	int fd[2];

	make_pair(fd);
	EXPECT_EQ(0, pl_interrupt(pl_self()));
	EXPECT_EQ(-EINTR, pl_send(fd[0], "1", 1, 0));
	EXPECT_EQ(1, pl_send(fd[0], "2", 1, 0));
	EXPECT_EQ(0, pl_interrupt(pl_self()));
	EXPECT_EQ(-EINTR, pl_recv(fd[1], &c, 1, 0));
	EXPECT_EQ(1, pl_recv(fd[1], &c, 1, MSG_PEEK));
	EXPECT_EQ('2', c);
	EXPECT_EQ(0, pl_cancel(pl_self()));
	EXPECT_EQ(-ECANCELED, pl_recv(fd[1], &c, 1, 0));
	EXPECT_EQ(-ECANCELED, pl_send(fd[0], "3", 1, 0));
	/* Nothing was sent or taken by those. */
	EXPECT_EQ(1, recv(fd[1], &c, 1, MSG_DONTWAIT));
	EXPECT_EQ('2', c);
	EXPECT_EQ(-1, recv(fd[1], &c, 1, MSG_DONTWAIT));
	close_pair(fd);
}

TEST_F(nonblock_first, attempt_is_a_cancellation_point)
{
	run_in_task(be_called, NULL);
	run_as(PL_STACK_WORKER, be_called, NULL);
}

TEST_F(nonblock_first, attempt_of_a_thread_is_a_cancellation_point)
{
	struct pl_scope s = PL_SCOPE_INIT;
	char c = 0;
	int fd[2];

	start_with(1, 1);
	make_pair(fd);
	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(1, pl_send(fd[0], "1", 1, 0));
	EXPECT_EQ(0, pl_scope_cancel(&s, -ECANCELED));
	EXPECT_EQ(-ECANCELED, pl_recv(fd[1], &c, 1, 0));
	EXPECT_EQ(-ECANCELED, pl_send(fd[0], "2", 1, 0));
	EXPECT_EQ(-ECANCELED, pl_scope_leave(&s));
	/* Nothing was sent or taken by those. */
	EXPECT_EQ(1, pl_recv(fd[1], &c, 1, 0));
	EXPECT_EQ('1', c);
	EXPECT_EQ(-1, recv(fd[1], &c, 1, MSG_DONTWAIT));
	close_pair(fd);
}

TEST_HARNESS_MAIN
