/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_io_wait_linked(): requests are made one after the other in one submission,
 * and one that fails ends the rest.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "linked.h"

#include "forbid.h"

RT_IO_FIXTURE(linked)
FIXTURE_VARIANT_ADD(linked, futex) { .wait = "futex" };

/* ---- what is refused ---- */

static void expect_refused(struct chain *c, unsigned int nr)
{
	EXPECT_EQ(-EINVAL, pl_io_wait_linked(c->sqe, c->res, nr, in_ms(1000)));
	EXPECT_EQ(12345, c->res[0]);
}

static void refuse(void *arg)
{
	static const uint8_t links = IOSQE_IO_LINK | IOSQE_IO_HARDLINK;
	struct chain c;
	int i, bit;

	init(&c);
	for (i = 0; i <= PL_IO_LINKED_MAX; i++)
		add_nop(&c);
	EXPECT_EQ(-EINVAL, pl_io_wait_linked(NULL, c.res, 1, PL_FOREVER));
	EXPECT_EQ(-EINVAL, pl_io_wait_linked(c.sqe, NULL, 1, PL_FOREVER));
	expect_refused(&c, 0);
	expect_refused(&c, PL_IO_LINKED_MAX + 1);
	expect_refused(&c, UINT32_MAX);
	for (bit = 1; bit < 256; bit *= 2) {
		c.sqe[1].flags = (uint8_t)bit;
		if (bit != IOSQE_ASYNC)
			expect_refused(&c, 2);
		if (bit != IOSQE_ASYNC && !(bit & links))
			expect_refused(&c, 3);
	}
	c.sqe[1].flags = 0;
	io_uring_prep_poll_multishot(&c.sqe[1], 0, POLLIN);
	expect_refused(&c, 3);
}

TEST_F(linked, misuse_is_einval_and_sets_no_result)
{
	run_as_each(refuse, NULL);
}

TEST_F(linked, ring_of_epoll_is_eopnotsupp)
{
	if (!rt_has_uring())
		run_as_each(use_without_uring, NULL);
	else if (forbid_call_now(SYS_io_uring_enter, EPERM))
		run_as_each(use_without_uring, NULL);
	else
		SKIP(return, "no seccomp in this kernel");
}

/* ---- what is made ---- */

static const char text[] = "linked";

static void prepare_file(struct chain *c, int fd)
{
	init(c);
	io_uring_prep_write(add(c), fd, text, 6, 0);
	io_uring_prep_fsync(add(c), fd, 0);
	io_uring_prep_read(add(c), fd, c->buf, 6, 0);
}

static void use_file(void *arg)
{
	struct chain c;
	int fd = open_file();

	prepare_file(&c, fd);
	run(&c);
	EXPECT_EQ(0, c.ret);
	EXPECT_RESULTS(&c, 6, 0, 6);
	EXPECT_STREQ(text, c.buf);
	close(fd);
}

TEST_F(linked, write_fsync_read_is_made_in_order)
{
	if (rt_has_uring())
		run_as_each(use_file, NULL);
}

#define NR_COUNTED	200

/* None of these has to wait. */
static void prepare_passing(struct chain *c)
{
	init(c);
	add_send(c, in[0]);
	add_recv(c, in[1]);
	add_send(c, out[0]);
	add_recv(c, out[1]);
}

static void pass_one_by_one(void *arg)
{
	struct chain c;
	unsigned int i, k;

	for (i = 0; i < NR_COUNTED; i++) {
		prepare_passing(&c);
		for (k = 0; k < c.nr; k++)
			EXPECT_EQ(1, pl_io_wait(&c.sqe[k], PL_FOREVER));
	}
}

static void pass_linked(void *arg)
{
	struct chain c;
	int i;

	for (i = 0; i < NR_COUNTED; i++) {
		prepare_passing(&c);
		run(&c);
		EXPECT_EQ(0, c.ret);
		EXPECT_RESULTS(&c, 1, 1, 1, 1);
	}
}

TEST_F(linked, chain_enters_the_kernel_once)
{
	uint64_t enters[3];

	start_with(1, 1);
	if (!rt_has_uring())
		return;
	open_pairs();
	enters[0] = rt_stat().io_enters;
	run_in_task(pass_one_by_one, NULL);
	enters[1] = rt_stat().io_enters;
	run_in_task(pass_linked, NULL);
	enters[2] = rt_stat().io_enters;
	TH_LOG("%d times: %llu calls, linked %llu", NR_COUNTED,
	       (unsigned long long)(enters[1] - enters[0]),
	       (unsigned long long)(enters[2] - enters[1]));
	EXPECT_LE(4 * NR_COUNTED, enters[1] - enters[0]);
	EXPECT_GE(2 * NR_COUNTED, enters[2] - enters[1]);
	close_pairs();
}

TEST_F(linked, send_waits_for_receive_that_it_is_linked_to)
{
	struct chain c;
	pl_task_t t;

	if (!rt_has_uring())
		return;
	open_pairs();
	init(&c);
	add_recv(&c, in[0]);
	add_send(&c, out[0]);
	t = start(&c);
	EXPECT_FALSE(is_readable(out[1]));
	give_byte('x');
	join(t);
	EXPECT_EQ(0, c.ret);
	EXPECT_RESULTS(&c, 1, 1);
	take_byte('x');
	close_pairs();
}

/* ---- one that fails ---- */

static void fail_in_the_middle(void *arg)
{
	struct chain c;
	struct stat st;
	int fd = open_file();

	init(&c);
	io_uring_prep_write(add(&c), fd, text, 1, 0);
	io_uring_prep_write(add(&c), in[0], text, 1, -1);
	io_uring_prep_write(add(&c), fd, text, 1, 1);
	add_nop(&c);
	run(&c);
	EXPECT_EQ(0, c.ret);
	EXPECT_RESULTS(&c, 1, -EPIPE, -ECANCELED, -ECANCELED);
	EXPECT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(1, st.st_size);
	close(fd);
}

TEST_F(linked, request_that_fails_cancels_the_rest)
{
	signal(SIGPIPE, SIG_IGN);
	if (!rt_has_uring())
		return;
	open_pairs();
	EXPECT_EQ(0, shutdown(in[0], SHUT_RDWR));
	run_as_each(fail_in_the_middle, NULL);
	close_pairs();
}

static void refused_by_kernel(void *arg)
{
	struct chain c;

	init(&c);
	add_nop(&c);
	io_uring_prep_rw(250, add(&c), -1, NULL, 0, 0);
	add_nop(&c);
	run(&c);
	EXPECT_EQ(0, c.ret);
	EXPECT_RESULTS(&c, -ECANCELED, -EINVAL, -ECANCELED);
}

TEST_F(linked, request_that_kernel_knows_not_lets_none_be_made)
{
	if (rt_has_uring())
		run_as_each(refused_by_kernel, NULL);
}

static void read_too_little(struct chain *c, int fd, uint8_t flags)
{
	init(c);
	io_uring_prep_read(add(c), fd, c->buf, 10, 0);
	c->sqe[0].flags = flags;
	io_uring_prep_write(add(c), fd, text, 1, 3);
	run(c);
	EXPECT_EQ(0, c->ret);
}

static void read_short(void *arg)
{
	struct chain c;
	int fd = open_file();

	EXPECT_EQ(3, pwrite(fd, text, 3, 0));
	read_too_little(&c, fd, 0);
	EXPECT_RESULTS(&c, 3, -ECANCELED);
	read_too_little(&c, fd, IOSQE_IO_LINK);
	EXPECT_RESULTS(&c, 3, -ECANCELED);
	read_too_little(&c, fd, IOSQE_IO_HARDLINK);
	EXPECT_RESULTS(&c, 3, 1);
	close(fd);
}

TEST_F(linked, short_read_cancels_the_rest_unless_linked_hard)
{
	if (rt_has_uring())
		run_as_each(read_short, NULL);
}

TEST_F(linked, linked_timeout_of_the_kernel_ends_the_one_before)
{
	struct __kernel_timespec ts = { .tv_nsec = NSEC_PER_MSEC };
	struct chain c;

	if (!rt_has_uring())
		return;
	open_pairs();
	init(&c);
	add_recv(&c, in[0]);
	io_uring_prep_link_timeout(add(&c), &ts, 0);
	run_in_task(run, &c);
	EXPECT_EQ(0, c.ret);
	EXPECT_RESULTS(&c, -ECANCELED, -ETIME);
	close_pairs();
}

/* ---- many ---- */

static int shared_file;
static atomic_int next_at;

/* Each overwrites what the one before has written. */
static void write_in_order(void *arg)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEF";
	struct chain c;
	int i, at = next_at++;
	char last = 0;

	init(&c);
	for (i = 0; i < PL_IO_LINKED_MAX; i++)
		io_uring_prep_write(add(&c), shared_file, &letters[i], 1,
				    (uint64_t)at);
	run(&c);
	EXPECT_EQ(0, c.ret);
	for (i = 0; i < PL_IO_LINKED_MAX; i++)
		EXPECT_EQ(1, c.res[i]);
	EXPECT_EQ(1, pread(shared_file, &last, 1, at));
	EXPECT_EQ('F', last);
}

/* Chains of 40 tasks have five times as many requests as a ring has entries. */
TEST_F(linked, chains_beyond_the_entries_of_a_ring_are_made_in_order)
{
	int i;

	start_with(1, 1);
	if (!rt_has_uring())
		return;
	shared_file = open_file();
	for (i = 0; i < scaled(20); i++)
		mixed_run(40, 4, write_in_order, NULL);
	close(shared_file);
}

TEST_HARNESS_MAIN
