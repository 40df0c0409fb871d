/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thief polls a ring for its owner and has the kernel wait for the bell, then
 * the owner returns and does so itself: one of these waits is left, however
 * often that happens, and no ring of the bell is lost. The thief's thread lives
 * on, since the kernel would end its requests with it.
 */
#include "kselftest_harness.h"

#include "lib.h"
#include "base/sys.h"
#include "ring/ring.h"

#include <liburing.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#define NR_EPISODES	50
#define STUCK_NS	(20 * 1000000000ULL)

static struct pl__ring *ring;
static sem_t go, done;
static _Atomic uint32_t nr_submitted;
static atomic_bool ends;

/* In sem_post() and sem_wait() the kernel completes the thief's requests. */
static void *steal(void *arg)
{
	for (;;) {
		sem_wait(&go);
		if (ends)
			return arg;
		if (!pl__ring_poll_for_owner(ring, &nr_submitted))
			abort();
		sem_post(&done);
	}
}

static void have_polled(void)
{
	sem_post(&go);
	sem_wait(&done);
}

/*
 * How many lines of what the kernel says of the ring begin with @key; the last
 * one's number goes to *@value.
 */
static unsigned int ring_info(const char *key, unsigned long *value)
{
	char path[64], line[256];
	unsigned int nr = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pl__ring_fd(ring));
	f = fopen(path, "re");
	if (!f)
		abort();
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)))
			continue;
		*value = strtoul(line + strlen(key), NULL, 0);
		nr++;
	}
	fclose(f);
	return nr;
}

/* How many reads of the eventfd wait in the kernel. */
static unsigned int nr_reads(void)
{
	unsigned long unused;
	char op[32];

	snprintf(op, sizeof(op), "  op=%d,", IORING_OP_READ);
	return ring_info(op, &unused);
}

/* How many completions there were. */
static unsigned long nr_completions(void)
{
	unsigned long nr = 0;

	if (!ring_info("CqTail:", &nr))
		abort();
	return nr;
}

/* The owner sleeps in the ring until the bell rings, which it does at once. */
static void be_rung(void)
{
	pl__bell_ring(pl__ring_bell(ring));
	pl__ring_wait(ring, pl__now_ns() + STUCK_NS);
	pl__ring_poll(ring);
}

/* The owner has the kernel wait, and returns at once. */
static void arm(void)
{
	pl__ring_wait(ring, 1);
	pl__ring_poll(ring);
}

static void one_episode(void)
{
	have_polled();
	arm();
	be_rung();
}

FIXTURE(bell) { pthread_t thief; };
FIXTURE_VARIANT(bell) { enum pl_wait way; };
FIXTURE_VARIANT_ADD(bell, eventfd) { .way = PL_WAIT_EVENTFD };
FIXTURE_VARIANT_ADD(bell, futex) { .way = PL_WAIT_FUTEX };

FIXTURE_SETUP(bell)
{
	int ret = pl__ring_open(&ring, PL_IO_URING, variant->way);

	if (ret == -ENOSYS || ret == -EPERM)
		SKIP(return, "no io_uring here");
	if (ret == -EOPNOTSUPP)
		SKIP(return, "io_uring waits on no futex here");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, sem_init(&go, 0, 0));
	ASSERT_EQ(0, sem_init(&done, 0, 0));
	ends = false;
	ASSERT_EQ(0, pthread_create(&self->thief, NULL, steal, NULL));
}

FIXTURE_TEARDOWN(bell)
{
	ends = true;
	sem_post(&go);
	EXPECT_EQ(0, pthread_join(self->thief, NULL));
	pl__ring_close(ring);
}

TEST_REAL(owner_after_thief_leaves_one_wait, "/proc has no ring of it")
TEST_F(bell, owner_after_thief_leaves_one_wait)
{
	unsigned long before;
	unsigned int i;

	for (i = 0; i < NR_EPISODES; i++)
		one_episode();
	/* Cancelled reads of the thief complete in its thread. */
	have_polled();
	arm();
	have_polled();
	pl__ring_poll(ring);
	EXPECT_GE(1, nr_reads());
	before = nr_completions();
	be_rung();
	/* The wait, and the cancel of the thief's with its result. */
	EXPECT_GE(3, nr_completions() - before);
}

/* In any order of thief, owner and bell: the owner is woken in time. */
TEST_F(bell, ring_after_thief_wakes_owner)
{
	uint64_t seed = 1, order;
	unsigned int i;

	for (i = 0; i < NR_EPISODES; i++) {
		order = next_random(&seed);
		if (order & 1)
			have_polled();
		if (order & 2)
			arm();
		if (order & 4)
			have_polled();
		be_rung();
	}
}

TEST_HARNESS_MAIN
