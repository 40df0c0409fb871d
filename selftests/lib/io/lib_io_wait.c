/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_io_wait(): a request ends with the last of its completions, and what can
 * have no such end is refused.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "io.h"
#include "io/io.h"

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>

#include "forbid.h"

/* liburing may be older. */
#define TIMEOUT_MULTISHOT	(1U << 6)
#define OP_READ_MULTISHOT	49

RT_IO_FIXTURE(io_wait)

/* ---- what is refused ---- */

static void use_flags(void *arg)
{
	struct io_uring_sqe sqe;
	int i, want;

	for (i = 0; i < 8; i++) {
		pl_io_sqe_init(&sqe);
		io_uring_prep_nop(&sqe);
		sqe.flags = (uint8_t)(1 << i);
		want = sqe.flags != IOSQE_ASYNC ? -EINVAL :
		       rt_stat().io == PL_IO_URING ? 0 : -EOPNOTSUPP;
		EXPECT_EQ(want, pl_io_wait(&sqe, pl_now() + stuck_ns()));
	}
}

TEST_F(io_wait, flags_other_than_async_are_refused)
{
	rt_has_uring();
	run_in_task(use_flags, NULL);
	use_flags(NULL);
}

static void refuse(struct io_uring_sqe *sqe)
{
	EXPECT_EQ(-EINVAL, pl_io_wait(sqe, in_ms(1000)));
	pl_io_sqe_init(sqe);
}

static void use_multishots(void *arg)
{
	struct __kernel_timespec ts = { .tv_nsec = NSEC_PER_MSEC };
	struct io_uring_sqe sqe;
	struct msghdr msg = { 0 };
	int fd[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	ASSERT_EQ(1, write(fd[1], "x", 1));
	pl_io_sqe_init(&sqe);
	io_uring_prep_poll_multishot(&sqe, fd[0], POLLIN);
	refuse(&sqe);
	io_uring_prep_multishot_accept(&sqe, fd[0], NULL, NULL, 0);
	refuse(&sqe);
	io_uring_prep_recv_multishot(&sqe, fd[0], NULL, 0, 0);
	refuse(&sqe);
	io_uring_prep_recvmsg_multishot(&sqe, fd[0], &msg, 0);
	refuse(&sqe);
	io_uring_prep_timeout(&sqe, &ts, 0, TIMEOUT_MULTISHOT);
	refuse(&sqe);
	io_uring_prep_rw(OP_READ_MULTISHOT, &sqe, fd[0], NULL, 0, 0);
	refuse(&sqe);
	EXPECT_EQ(0, close(fd[0]));
	EXPECT_EQ(0, close(fd[1]));
}

TEST_F(io_wait, multishots_are_refused)
{
	run_in_task(use_multishots, NULL);
}

/* ---- several completions ---- */

#define NR_SENDS	200

static atomic_bool has_send_zc;

/* The buffer is overwritten as soon as the call returns. */
static void send_zc(int fd[2], char c)
{
	char bytes[8192], got[8192];
	struct io_uring_sqe sqe;
	int n, i;

	memset(bytes, c, sizeof(bytes));
	pl_io_sqe_init(&sqe);
	io_uring_prep_send_zc(&sqe, fd[0], bytes, sizeof(bytes), 0, 0);
	n = pl_io_wait(&sqe, PL_FOREVER);
	memset(bytes, '!', sizeof(bytes));
	if (n == -EINVAL)
		return;
	has_send_zc = true;
	ASSERT_LT(0, n);
	EXPECT_EQ(n, pl_recv(fd[1], got, (size_t)n, MSG_WAITALL));
	for (i = 0; i < n && got[i] == c; i++)
		;
	EXPECT_EQ(n, i);
}

static void send_many(void *arg)
{
	int fd[2], i;

	ASSERT_TRUE(make_tcp_pair(fd));
	for (i = 0; i < NR_SENDS; i++)
		send_zc(fd, (char)('a' + i % 26));
	EXPECT_EQ(0, pl_close(fd[0]));
	EXPECT_EQ(0, pl_close(fd[1]));
}

TEST_F(io_wait, send_without_a_copy_returns_when_the_buffer_is_free)
{
	pl_task_t t[8];
	int i;

	if (!rt_has_uring())
		return;
	for (i = 0; i < 8; i++)
		t[i] = spawn(send_many, NULL);
	for (i = 0; i < 8; i++)
		join(t[i]);
	if (!has_send_zc)
		SKIP(return, "no send without a copy in this kernel");
}

/*
 * A multishot that pl_io_wait() knows not: here made by the library's own call,
 * which refuses none.
 */
#define NR_SHOTS	600

struct shot {
	pl_task_t	task;
	uint64_t	deadline_ns;
	int		fd;
	int		res;
};

static struct shot shots[NR_SHOTS];
static int shot_fds[2];
static atomic_int nr_ended;

static void run_shot(void *arg)
{
	struct shot *s = arg;
	struct io_uring_sqe sqe;

	pl_io_sqe_init(&sqe);
	io_uring_prep_poll_multishot(&sqe, s->fd, POLLIN);
	s->res = pl__io(&sqe, 0, s->deadline_ns);
	nr_ended++;
}

static void start_shots(int nr, uint64_t deadline_ns)
{
	int i;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, shot_fds));
	for (i = 0; i < nr; i++) {
		shots[i].fd = shot_fds[0];
		shots[i].deadline_ns = deadline_ns;
		shots[i].task = spawn(run_shot, &shots[i]);
	}
	EXPECT_TRUE(UNTIL(rt_stat().io_in_flight + (uint64_t)nr_ended >=
			  (uint64_t)nr && is_all_parked()));
}

static void end_shots(int nr)
{
	int i;

	EXPECT_TRUE(UNTIL(nr_ended == nr));
	for (i = 0; i < nr; i++)
		join(shots[i].task);
}

static void join_shots(int nr, int res)
{
	int i;

	end_shots(nr);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(res, shots[i].res);
}

/* The worker enters its ring, whether that has failed or not. */
static void enter_ring(void *arg)
{
	struct io_uring_sqe sqe;

	pl_io_sqe_init(&sqe);
	io_uring_prep_nop(&sqe);
	pl_io_wait(&sqe, PL_FOREVER);
}

/* Of one worker's requests; each has had its completions afterwards. */
static void give_events(int nr)
{
	while (nr--) {
		EXPECT_EQ(1, write(shot_fds[1], "x", 1));
		run_in_task(enter_ring, NULL);
	}
}

/* A first result that comes after the deadline comes too late. */
TEST_REAL(deadline_ends_unknown_multishot, "multishots are not simulated")
TEST_F(io_wait, deadline_ends_unknown_multishot)
{
	uint64_t ms = 50, deadline;
	bool is_late;

	start_with(1, 1);
	if (!rt_has_uring())
		return;
	do {
		nr_ended = 0;
		deadline = in_ms(ms);
		start_shots(10, deadline);
		give_events(3);
		is_late = pl_now() >= deadline;
		if (is_late)
			end_shots(10);
		ms *= 2;
	} while (is_late);
	join_shots(10, POLLIN);
	nr_ended = 0;
	start_shots(10, in_ms(10));
	join_shots(10, -ETIMEDOUT);
}

TEST_REAL(cancel_ends_unknown_multishot, "multishots are not simulated")
TEST_F(io_wait, cancel_ends_unknown_multishot)
{
	int i;

	start_with(1, 1);
	if (!rt_has_uring())
		return;
	start_shots(10, PL_FOREVER);
	give_events(3);
	for (i = 0; i < 10; i++)
		EXPECT_EQ(0, pl_cancel(shots[i].task));
	join_shots(10, POLLIN);
}

TEST_REAL(close_and_stop_end_unknown_multishot, "multishots are not simulated")
TEST_F(io_wait, close_and_stop_end_unknown_multishot)
{
	if (!rt_has_uring())
		return;
	start_shots(10, PL_FOREVER);
	EXPECT_EQ(0, pl_close(shot_fds[0]));
	join_shots(10, -EBADF);
	nr_ended = 0;
	start_shots(10, PL_FOREVER);
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(10, nr_ended);
}

/* ---- a ring that fails ---- */

static atomic_bool is_computing, may_go_on;

static void compute(void *arg)
{
	is_computing = true;
	EXPECT_TRUE(UNTIL_BUSY(may_go_on));
}

/*
 * First completions are reaped before, or are in the queue, or have no room
 * there.
 */
static void fail_with_shots(int nr, bool are_reaped)
{
	pl_task_t t = 0;

	start_with(1, 1);
	if (!rt_has_uring())
		return;
	start_shots(nr, PL_FOREVER);
	if (are_reaped) {
		give_events(1);
	} else {
		t = spawn(compute, NULL);
		ASSERT_TRUE(UNTIL(is_computing));
	}
	if (!forbid_call_now(SYS_io_uring_enter, EPERM))
		SKIP(return, "no seccomp in this kernel");
	if (!are_reaped) {
		EXPECT_EQ(1, write(shot_fds[1], "x", 1));
		may_go_on = true;
		join(t);
	}
	run_in_task(enter_ring, NULL);
	join_shots(nr, POLLIN);
}

TEST_REAL(first_result_before_ring_failed_is_kept,
	  "multishots are not simulated")
TEST_F(io_wait, first_result_before_ring_failed_is_kept)
{
	fail_with_shots(10, true);
}

TEST_REAL(first_result_in_failed_ring_is_taken, "multishots are not simulated")
TEST_F(io_wait, first_result_in_failed_ring_is_taken)
{
	fail_with_shots(10, false);
}

TEST_REAL(first_results_beside_failed_ring_are_taken,
	  "multishots are not simulated")
TEST_F(io_wait, first_results_beside_failed_ring_are_taken)
{
	fail_with_shots(NR_SHOTS, false);
}

TEST_HARNESS_MAIN
