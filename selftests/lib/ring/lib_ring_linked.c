/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of a chain the kernel takes the first requests, and has no memory for the
 * others: those end with -EAGAIN, and are not made in no order with the first.
 * Here the kernel is told of fewer, which is the same to the ring.
 */
#include "kselftest_harness.h"

#include "lib.h"
#include "base/sys.h"
#include "ring/ring_impl.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#define NR		5	/* does not divide the entries of a ring */
#define NR_CHAINS	3

/* The present test, for checks in functions. */
static struct __test_metadata *_metadata;

static struct pl__ring *ring;
static int file;
static unsigned int nr_done;

struct chain {
	struct io_uring_sqe	sqe[NR];
	struct pl__ring_req	req[NR];
};

static void note_done(struct pl__ring_req *req, int res)
{
	EXPECT_EQ(res, req->res);
	nr_done++;
}

/* Chain number @at writes one byte after the other to an area of its own. */
static void add_chain(struct chain *c, int at)
{
	int i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < NR; i++) {
		io_uring_prep_write(&c->sqe[i], file, "x", 1,
				    (uint64_t)(at * NR + i));
		c->req[i].sqe = &c->sqe[i];
		c->req[i].done = note_done;
		c->req[i].next = i < NR - 1 ? &c->req[i + 1] : NULL;
	}
	ASSERT_EQ(0, pl__ring_add_linked(ring, &c->req[0], NR));
}

/* The kernel takes @nr requests, and no more. */
static void take(unsigned int nr)
{
	struct pl__uring *u = pl__uring_of(ring);

	io_uring_smp_store_release(u->uring.sq.ktail, u->uring.sq.sqe_tail);
	EXPECT_EQ(nr, syscall(SYS_io_uring_enter, u->uring.ring_fd, nr, 0, 0,
			      NULL, 0));
}

static void poll_until(unsigned int nr)
{
	uint64_t end = pl__now_ns() + 20 * 1000000000ULL;

	while (nr_done < nr && pl__now_ns() < end)
		pl__ring_poll(ring);
	EXPECT_EQ(nr, nr_done);
}

static bool is_written(int at)
{
	char c = 0;

	return pread(file, &c, 1, at) == 1 && c == 'x';
}

/* All but the chain that was cut has been made. */
static void expect_chain(const struct chain *c, int at, int nr_made)
{
	int i;

	for (i = 0; i < NR; i++) {
		EXPECT_EQ(i < nr_made ? 1 : -EAGAIN, c->req[i].res);
		EXPECT_EQ(i < nr_made, is_written(at * NR + i));
	}
}

static void begin(struct __test_metadata *test)
{
	_metadata = test;
}

FIXTURE(ring_linked) { char unused; };
FIXTURE_SETUP(ring_linked)
{
	int ret = pl__ring_open(&ring, PL_IO_URING, PL_WAIT_EVENTFD);

	begin(_metadata);
	if (ret == -ENOSYS || ret == -EPERM)
		SKIP(return, "no io_uring here");
	ASSERT_EQ(0, ret);
	file = memfd_create("linked", MFD_CLOEXEC);
	ASSERT_LE(0, file);
	nr_done = 0;
}

FIXTURE_TEARDOWN(ring_linked)
{
	pl__ring_close(ring);
	close(file);
}

TEST_F(ring_linked, rest_of_chain_that_was_cut_is_eagain)
{
	struct chain c[NR_CHAINS];
	unsigned int nr;
	int i;

	for (nr = 0; nr <= NR_CHAINS * NR; nr++) {
		ASSERT_EQ(0, ftruncate(file, 0));
		nr_done = 0;
		for (i = 0; i < NR_CHAINS; i++)
			add_chain(&c[i], i);
		take(nr);
		poll_until(NR_CHAINS * NR);
		for (i = 0; i < NR_CHAINS; i++)
			expect_chain(&c[i], i, (int)nr / NR == i && nr % NR ?
					       (int)nr % NR : NR);
	}
}

TEST_F(ring_linked, submission_for_room_cuts_no_chain)
{
	static struct chain c[PL__URING_ENTRIES];
	int i;

	for (i = 0; i < PL__URING_ENTRIES - 1; i++)
		add_chain(&c[i], i);
	poll_until((PL__URING_ENTRIES - 1) * NR);
	for (i = 0; i < PL__URING_ENTRIES - 1; i++)
		expect_chain(&c[i], i, NR);
}

TEST_HARNESS_MAIN
