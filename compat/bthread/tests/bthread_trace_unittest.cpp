// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The calls of a task, as /bthreads shows them.
 */
#include <atomic>
#include <sstream>

#include <gtest/gtest.h>

#include "bthread/bthread.h"
#include "bthread/butex.h"

namespace bthread {
extern void print_task(std::ostream &os, bthread_t tid, bool with_trace,
		       bool is_one_of_all);
extern void print_living_tasks(std::ostream &os, bool with_trace);
/* The bthread.h of an older bRPC does not declare these. */
std::string stack_trace(bthread_t tid);
bthread_t init_for_pthread_stack_trace();
}  // namespace bthread

namespace {

std::atomic<int> *gate;
std::atomic<bool> is_there, may_end;

__attribute__((noinline)) void wait_deep_down(int depth)
{
	if (depth)
		wait_deep_down(depth - 1);
	while (!*gate)
		bthread::butex_wait(gate, 0, nullptr);
	/* No tail call. */
	__asm__ volatile("");
}

void *wait_at_gate(void *)
{
	wait_deep_down(2);
	return nullptr;
}

void *compute(void *)
{
	is_there = true;
	while (!may_end)
		;
	return nullptr;
}

bool has(const std::string &text, const char *words)
{
	return text.find(words) != std::string::npos;
}

/* How often @words are in @text. */
int nr_of(const std::string &text, const char *words)
{
	size_t at = 0;
	int nr = 0;

	for (; (at = text.find(words, at)) != std::string::npos; at++)
		nr++;
	return nr;
}

std::string printed(bthread_t tid, bool with_trace)
{
	std::ostringstream os;

	bthread::print_task(os, tid, with_trace, false);
	return os.str();
}

TEST(TraceTest, calls_of_a_task_that_waits_are_named)
{
	std::ostringstream all;
	std::string trace;
	bthread_t t;

	gate = (std::atomic<int> *)bthread::butex_create();
	*gate = 0;
	ASSERT_EQ(0, bthread_start_background(&t, nullptr, wait_at_gate,
					      nullptr));
	/* Until it waits it runs, or has not started. */
	do {
		trace = bthread::stack_trace(t);
	} while (!has(trace, "wait_deep_down"));
	EXPECT_EQ(3, nr_of(trace, "wait_deep_down")) << trace;
	EXPECT_TRUE(has(trace, "wait_at_gate")) << trace;
	EXPECT_TRUE(has(trace, "butex_wait")) << trace;

	EXPECT_TRUE(has(printed(t, true), "bthread call stack:\n#0 "));
	EXPECT_TRUE(has(printed(t, true), "wait_deep_down"));
	EXPECT_FALSE(has(printed(t, false), "call stack"));
	bthread::print_living_tasks(all, true);
	EXPECT_TRUE(has(all.str(), "wait_deep_down"));

	*gate = 1;
	bthread::butex_wake_all(gate);
	ASSERT_EQ(0, bthread_join(t, nullptr));
	EXPECT_TRUE(has(bthread::stack_trace(t), "not exist now"));
	bthread::butex_destroy(gate);
}

TEST(TraceTest, task_that_runs_is_said_to_run)
{
	bthread_t t;

	ASSERT_EQ(0, bthread_start_background(&t, nullptr, compute, nullptr));
	while (!is_there)
		sched_yield();
	EXPECT_TRUE(has(bthread::stack_trace(t), "No frame: it runs"));
	may_end = true;
	ASSERT_EQ(0, bthread_join(t, nullptr));
}

TEST(TraceTest, trace_of_no_task_says_so)
{
	EXPECT_TRUE(has(bthread::stack_trace(INVALID_BTHREAD),
			"not exist now"));
	EXPECT_EQ(INVALID_BTHREAD, bthread::init_for_pthread_stack_trace());
}

}  // namespace
