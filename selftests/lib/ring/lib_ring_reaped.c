/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thief polls a ring whenever it is readable, as its owner is stalled.  A
 * message that comes while it does makes the ring readable again, or the thief
 * takes it; otherwise the request that it ends would wait for the owner.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>

#define NR_EPISODES	50000
#define AROUND_NS	3000	/* the thief polls for about so long */

static struct pl__ring *ring;
static _Atomic uint32_t nr_submitted;
static atomic_uint nr_polls;
static atomic_bool is_left, is_done, ends;

static bool is_readable(void)
{
	struct pollfd pfd = { .fd = pl__ring_fd(ring), .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

/* As a thief: once when the owner has left it, then whenever it is readable. */
static void *reap_on(void *arg)
{
	while (!ends) {
		if (!atomic_exchange(&is_left, false) && !is_readable()) {
			sched_yield();
			continue;
		}
		atomic_fetch_add(&nr_polls, 1);
		pl__ring_poll_for_owner(ring, &nr_submitted);
	}
	return arg;
}

static void note_done(struct pl__ring_req *req, int res)
{
	(void)req;
	(void)res;
	is_done = true;
}

FIXTURE(reaped)
{
	pthread_t thief;
	int fds[2];
};
FIXTURE_VARIANT(reaped) { enum pl_io io; };
FIXTURE_VARIANT_ADD(reaped, uring) { .io = PL_IO_URING };
FIXTURE_VARIANT_ADD(reaped, poll) { .io = PL_IO_POLL };

FIXTURE_SETUP(reaped)
{
	int ret = pl__ring_open(&ring, variant->io, PL_WAIT_EVENTFD);

	if (ret == -ENOSYS || ret == -EPERM)
		SKIP(return, "no io_uring here");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				self->fds));
	ASSERT_EQ(0, pthread_create(&self->thief, NULL, reap_on, NULL));
}

FIXTURE_TEARDOWN(reaped)
{
	ends = true;
	EXPECT_EQ(0, pthread_join(self->thief, NULL));
	pl__ring_close(ring);
}

TEST_F(reaped, message_while_the_thief_polls_is_heard)
{
	struct pl__ring_req req;
	struct io_uring_sqe sqe;
	uint64_t seed = 1;
	unsigned int before;
	int i, nr = scaled(NR_EPISODES);
	char c;

	for (i = 0; i < nr; i++) {
		req = (struct pl__ring_req){ .done = note_done };
		io_uring_prep_recv(&sqe, self->fds[0], &c, 1, 0);
		is_done = false;
		ASSERT_EQ(0, pl__ring_add_for(ring, &req, &sqe, sqe.fd));
		before = nr_polls;
		is_left = true;
		/* Then the thief is about to poll. */
		ASSERT_TRUE(UNTIL_BUSY(nr_polls != before));
		spin_ns(next_random(&seed) % AROUND_NS);
		pl__ring_cancel(&req);
		ASSERT_TRUE(UNTIL_BUSY(is_done));
	}
}

TEST_HARNESS_MAIN
