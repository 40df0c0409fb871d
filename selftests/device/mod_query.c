// SPDX-License-Identifier: GPL-2.0-only
/* QUERY: what the device reports about itself. */
#include "kselftest_harness.h"

#include <sys/utsname.h>
#include "mod.h"

FIXTURE(query)
{
	int fd;
};

FIXTURE_SETUP(query)
{
	self->fd = dev_open();
	if (self->fd == -ENOENT)
		SKIP_ALL("no " DEVICE);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(query)
{
	EXPECT_EQ(0, close(self->fd));
}

TEST_F(query, query_returns_the_limits)
{
	struct parklot_query query;

	memset(&query, 0xff, sizeof(query));
	ASSERT_EQ(0, dev_ioctl(self->fd, PARKLOT_IOC_QUERY, &query));
	EXPECT_EQ(PARKLOT_ABI_VERSION, query.abi_version);
	EXPECT_EQ(1024, query.max_lots);
	EXPECT_EQ(65536, query.max_workers);
	EXPECT_EQ(64, query.max_batch);
}

#define ALL_FEATURES	(PARKLOT_FEAT_CREW | PARKLOT_FEAT_HANDOFF | \
			 PARKLOT_FEAT_POLLFD)

/* scripts/matrix reads this test's output as well. */
TEST_F(query, query_offers_known_features_only)
{
	uint64_t features = dev_features(self->fd);
	struct utsname machine;

	EXPECT_EQ(0, features & ~ALL_FEATURES);
	uname(&machine);
	TH_LOG("%s %s offers:%s%s%s", machine.release, machine.machine,
	       features & PARKLOT_FEAT_CREW ? " crew" : "",
	       features & PARKLOT_FEAT_HANDOFF ? " handoff" : "",
	       features & PARKLOT_FEAT_POLLFD ? " pollfd" : "");
}

/* One by one; a masked feature is not offered, all others are. */
TEST_F(query, masked_features_are_not_offered)
{
	uint64_t all = dev_features(self->fd), bit;

	if (!set_features(~0UL))
		SKIP(return, "not root");
	for (bit = 1; bit <= ALL_FEATURES; bit <<= 1) {
		EXPECT_TRUE(set_features(~bit));
		EXPECT_EQ(all & ~bit, dev_features(self->fd));
	}
	EXPECT_TRUE(set_features(~0UL));
	EXPECT_EQ(all, dev_features(self->fd));
}

/* MOD_WITHOUT_CREW=1: built as for a kernel without preempt notifiers. */
TEST_F(query, build_without_crew_offers_none)
{
	const char *is_without = getenv("MOD_WITHOUT_CREW");
	struct parklot_setup setup = { .nr_lots = 1, .nr_workers = 1 };
	struct parklot_crew crew = { .target = 1, .max = 1 };
	struct parklot_worker worker = { .slot = 0 };
	int fd = self->fd;

	if (!is_without || !*is_without)
		SKIP(return, "built with a crew");
	EXPECT_EQ(0, dev_features(fd) & PARKLOT_FEAT_CREW);
	EXPECT_EQ(-EOPNOTSUPP, dev_ioctl(fd, PARKLOT_IOC_SETUP, &setup));
	EXPECT_EQ(0, dev_setup(fd, 1));
	EXPECT_EQ(-EOPNOTSUPP, dev_ioctl(fd, PARKLOT_IOC_CREW, &crew));
	EXPECT_EQ(-EOPNOTSUPP, dev_ioctl(fd, PARKLOT_IOC_WORKER_JOIN, &worker));
	EXPECT_EQ(-EOPNOTSUPP, dev_ioctl(fd, PARKLOT_IOC_WORKER_LEAVE,
					 &worker));
	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park(fd, 0, 0, now_ns()));
}

/* Any user may open the device, in any group. */
TEST_F(query, any_user_opens_the_device)
{
	struct parklot_query query;
	int fd;

	if (setgid(65534) || setuid(65534))
		SKIP(return, "cannot become nobody");
	fd = dev_open();
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, dev_ioctl(fd, PARKLOT_IOC_QUERY, &query));
	EXPECT_EQ(0, close(fd));
}

/*
 * A later header's larger struct: fields that this module lacks read as zero.
 */
TEST_F(query, larger_struct_is_filled_with_zeroes)
{
	struct {
		struct parklot_query query;
		uint64_t more[2];
	} big;

	memset(&big, 0xff, sizeof(big));
	ASSERT_EQ(0, dev_ioctl(self->fd,
			       _IOC(_IOC_READ, PARKLOT_IOC_MAGIC,
				    _IOC_NR(PARKLOT_IOC_QUERY), sizeof(big)),
			       &big));
	EXPECT_EQ(PARKLOT_ABI_VERSION, big.query.abi_version);
	EXPECT_EQ(0, big.more[0]);
	EXPECT_EQ(0, big.more[1]);
}

TEST_HARNESS_MAIN
