// SPDX-License-Identifier: GPL-2.0-only
/* The programs in parklot-device(4) end with 0 if they do what it says. */
#include "kselftest_harness.h"

#include "mod.h"
#include "parklot-device.4.h"

_Static_assert(NR_EXAMPLES == 2, "a test for each");

FIXTURE(manual)
{
	int fd;
};

FIXTURE_SETUP(manual)
{
	self->fd = dev_open();
	if (self->fd == -ENOENT)
		SKIP(return, "no " DEVICE);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(manual)
{
	close(self->fd);
}

TEST_F(manual, example_prints_the_features)
{
	EXPECT_EQ(0, example_1());
}

TEST_F(manual, example_parks_until_there_is_work)
{
	EXPECT_EQ(0, example_2());
}

TEST_HARNESS_MAIN
