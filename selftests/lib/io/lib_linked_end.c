/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pl_io_wait_linked(): whatever ends the call, or one of its requests, no
 * request is left when it returns, and the results say what was done.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "base/sys.h"
#include "run/run.h"
#include "linked.h"

#include "forbid.h"

RT_IO_FIXTURE(linked_end)
FIXTURE_VARIANT_ADD(linked_end, futex) { .wait = "futex" };

/* ---- a caller that gives up ---- */

static void miss_deadline(void *arg)
{
	struct chain c;

	init(&c);
	add_nop(&c);
	add_recv(&c, in[0]);
	add_send(&c, out[0]);
	c.deadline_ns = in_ms(5);
	run(&c);
	EXPECT_LE(c.deadline_ns, pl_now());
	EXPECT_EQ(-ETIMEDOUT, c.ret);
	EXPECT_RESULTS(&c, 0, -ECANCELED, -ECANCELED);
	EXPECT_FALSE(is_readable(out[1]));
}

TEST_F(linked_end, deadline_ends_what_waits_and_what_follows)
{
	if (!rt_has_uring())
		return;
	open_pairs();
	run_as_each(miss_deadline, NULL);
	/* Nothing of these takes the byte. */
	give_byte('x');
	EXPECT_TRUE(is_readable(in[0]));
	close_pairs();
}

/* After each hard link the next is begun, and has to be cancelled in turn. */
static void miss_deadline_hard(void *arg)
{
	struct chain c;
	int i;

	init(&c);
	for (i = 0; i < 4; i++)
		add_recv(&c, in[0])->flags = IOSQE_IO_HARDLINK;
	add_send(&c, out[0]);
	c.deadline_ns = in_ms(5);
	run(&c);
	EXPECT_EQ(-ETIMEDOUT, c.ret);
	EXPECT_RESULTS(&c, -ECANCELED, -ECANCELED, -ECANCELED, -ECANCELED, 1);
	take_byte(0);
}

TEST_F(linked_end, deadline_ends_each_that_is_linked_hard)
{
	if (!rt_has_uring())
		return;
	open_pairs();
	run_as_each(miss_deadline_hard, NULL);
	close_pairs();
}

static void interrupt_it(pl_task_t t)
{
	EXPECT_EQ(0, pl_interrupt(t));
}

static void cancel_it(pl_task_t t)
{
	EXPECT_EQ(0, pl_cancel(t));
}

static void stop_runtime(pl_task_t t)
{
	(void)t;
	EXPECT_EQ(0, pl_runtime_stop());
}

static void end_by(void (*end)(pl_task_t t), int ret)
{
	struct chain c;
	pl_task_t t;

	if (!rt_has_uring())
		return;
	open_pairs();
	init(&c);
	add_send(&c, out[0]);
	add_recv(&c, in[0]);
	add_send(&c, out[0]);
	t = start(&c);
	end(t);
	if (end != stop_runtime)
		join(t);
	EXPECT_EQ(ret, c.ret);
	EXPECT_RESULTS(&c, 1, -ECANCELED, -ECANCELED);
	take_byte(0);
	EXPECT_FALSE(is_readable(out[1]));
	close_pairs();
}

TEST_F(linked_end, interrupt_ends_what_waits_and_what_follows)
{
	end_by(interrupt_it, -EINTR);
}

TEST_F(linked_end, cancel_ends_what_waits_and_what_follows)
{
	end_by(cancel_it, -ECANCELED);
}

TEST_F(linked_end, stop_ends_what_waits_and_what_follows)
{
	end_by(stop_runtime, -ECANCELED);
}

static void try_cancelled(void *arg)
{
	struct chain c;

	pl_cancel(pl_self());
	init(&c);
	add_send(&c, out[0]);
	run(&c);
	EXPECT_EQ(-ECANCELED, c.ret);
	EXPECT_RESULTS(&c, -ECANCELED);
}

TEST_F(linked_end, cancelled_task_begins_none)
{
	if (!rt_has_uring())
		return;
	open_pairs();
	run_in_task(try_cancelled, NULL);
	EXPECT_FALSE(is_readable(out[1]));
	close_pairs();
}

/* ---- descriptors that are closed ---- */

TEST_F(linked_end, close_ends_what_waits_and_what_follows)
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
	EXPECT_EQ(0, pl_close(in[0]));
	join(t);
	EXPECT_EQ(0, c.ret);
	EXPECT_RESULTS(&c, -EBADF, -ECANCELED);
	EXPECT_FALSE(is_readable(out[1]));
	close_pairs();
}

/* A cancel of what is not begun finds nothing, and is not made all the time. */
TEST_F(linked_end, close_of_later_descriptor_waits_for_its_request)
{
	struct chain c;
	uint64_t before;
	pl_task_t t;

	setenv("PARKLOT_WATCH", "0", 1);
	start_with(1, 1);
	if (!rt_has_uring())
		return;
	open_pairs();
	init(&c);
	add_recv(&c, in[0]);
	add_recv(&c, out[0]);
	t = start(&c);
	EXPECT_EQ(0, pl_close(out[0]));
	EXPECT_TRUE(UNTIL(is_all_parked()));
	before = rt_stat().io_enters;
	pl_sleep(100 * NSEC_PER_MSEC);
	EXPECT_GE(5, rt_stat().io_enters - before);
	EXPECT_TRUE(is_waiting(t));
	give_byte('x');
	join(t);
	EXPECT_EQ(0, c.ret);
	EXPECT_RESULTS(&c, 1, -EBADF);
	close_pairs();
}

/* A request of the worker that ends when the messages before are taken. */
static void make_nothing(void *arg)
{
	struct io_uring_sqe sqe;

	pl_io_sqe_init(&sqe);
	io_uring_prep_nop(&sqe);
	EXPECT_EQ(0, pl_io_wait(&sqe, PL_FOREVER));
}

/* As the end of pl_close() does, if the number is another file's by then. */
static void tell_closed(int fd)
{
	struct pl__ring_closed *m = pl__alloc(sizeof(*m));
	struct pl__ring *r = load_acquire(&pl__rt.main.workers[0]->ring_seen);

	m->ring = r;
	m->fd = fd;
	m->before = 0;
	pl__ring_tell(m);
	run_in_task(make_nothing, NULL);
}

static void reuse_number(uint8_t flags, int res0)
{
	struct chain c;
	pl_task_t t;

	start_with(1, 1);
	if (!rt_has_uring())
		return;
	open_pairs();
	init(&c);
	add_nop(&c);
	add_recv(&c, in[0])->flags = flags;
	add_send(&c, out[0]);
	t = start(&c);
	tell_closed(in[0]);
	tell_closed(in[0]);
	if (res0 > 0)
		give_byte('x');
	join(t);
	EXPECT_EQ(0, c.ret);
	EXPECT_RESULTS(&c, 0, res0, 1);
	take_byte(res0 > 0 ? 'x' : 0);
	EXPECT_FALSE(is_readable(out[1]));
	close_pairs();
}

TEST_F(linked_end, request_on_reused_number_is_made_again_with_the_rest)
{
	reuse_number(0, 1);
}

TEST_F(linked_end, request_on_reused_number_is_eagain_if_linked_hard)
{
	reuse_number(IOSQE_IO_HARDLINK, -EAGAIN);
}

TEST_F(linked_end, request_on_reused_number_is_not_begun_after_a_failure)
{
	struct chain c;
	pl_task_t t;

	start_with(1, 1);
	if (!rt_has_uring())
		return;
	open_pairs();
	init(&c);
	io_uring_prep_recv(add(&c), in[0], c.buf, 10, MSG_WAITALL);
	add_recv(&c, out[0]);
	t = start(&c);
	tell_closed(out[0]);
	EXPECT_EQ(3, write(in[1], "abc", 3));
	EXPECT_EQ(0, shutdown(in[1], SHUT_WR));
	join(t);
	EXPECT_EQ(0, c.ret);
	EXPECT_RESULTS(&c, 3, -ECANCELED);
	close_pairs();
}

static int from[2], to[2];

/* Some give up while they wait, others pass bytes: none is lost. */
static atomic_int nr_given, nr_taken;

static void give_up_or_pass(void *arg)
{
	struct chain c;
	int i;

	for (i = 0; i < 20; i++) {
		init(&c);
		io_uring_prep_read(add(&c), from[0], c.buf, 1, -1);
		io_uring_prep_write(add(&c), to[1], c.buf, 1, -1);
		c.deadline_ns = pl_now() + (uint64_t)i * 50 * NSEC_PER_USEC;
		run(&c);
		EXPECT_TRUE(!c.ret || c.ret == -ETIMEDOUT);
		EXPECT_TRUE(c.res[0] == 1 || c.res[0] == -ECANCELED);
		EXPECT_TRUE(c.res[1] == 1 || c.res[1] == -ECANCELED);
		EXPECT_EQ(!c.ret, c.res[1] == 1);
		nr_taken += c.res[0] == 1;
		nr_given += c.res[1] == 1;
	}
}

TEST_F(linked_end, results_of_chains_that_give_up_say_what_was_done)
{
	char bytes[400], left[400];
	int nr_left;

	if (!rt_has_uring())
		return;
	ASSERT_EQ(0, pipe2(from, O_NONBLOCK));
	ASSERT_EQ(0, pipe2(to, O_NONBLOCK));
	memset(bytes, 'x', sizeof(bytes));
	EXPECT_EQ(0, fcntl(from[0], F_SETFL, 0));
	EXPECT_EQ(400, write(from[1], bytes, 400));
	mixed_run(40, 4, give_up_or_pass, NULL);
	EXPECT_EQ(0, fcntl(from[0], F_SETFL, O_NONBLOCK));
	nr_left = (int)read(from[0], left, sizeof(left));
	EXPECT_EQ(400, nr_taken + (nr_left > 0 ? nr_left : 0));
	EXPECT_EQ(nr_given ? nr_given : -1,
		  (int)read(to[0], left, sizeof(left)));
	close(from[0]);
	close(from[1]);
	close(to[0]);
	close(to[1]);
}

/* ---- a worker that is blocked ---- */

static int gate[2];
static atomic_bool is_blocked;

static void block_worker(void *arg)
{
	char c;

	is_blocked = true;
	EXPECT_EQ(1, read(gate[0], &c, 1));
}

static void use_chain_of_blocked(struct chain *c, void (*end)(pl_task_t t))
{
	pl_task_t t, blocked;

	if (!rt_has_sysmon())
		SKIP(return, "PARKLOT_WATCH=0");
	start_with(1, 0);
	if (!rt_has_uring())
		return;
	open_pairs();
	ASSERT_EQ(0, pipe(gate));
	init(c);
	add_recv(c, in[0])->flags = IOSQE_IO_HARDLINK;
	add_recv(c, in[0])->flags = IOSQE_IO_HARDLINK;
	add_recv(c, in[0])->flags = IOSQE_IO_HARDLINK;
	add_send(c, out[0]);
	t = start(c);
	EXPECT_TRUE(UNTIL(is_all_parked()));
	blocked = spawn(block_worker, NULL);
	EXPECT_TRUE(UNTIL(is_blocked));
	end(t);
	join(t);
	EXPECT_EQ(1, write(gate[1], "x", 1));
	join(blocked);
	close(gate[0]);
	close(gate[1]);
}

static void give_three(pl_task_t t)
{
	(void)t;
	give_byte('x');
	give_byte('y');
	give_byte('z');
}

TEST_F(linked_end, chain_is_made_while_its_worker_is_blocked)
{
	struct chain c = { .nr = 0 };

	use_chain_of_blocked(&c, give_three);
	if (!c.nr)
		return;
	EXPECT_EQ(0, c.ret);
	EXPECT_RESULTS(&c, 1, 1, 1, 1);
	take_byte('z');
	close_pairs();
}

TEST_F(linked_end, chain_is_cancelled_while_its_worker_is_blocked)
{
	struct chain c = { .nr = 0 };

	use_chain_of_blocked(&c, cancel_it);
	if (!c.nr)
		return;
	EXPECT_EQ(-ECANCELED, c.ret);
	EXPECT_RESULTS(&c, -ECANCELED, -ECANCELED, -ECANCELED, 1);
	take_byte(0);
	close_pairs();
}

/* ---- a ring that fails ---- */

TEST_F(linked_end, failed_ring_ends_chain_in_flight_with_eopnotsupp)
{
	struct chain c;
	pl_task_t t;

	start_with(1, 1);
	if (!rt_has_uring())
		return;
	open_pairs();
	init(&c);
	add_send(&c, out[0]);
	add_recv(&c, in[0]);
	add_send(&c, out[0]);
	t = start(&c);
	take_byte(0);
	if (!forbid_call_now(SYS_io_uring_enter, EPERM))
		SKIP(return, "no seccomp in this kernel");
	run_in_task(use_without_uring, NULL);
	join(t);
	EXPECT_EQ(-EOPNOTSUPP, c.ret);
	EXPECT_RESULTS(&c, 1, -ECANCELED, -ECANCELED);
	EXPECT_FALSE(is_readable(out[1]));
	close_pairs();
}

TEST_HARNESS_MAIN
