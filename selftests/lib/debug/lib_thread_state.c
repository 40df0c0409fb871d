/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * thread_state: calls have their names, and what cannot be read is not said.
 * op_name: so have operations, by the kernel's numbers.
 */
#include "kselftest_harness.h"

#include "debug/names.h"
#include "debug/thread_state.h"

#include <liburing.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *said(struct pl__thread_state s)
{
	static char text[80];

	pl__thread_say(&s, text, sizeof(text));
	return text;
}

#define BLOCKED_IN(...) ((struct pl__thread_state){ \
	.is = PL__THREAD_BLOCKED, .nr = __VA_ARGS__ \
})

TEST(call_on_a_descriptor_is_said_with_it)
{
	EXPECT_STREQ("blocked in read(2), fd 7",
		     said(BLOCKED_IN(SYS_read, .arg = 7)));
	EXPECT_STREQ("blocked in pwrite(2), fd 8",
		     said(BLOCKED_IN(SYS_pwrite64, .arg = 8)));
	/* The kernel takes the lower half of the argument. */
	EXPECT_STREQ("blocked in accept(2), fd -1",
		     said(BLOCKED_IN(SYS_accept, .arg = 0xffffffff)));
}

TEST(call_without_a_descriptor_is_said_alone)
{
	EXPECT_STREQ("blocked in futex(2)",
		     said(BLOCKED_IN(SYS_futex, .arg = 0x7f0000000000)));
	EXPECT_STREQ("blocked in ppoll(2)", said(BLOCKED_IN(SYS_ppoll)));
}

TEST(unknown_call_has_its_number)
{
	EXPECT_EQ(NULL, pl__syscall_name(9999));
	EXPECT_STREQ("blocked in system call 9999", said(BLOCKED_IN(9999)));
}

TEST(block_outside_of_calls_has_no_call)
{
	EXPECT_STREQ("blocked outside of system calls",
		     said(BLOCKED_IN(PL__THREAD_NO_CALL)));
}

TEST(call_that_cannot_be_read_is_named_by_where_it_sleeps)
{
	EXPECT_STREQ("blocked in pipe_read",
		     said(BLOCKED_IN(PL__THREAD_SOME_CALL,
				     .where = "pipe_read")));
	EXPECT_STREQ("blocked", said(BLOCKED_IN(PL__THREAD_SOME_CALL)));
}

TEST(thread_that_cannot_be_read_is_unknown)
{
	struct pl__thread_state s = BLOCKED_IN(SYS_read);

	pl__thread_look(&s, 0, -1);
	EXPECT_EQ(PL__THREAD_UNKNOWN, s.is);
	EXPECT_STREQ("", said(s));
}

TEST(own_thread_computes)
{
	struct pl__thread_state s;

	pl__thread_look(&s, 0, (int)syscall(SYS_gettid));
	EXPECT_EQ(PL__THREAD_COMPUTES, s.is);
	pl__thread_look(&s, getpid(), (int)syscall(SYS_gettid));
	EXPECT_STREQ("computes", said(s));
}

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
