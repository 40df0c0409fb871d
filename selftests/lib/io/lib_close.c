/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_close() ends the calls that wait on the descriptor, wherever they wait,
 * and no other: it waits for none, and none is left behind.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"
#include "thread.h"

#include <poll.h>

RT_IO_FIXTURE(close)
FIXTURE_VARIANT_ADD(close, futex) { .wait = "futex" };

/* sysmon opens files, which could take the number that was closed. */
static void __attribute__((constructor)) disable_sysmon(void)
{
	setenv("PARKLOT_WATCH", "0", 1);
}

static bool is_in_flight(uint32_t nr)
{
	return UNTIL(rt_stat().io_in_flight == nr);
}

/* ---- which thread closes, and which waits ---- */

static atomic_int nr_ended;

static void read_closed(void *arg)
{
	char c;

	EXPECT_EQ(-EBADF, pl_read(*(int *)arg, &c, 1));
	nr_ended++;
}

static void close_it(void *arg)
{
	EXPECT_EQ(0, pl_close(*(int *)arg));
}

static void close_in_thread(void *arg)
{
	pthread_t thread;
	struct mixed m = { .fn = close_it, .arg = arg };

	ASSERT_EQ(0, pthread_create(&thread, NULL, mixed_thread, &m));
	pthread_join(thread, NULL);
}

/* Its reader waits on the one worker that there is, where it closes too. */
static pl_task_t close_under_reader(int fd[2])
{
	pl_task_t t;

	make_pair(fd);
	t = spawn(read_closed, &fd[0]);
	while (rt_stat().io_in_flight != 1)
		pl_yield();
	EXPECT_EQ(0, pl_close(fd[0]));
	return t;
}

/* The read was not submitted yet, and the kernel finds files by number. */
static void close_own_and_reuse(void *arg)
{
	int fd[2], again[2];
	pl_task_t t;
	char c;

	t = close_under_reader(fd);
	make_pair(again);
	EXPECT_EQ(fd[0], again[0]);
	EXPECT_EQ(1, write(again[1], "x", 1));
	join(t);
	EXPECT_EQ(1, recv(again[0], &c, 1, MSG_DONTWAIT));
	EXPECT_EQ(0, pl_close(fd[1]));
	EXPECT_EQ(0, pl_close(again[0]));
	EXPECT_EQ(0, pl_close(again[1]));
}

TEST_F(close, read_does_not_go_on_with_the_next_file_of_the_number)
{
	int i;

	start_with(1, 1);
	for (i = 0; i < 20; i++)
		run_in_task(close_own_and_reuse, NULL);
	EXPECT_EQ(20, nr_ended);
}

/* What came may be told: where the kernel has the file, it reads that. */
static void read_closed_or_y(void *arg)
{
	ssize_t n;
	char c = 0;

	n = pl_read(*(int *)arg, &c, 1);
	EXPECT_TRUE(n == -EBADF || (n == 1 && c == 'y'));
}

/*
 * The file that was closed is open still, and tells the ring of an event while
 * its number is another file's.
 */
static void close_and_reuse_with_event(void)
{
	struct pl__worker *w = pl__rt.main.workers[0];
	int fd[2], again[2], copy;
	pl_task_t t;
	char c = 0;

	make_pair(fd);
	copy = dup(fd[0]);
	t = spawn(read_closed_or_y, &fd[0]);
	ASSERT_TRUE(is_in_flight(1));
	/* Until then it may find the next file, as a system call may. */
	EXPECT_EQ(0, usleep(500));
	ASSERT_TRUE(UNTIL(thread_is_asleep(load_relaxed(&w->tid))));
	EXPECT_EQ(0, pl_close(fd[0]));
	make_pair(again);
	EXPECT_EQ(fd[0], again[0]);
	EXPECT_EQ(1, write(again[1], "x", 1));
	EXPECT_EQ(1, write(fd[1], "y", 1));
	join(t);
	EXPECT_EQ(1, recv(again[0], &c, 1, MSG_DONTWAIT));
	EXPECT_EQ('x', c);
	EXPECT_EQ(0, close(copy));
	EXPECT_EQ(0, close(fd[1]));
	EXPECT_EQ(0, pl_close(again[0]));
	EXPECT_EQ(0, pl_close(again[1]));
}

TEST_F(close, event_of_a_closed_file_reads_nothing_of_the_next_one)
{
	int i;

	start_with(1, 1);
	for (i = 0; i < 500; i++)
		close_and_reuse_with_event();
}

static void close_under_many(void (*close_one)(void *arg))
{
	static struct mixed m;
	int fd[2];

	make_pair(fd);
	nr_ended = 0;
	mixed_start(&m, 40, 4, read_closed, &fd[0]);
	spawn_as(PL_STACK_WORKER, read_closed, &fd[0]);
	ASSERT_TRUE(is_in_flight(45));
	close_one(&fd[0]);
	mixed_join(&m);
	EXPECT_TRUE(UNTIL(nr_ended == 45));
	EXPECT_EQ(0, close(fd[1]));
}

static void close_in_task(void *arg)
{
	run_in_task(close_it, arg);
}

static void close_on_workers_stack(void *arg)
{
	run_as(PL_STACK_WORKER, close_it, arg);
}

TEST_F(close, close_ends_all_waits_on_all_workers)
{
	start_with(4, 0);
	close_under_many(close_it);
	close_under_many(close_in_thread);
	close_under_many(close_in_task);
	close_under_many(close_on_workers_stack);
}

/* ---- what waits ---- */

struct waiting {
	int	fd;
	ssize_t	(*wait)(int fd);
};

static ssize_t wait_recv(int fd)
{
	char c;

	return pl_recv(fd, &c, 1, 0);
}

static ssize_t wait_readv(int fd)
{
	char c;
	struct iovec iov = { &c, 1 };

	return pl_readv(fd, &iov, 1);
}

static ssize_t wait_poll(int fd)
{
	return pl_poll(fd, POLLIN, PL_FOREVER);
}

static ssize_t wait_by_deadline(int fd)
{
	char c;

	return pl_read_until(fd, &c, 1, in_ms(3600 * 1000));
}

static ssize_t wait_send(int fd)
{
	static char much[1 << 20];
	ssize_t n;

	do {
		n = pl_send(fd, much, sizeof(much), 0);
	} while (n > 0);
	return n;
}

static ssize_t wait_write(int fd)
{
	static char much[1 << 20];
	ssize_t n;

	do {
		n = pl_write(fd, much, sizeof(much));
	} while (n > 0);
	return n;
}

static ssize_t wait_recvmmsg(int fd)
{
	struct mmsghdr m = { 0 };

	return pl_recvmmsg(fd, &m, 1, 0);
}

static ssize_t wait_sendfile(int fd)
{
	int file = memfd_create("file", MFD_CLOEXEC);
	ssize_t n;
	off_t at;

	ASSERT_EQ(0, ftruncate(file, 1 << 20));
	do {
		at = 0;
		n = pl_sendfile(fd, file, &at, 1 << 20);
	} while (n > 0);
	close(file);
	return n;
}

static ssize_t wait_accept(int fd)
{
	return pl_accept(fd, NULL, NULL, 0);
}

static void wait_for_close(void *arg)
{
	struct waiting *w = arg;

	EXPECT_EQ(-EBADF, w->wait(w->fd));
}

static void close_as_it_waits(int fd, ssize_t (*wait)(int fd))
{
	struct waiting w = { fd, wait };
	pl_task_t t = spawn(wait_for_close, &w);

	ASSERT_TRUE(is_in_flight(1));
	EXPECT_EQ(0, pl_close(fd));
	join(t);
	EXPECT_EQ(-EBADF, pl_close(fd));
}

/* The peer has shut down its side, which ends requests that wait for room. */
static void half_close_and_fill(int fd[2], int flags)
{
	static char much[1 << 16];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0,
				fd));
	while (send(fd[0], much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	ASSERT_EQ(0, shutdown(fd[1], SHUT_WR));
}

static ssize_t wait_poll_room(int fd)
{
	return pl_poll(fd, POLLOUT, PL_FOREVER);
}

TEST_F(close, close_ends_waits_for_room_of_a_half_closed_socket)
{
	static ssize_t (*const waits[])(int fd) = {
		wait_poll_room, wait_write, wait_send
	};
	int fd[2], flags;
	size_t i;

	/* A caller between two calls finds the number closed, not a ring. */
	start_with(1, 1);
	rt_has_uring();
	for (flags = 0; flags <= SOCK_NONBLOCK; flags += SOCK_NONBLOCK)
		for (i = 0; i < ARRAY_SIZE(waits); i++) {
			half_close_and_fill(fd, flags);
			close_as_it_waits(fd[0], waits[i]);
			close(fd[1]);
		}
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void write_byte(void *arg)
{
	EXPECT_EQ(1, pl_write(*(int *)arg, "x", 1));
	nr_ended++;
}

static void poll_room(void *arg)
{
	EXPECT_EQ(POLLOUT, pl_poll(*(int *)arg, POLLOUT, PL_FOREVER));
	nr_ended++;
}

TEST_F(close, waits_for_room_of_a_half_closed_socket_take_no_time)
{
	static char much[1 << 16];
	uint64_t begin, used;
	pl_task_t t[2];
	int fd[2];

	start_with(2, 0);
	half_close_and_fill(fd, SOCK_NONBLOCK);
	t[0] = spawn(write_byte, &fd[0]);
	t[1] = spawn(poll_room, &fd[0]);
	ASSERT_TRUE(is_in_flight(2));
	pl__sleep_ns(100 * NSEC_PER_MSEC);
	begin = cpu_ns();
	pl__sleep_ns(200 * NSEC_PER_MSEC);
	used = cpu_ns() - begin;
	EXPECT_GT(100 * NSEC_PER_MSEC, used);
	EXPECT_EQ(0, nr_ended);
	while (nr_ended < 2 && read(fd[1], much, sizeof(much)) != 0)
		;
	join(t[0]);
	join(t[1]);
	EXPECT_EQ(0, pl_close(fd[0]));
	close(fd[1]);
}

TEST_F(close, close_ends_each_kind_of_wait)
{
	static ssize_t (*const waits[])(int fd) = {
		wait_recv, wait_readv, wait_poll, wait_by_deadline, wait_send,
		wait_write, wait_recvmmsg, wait_sendfile,
	};
	int fd[2];
	size_t i;

	/* A caller between two calls finds the number closed, not a ring. */
	start_with(1, 1);
	rt_has_uring();
	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		make_pair(fd);
		close_as_it_waits(fd[0], waits[i]);
		close(fd[1]);
	}
	ASSERT_EQ(0, pipe(fd));
	close_as_it_waits(fd[0], wait_by_deadline);
	close(fd[1]);
	ASSERT_EQ(0, pipe(fd));
	close_as_it_waits(fd[1], wait_write);
	close(fd[0]);
}

TEST_F(close, close_ends_an_accept)
{
	struct sockaddr_in sin;
	int fd = listen_on_loopback(&sin);

	if (fd < 0)
		SKIP(return, "no loopback interface");
	close_as_it_waits(fd, wait_accept);
}

/* ---- and nothing else ---- */

static void read_byte(void *arg)
{
	char c = 0;

	EXPECT_EQ(1, pl_read(*(int *)arg, &c, 1));
	EXPECT_EQ('x', c);
	nr_ended++;
}

/* So many descriptors that several are in a bucket. */
#define NR_OTHERS	1200

TEST_F(close, close_leaves_other_descriptors)
{
	static int fd[NR_OTHERS][2];
	static pl_task_t t[NR_OTHERS];
	struct rlimit limit = { 4096, 4096 };
	int i;

	setrlimit(RLIMIT_NOFILE, &limit);
	for (i = 0; i < NR_OTHERS; i++) {
		make_pair(fd[i]);
		t[i] = spawn(i % 2 ? read_closed : read_byte, &fd[i][0]);
	}
	ASSERT_TRUE(is_in_flight(NR_OTHERS));
	for (i = 1; i < NR_OTHERS; i += 2)
		EXPECT_EQ(0, pl_close(fd[i][0]));
	ASSERT_TRUE(UNTIL(nr_ended == NR_OTHERS / 2));
	EXPECT_EQ(NR_OTHERS / 2, rt_stat().io_in_flight);
	for (i = 0; i < NR_OTHERS; i += 2)
		EXPECT_EQ(1, write(fd[i][1], "x", 1));
	for (i = 0; i < NR_OTHERS; i++)
		join(t[i]);
}

static atomic_int is_holding, may_go_on;

static void hold_worker(void *arg)
{
	is_holding = 1;
	EXPECT_TRUE(UNTIL_BUSY(may_go_on));
}

/* The one worker computes, and hears of it when it is through. */
TEST_F(close, close_does_not_wait_for_a_busy_worker)
{
	int old[2], new[2];
	pl_task_t t[3];

	start_with(1, 1);
	make_pair(old);
	t[0] = spawn(read_closed, &old[0]);
	ASSERT_TRUE(is_in_flight(1));
	ASSERT_TRUE(UNTIL(rt_stat().workers_parked == 1));
	t[1] = spawn(hold_worker, NULL);
	ASSERT_TRUE(UNTIL(is_holding));
	EXPECT_EQ(0, pl_close(old[0]));
	EXPECT_EQ(0, nr_ended);
	/* Another file has the number now, and is not closed with it. */
	make_pair(new);
	EXPECT_EQ(old[0], new[0]);
	t[2] = spawn(read_byte, &new[0]);
	may_go_on = 1;
	join(t[0]);
	EXPECT_EQ(1, write(new[1], "x", 1));
	join(t[1]);
	join(t[2]);
	EXPECT_EQ(2, nr_ended);
	close(old[1]);
	close(new[0]);
	close(new[1]);
}

/* ---- at any moment ---- */

static atomic_int nr_open;

static void open_ring(void *arg)
{
	EXPECT_EQ(-EBADF, pl_poll(-1, POLLIN, PL_FOREVER));
	nr_open++;
	EXPECT_TRUE(UNTIL_BUSY(nr_open == 2));
}

/*
 * Both workers have their rings: else these might take the number that is
 * closed, and a task that comes too late would wait on them.
 */
static void start_with_rings(void)
{
	pl_task_t t;

	start_with(2, 2);
	t = spawn_as(PL_STACK_WORKER, open_ring, NULL);
	run_as(PL_STACK_WORKER, open_ring, NULL);
	join(t);
}

static void read_till_ended(void *arg)
{
	ssize_t ret;
	char c;

	do {
		ret = pl_read(*(int *)arg, &c, 1);
	} while (ret == -EINTR);
	EXPECT_EQ(-EBADF, ret);
}

/* Each in a pause of up to so many ns; @with also comes behind the close. */
static void close_again_and_again(int nr, uint64_t seed, uint32_t pause_ns,
				  int (*with)(pl_task_t t))
{
	int i, fd[2];
	pl_task_t t;

	start_with_rings();
	for (i = 0; i < nr; i++) {
		make_pair(fd);
		t = spawn_as(i % 4, read_till_ended, &fd[0]);
		spin_ns(next_random(&seed) % pause_ns);
		if (with) {
			with(t);
			spin_ns(next_random(&seed) % (pause_ns / 4));
		}
		EXPECT_EQ(0, pl_close(fd[0]));
		if (with)
			with(t);
		join(t);
		EXPECT_EQ(0, close(fd[1]));
	}
}

TEST_F(close, close_racing_a_new_read_ends_it)
{
	close_again_and_again(scaled(600), 4711, 30000, NULL);
}

TEST_F(close, close_racing_an_interrupt_ends_the_read)
{
	close_again_and_again(scaled(400), 815, 20000, pl_interrupt);
}

TEST_F(close, close_without_a_runtime_closes)
{
	int fd[2];

	make_pair(fd);
	EXPECT_EQ(0, pl_close(fd[0]));
	EXPECT_EQ(-EBADF, pl_close(fd[0]));
	EXPECT_EQ(-EBADF, pl_close(-1));
	EXPECT_EQ(0, pl_close(fd[1]));
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

TEST_HARNESS_MAIN
