/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * op_name: the table has the kernel's numbers.
 */
#include "kselftest_harness.h"

#include "debug/names.h"

#include <liburing.h>

TEST(operation_has_the_name_of_its_number)
{
	EXPECT_STREQ("nop", pl__op_name(IORING_OP_NOP)->name);
	EXPECT_STREQ("poll", pl__op_name(IORING_OP_POLL_ADD)->name);
	EXPECT_STREQ("recvmsg", pl__op_name(IORING_OP_RECVMSG)->name);
	EXPECT_STREQ("accept", pl__op_name(IORING_OP_ACCEPT)->name);
	EXPECT_STREQ("connect", pl__op_name(IORING_OP_CONNECT)->name);
	EXPECT_STREQ("close", pl__op_name(IORING_OP_CLOSE)->name);
	EXPECT_STREQ("read", pl__op_name(IORING_OP_READ)->name);
	EXPECT_STREQ("send", pl__op_name(IORING_OP_SEND)->name);
	EXPECT_STREQ("recv", pl__op_name(IORING_OP_RECV)->name);
	EXPECT_STREQ("splice", pl__op_name(IORING_OP_SPLICE)->name);
	EXPECT_STREQ("shutdown", pl__op_name(IORING_OP_SHUTDOWN)->name);
	EXPECT_STREQ("linkat", pl__op_name(IORING_OP_LINKAT)->name);
}

TEST(only_operation_on_a_descriptor_has_one)
{
	EXPECT_TRUE(pl__op_name(IORING_OP_RECV)->has_fd);
	EXPECT_TRUE(pl__op_name(IORING_OP_POLL_ADD)->has_fd);
	EXPECT_FALSE(pl__op_name(IORING_OP_TIMEOUT)->has_fd);
	EXPECT_FALSE(pl__op_name(IORING_OP_OPENAT)->has_fd);
}

TEST(unknown_operation_has_no_name)
{
	EXPECT_EQ(NULL, pl__op_name(255));
}

TEST_HARNESS_MAIN
