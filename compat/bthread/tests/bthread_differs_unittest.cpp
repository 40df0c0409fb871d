// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What bthread can and parklot cannot: it is refused, or has no effect, and the
 * log says so.
 */
#include <errno.h>

#include <string>

#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include "bthread/bthread.h"
#include "bthread/butex.h"
#include "bthread/unstable.h"
#include "butil/logging.h"

namespace {

/* The log, while it lives. */
class Log {
public:
	Log() : before(logging::SetLogSink(&sink)) {}
	~Log() { logging::SetLogSink(before); }

	bool has(const char *words) const
	{
		return sink.find(words) != std::string::npos;
	}

private:
	logging::StringSink sink;
	logging::LogSink *before;
};

void *count_run(void *p)
{
	__atomic_add_fetch((int *)p, 1, __ATOMIC_RELAXED);
	return nullptr;
}

void *note_tag(void *p)
{
	*(bthread_tag_t *)p = bthread_self_tag();
	return nullptr;
}

void expect_refused(const char *flag, const char *value, const char *words)
{
	Log log;

	EXPECT_EQ("", google::SetCommandLineOption(flag, value)) << flag;
	EXPECT_TRUE(log.has(words)) << flag;
}

TEST(RefusedTest, start_with_other_tag_gets_einval)
{
	bthread_attr_t attr = BTHREAD_ATTR_NORMAL;
	int nr_runs = 0;
	bthread_t t;

	attr.tag = 1;
	{
		Log log;

		EXPECT_EQ(EINVAL, bthread_start_background(&t, &attr, count_run,
							   &nr_runs));
		EXPECT_TRUE(log.has("tag 1 is refused"));
	}
	{
		Log log;

		EXPECT_EQ(EINVAL, bthread_start_urgent(&t, &attr, count_run,
						       &nr_runs));
		EXPECT_TRUE(log.has("tag 1 is refused"));
	}
	EXPECT_EQ(0, nr_runs);
}

TEST(RefusedTest, start_with_tag_0_or_none_runs)
{
	for (bthread_tag_t tag : { BTHREAD_TAG_DEFAULT, BTHREAD_TAG_INVALID }) {
		bthread_attr_t attr = BTHREAD_ATTR_NORMAL;
		bthread_tag_t seen = -2;
		bthread_t tid;

		attr.tag = tag;
		ASSERT_EQ(0, bthread_start_background(&tid, &attr, note_tag,
						      &seen));
		ASSERT_EQ(0, bthread_join(tid, nullptr));
		EXPECT_EQ(BTHREAD_TAG_DEFAULT, seen);
	}
}

TEST(RefusedTest, concurrency_of_other_tag_is_refused)
{
	const int nr = bthread_getconcurrency();
	bthread_t tid;
	int nr_runs = 0;

	/* Before the first task there is none of any tag, as in bthread. */
	ASSERT_EQ(0, bthread_start_background(&tid, nullptr, count_run,
					      &nr_runs));
	ASSERT_EQ(0, bthread_join(tid, nullptr));
	EXPECT_EQ(nr, bthread_getconcurrency_by_tag(0));
	{
		Log log;

		EXPECT_EQ(EPERM, bthread_getconcurrency_by_tag(1));
		EXPECT_TRUE(log.has("tag 1 is refused"));
	}
	{
		Log log;

		EXPECT_EQ(EINVAL, bthread_setconcurrency_by_tag(nr + 1, 2));
		EXPECT_TRUE(log.has("tag 2 is refused"));
	}
	EXPECT_EQ(nr, bthread_getconcurrency());
}

TEST(RefusedTest, wrong_values_are_refused)
{
	for (const char *cpus : { "x", "1-", "2-1", "0:", "0;1", "a:1", "1:2;3",
				  "0,,1", "4096" }) {
		Log log;

		EXPECT_EQ("", google::SetCommandLineOption("cpu_set", cpus));
		EXPECT_TRUE(log.has("names no processors")) << cpus;
	}
	expect_refused("bthread_current_tag", "1", "tag 1 is refused");
	EXPECT_EQ("", google::SetCommandLineOption("task_group_ntags", "0"));
	expect_refused("task_group_ntags", "65", "parklot has 64 at most");
}

TEST(RefusedTest, what_has_no_effect_is_said)
{
	Log log;

	EXPECT_NE("", google::SetCommandLineOption(
		"enable_bthread_priority_queue", "true"));
	EXPECT_TRUE(log.has("-enable_bthread_priority_queue has no effect"));
}

TEST(RefusedTest, stop_world_leaves_tasks_alone)
{
	bthread_t tid;
	int nr_runs = 0;

	{
		Log log;

		bthread_stop_world();
		EXPECT_TRUE(log.has("bthread_stop_world: refused"));
	}
	ASSERT_EQ(0, bthread_start_background(&tid, nullptr, count_run,
					      &nr_runs));
	ASSERT_EQ(0, bthread_join(tid, nullptr));
	EXPECT_EQ(1, nr_runs);
}

TEST(RefusedTest, wake_except_says_that_it_wakes_all)
{
	void *butex = bthread::butex_create();

	ASSERT_TRUE(butex);
	{
		Log log;

		EXPECT_EQ(0, bthread::butex_wake_except(butex, bthread_self()));
		EXPECT_FALSE(log.has("butex_wake_except"));
		EXPECT_EQ(0, bthread::butex_wake_except(butex, 1));
		EXPECT_TRUE(log.has("butex_wake_except"));
	}
	bthread::butex_destroy(butex);
}

}  // namespace
