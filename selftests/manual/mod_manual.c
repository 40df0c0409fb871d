// SPDX-License-Identifier: GPL-2.0-only
/* The programs in parklot-device(4) end with 0 if they do what it says. */
#include "kselftest_harness.h"

#include "mod.h"
#include "parklot-device.4.h"

_Static_assert(NR_EXAMPLES == 3, "a test for each");

FIXTURE(manual)
{
	uint64_t features;
};

FIXTURE_SETUP(manual)
{
	int fd = dev_open();

	if (fd == -ENOENT)
		SKIP(return, "no " DEVICE);
	ASSERT_LE(0, fd);
	self->features = dev_features(fd);
	close(fd);
}

FIXTURE_TEARDOWN(manual)
{
	(void)self;
}

TEST_F(manual, example_prints_the_features)
{
	EXPECT_EQ(0, example_1());
}

TEST_F(manual, example_parks_until_there_is_work)
{
	EXPECT_EQ(0, example_2());
}

TEST_F(manual, example_parks_and_wakes_by_io_uring)
{
	if (!(self->features & PARKLOT_FEAT_URING))
		SKIP(return, "this kernel has no such commands");
	EXPECT_EQ(0, example_3());
}

TEST_HARNESS_MAIN
