// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of the caller that is readable or writable in part, or no longer: the
 * call returns -EFAULT, and its effects are those that the manual states.
 */
#include "kselftest_harness.h"

#include <stddef.h>
#include "mod.h"

/*
 * Two pages: the second is not writable, or another thread revokes and restores
 * the right to write to it, again and again.
 */
FIXTURE(fault)
{
	struct space s;
	size_t page;
	unsigned char *mem;
	unsigned char *edge;
	pthread_t flipper;
	atomic_bool is_over;
};

FIXTURE_SETUP(fault)
{
	SPACE_SETUP(&self->s, 2);
	self->page = sysconf(_SC_PAGESIZE);
	self->mem = mmap(NULL, 2 * self->page, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->mem);
	self->edge = self->mem + self->page;
}

FIXTURE_TEARDOWN(fault)
{
	munmap(self->mem, 2 * self->page);
	space_close(&self->s);
}

typedef FIXTURE_DATA(fault) fault_t;

static void *flipper_main(void *arg)
{
	fault_t *self = arg;

	while (!atomic_load(&self->is_over)) {
		mprotect(self->edge, self->page, PROT_READ);
		mprotect(self->edge, self->page, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

static int flipper_start(fault_t *self)
{
	return pthread_create(&self->flipper, NULL, flipper_main, self);
}

static void flipper_stop(fault_t *self)
{
	atomic_store(&self->is_over, true);
	pthread_join(self->flipper, NULL);
	atomic_store(&self->is_over, false);
}

static int protect(fault_t *self, int prot)
{
	return mprotect(self->edge, self->page, prot) ? -errno : 0;
}

TEST_F(fault, query_of_larger_struct_that_ends_unmapped_is_efault)
{
	size_t size = sizeof(struct parklot_query) + 8;

	ASSERT_EQ(0, munmap(self->edge, self->page));
	EXPECT_EQ(-EFAULT,
		  dev_ioctl(self->s.fd,
			    _IOC(_IOC_READ, PARKLOT_IOC_MAGIC,
				 _IOC_NR(PARKLOT_IOC_QUERY), size),
			    self->edge - sizeof(struct parklot_query)));
}

/* The sizes are the last two fields; the first of them is written first. */
TEST_F(fault, setup_that_cannot_write_a_size_sets_up_nothing)
{
	struct parklot_setup setup = { .nr_lots = 1 };
	unsigned char *p = self->edge - offsetof(struct parklot_setup,
						 words_size);
	int fd = dev_open();

	ASSERT_LE(0, fd);
	memcpy(p, &setup, sizeof(setup));
	ASSERT_EQ(0, protect(self, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_ioctl(fd, PARKLOT_IOC_SETUP, p));
	EXPECT_EQ(0, dev_setup(fd, 1));
	close(fd);
}

TEST_F(fault, wake_park_that_cannot_write_its_reason_wakes_no_sleeper)
{
	struct parklot_wake_entry entry = { .lot = 0, .nr = 1 };
	struct parklot_wake_park both = {
		.wake = {
			.entries = (uintptr_t)&entry, .nr_entries = 1,
			.limit = ~0U,
		},
		.park = { .lot = 1, .pollfd = -1 },
	};
	unsigned char *p = self->edge - offsetof(struct parklot_wake_park,
						 park.reason);
	struct parker parker;

	ASSERT_EQ(0, parker_start(&parker, &self->s, 0, PARKLOT_FOREVER));
	memcpy(p, &both, sizeof(both));
	ASSERT_EQ(0, protect(self, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE_PARK, p));
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
}

/* Until one setup has succeeded and one could not write its sizes. */
static void setup_until_unwritten(struct __test_metadata *_metadata,
				  fault_t *self, unsigned char *p)
{
	bool was_told = false, was_unwritten = false;
	struct parklot_setup setup = { .nr_lots = 1024 };
	int fd, err;

	ASSERT_EQ(0, protect(self, PROT_READ | PROT_WRITE));
	memcpy(p, &setup, sizeof(setup));
	ASSERT_EQ(0, flipper_start(self));
	while (!was_told || !was_unwritten) {
		fd = dev_open();
		ASSERT_LE(0, fd);
		err = dev_ioctl(fd, PARKLOT_IOC_SETUP, p);
		EXPECT_TRUE(!err || err == -EFAULT) {
			TH_LOG("setup said %d", err);
		}
		if (!err)
			was_told = true;
		else if (dev_setup(fd, 1) == -EBUSY)
			was_unwritten = true;
		close(fd);
	}
	flipper_stop(self);
}

/* Both sizes lie in that memory, or the second one only. */
TEST_F_TIMEOUT(fault, setup_that_loses_its_memory_is_efault, 120)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	setup_until_unwritten(_metadata, self, self->edge);
	setup_until_unwritten(_metadata, self, self->edge -
			      offsetof(struct parklot_setup, words_size));
}

/* A sleeper is parked. Returns true if the wake failed and still woke it. */
static bool is_woken_unwritten(struct __test_metadata *_metadata, fault_t *self,
			       const struct parklot_wake *wake)
{
	struct parker parker;
	bool is_woken;
	int err;

	ASSERT_EQ(0, parker_start(&parker, &self->s, 0, PARKLOT_FOREVER));
	err = dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE, wake);
	EXPECT_TRUE(!err || err == -EFAULT) {
		TH_LOG("wake said %d", err);
	}
	is_woken = !nr_parked(&self->s, 0);
	EXPECT_TRUE(is_woken || err);
	if (!is_woken)
		EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
	return is_woken && err;
}

/* The entries are writable when the kernel checks them, and not afterwards. */
TEST_F_TIMEOUT(fault, wake_that_loses_its_entries_is_efault, 120)
{
	struct parklot_wake wake = {
		.entries = (uintptr_t)self->edge,
		.nr_entries = PARKLOT_MAX_BATCH, .limit = ~0U,
	};
	struct parklot_wake_entry *entry = (void *)self->edge;
	int i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two processors");
	for (i = 0; i < PARKLOT_MAX_BATCH; i++)
		entry[i] = (struct parklot_wake_entry){ .lot = !!i, .nr = 1 };
	ASSERT_EQ(0, flipper_start(self));
	while (!is_woken_unwritten(_metadata, self, &wake))
		;
	flipper_stop(self);
}

TEST_HARNESS_MAIN
