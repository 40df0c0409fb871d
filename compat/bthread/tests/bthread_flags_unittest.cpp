// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Flags of a deployment start the workers as they say.
 */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include <gflags/gflags.h>
#include <gtest/gtest.h>
#include <parklot.h>

#include "bthread/bthread.h"
#include "bthread/task_group.h"
#include "bthread/unstable.h"
#include "bvar/variable.h"

namespace bthread {
extern void print_task(std::ostream &os, bthread_t tid, bool, bool);
}

namespace {

void set(const char *flag, const char *value)
{
	ASSERT_NE("", google::SetCommandLineOption(flag, value)) << flag;
}

template <typename F> void run_in_task(F fn, bthread_tag_t tag)
{
	bthread_attr_t attr = BTHREAD_ATTR_NORMAL;
	bthread_t tid;

	attr.tag = tag;
	ASSERT_EQ(0, bthread_start_background(&tid, &attr,
					      [](void *p) -> void * {
		(*(F *)p)();
		return nullptr;
	}, &fn));
	ASSERT_EQ(0, bthread_join(tid, nullptr));
}

uint32_t nr_to_run()
{
	struct pl_stat st = PL_STAT_INIT;

	pl_stat_read(&st);
	return st.workers_active;
}

void compute_ns(uint64_t ns)
{
	struct timespec ts;
	uint64_t now, end = 0;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		now = ts.tv_sec * 1000000000ULL + ts.tv_nsec;
		end = end ? end : now + ns;
	} while (now < end);
}

/* However many processors there are. */
TEST(FlagsTest, as_many_workers_may_run_as_are_asked_for)
{
	set("bthread_concurrency", "37");
	run_in_task([] {}, BTHREAD_TAG_INVALID);
	EXPECT_EQ(37, bthread_getconcurrency());
	EXPECT_EQ(37U, nr_to_run());
}

TEST(FlagsTest, default_is_that_of_brpc)
{
	run_in_task([] {}, BTHREAD_TAG_INVALID);
	EXPECT_EQ(8 + BTHREAD_EPOLL_THREAD_NUM, bthread_getconcurrency());
	EXPECT_EQ(8U + BTHREAD_EPOLL_THREAD_NUM, nr_to_run());
}

TEST(FlagsTest, task_has_the_tag_of_the_one_that_started_it)
{
	bthread_tag_t own = -2, inherited = -2;

	set("task_group_ntags", "3");
	run_in_task([&] {
		own = bthread_self_tag();
		run_in_task([&] { inherited = bthread_self_tag(); },
			    BTHREAD_TAG_INVALID);
	}, 2);
	EXPECT_EQ(2, own);
	EXPECT_EQ(2, inherited);
	EXPECT_EQ(BTHREAD_TAG_DEFAULT, bthread_self_tag());
}

TEST(FlagsTest, tags_share_the_concurrency)
{
	set("task_group_ntags", "2");
	set("bthread_concurrency", "9");
	run_in_task([] {}, 0);
	EXPECT_EQ(5, bthread_getconcurrency_by_tag(0));
	EXPECT_EQ(4, bthread_getconcurrency_by_tag(1));
	EXPECT_EQ(EPERM, bthread_setconcurrency_by_tag(4, 0));
	EXPECT_EQ(0, bthread_setconcurrency_by_tag(8, 1));
	EXPECT_EQ(8, bthread_getconcurrency_by_tag(1));
	EXPECT_EQ(13, bthread_getconcurrency());
	EXPECT_EQ(13U, nr_to_run());
}

std::mutex tags_mutex;
std::vector<bthread_tag_t> tags_started;

long nr_started(bthread_tag_t tag)
{
	std::lock_guard<std::mutex> lock(tags_mutex);

	return std::count(tags_started.begin(), tags_started.end(), tag);
}

TEST(FlagsTest, worker_starts_with_its_tag)
{
	set("task_group_ntags", "2");
	set("bthread_concurrency", "4");
	ASSERT_EQ(0, bthread_set_tagged_worker_startfn([](bthread_tag_t tag) {
		std::lock_guard<std::mutex> lock(tags_mutex);

		tags_started.push_back(tag);
	}));
	run_in_task([] {}, 0);
	EXPECT_EQ(0, nr_started(1));
	run_in_task([] {}, 1);
	EXPECT_LE(1, nr_started(0));
	EXPECT_EQ(1, nr_started(1));
}

struct Told {
	std::atomic<bool> is{false};
	bthread_tag_t by = -1;
};

void *tell(void *p)
{
	Told *told = (Told *)p;

	told->by = bthread_self_tag();
	told->is = true;
	return nullptr;
}

/* The caller keeps its own worker meanwhile. */
TEST(FlagsTest, urgent_task_of_another_tag_runs_there)
{
	Told told;

	set("task_group_ntags", "2");
	set("bthread_concurrency", "4");
	run_in_task([&] {
		bthread_attr_t attr = BTHREAD_ATTR_NORMAL;
		bthread_t tid;

		attr.tag = 1;
		ASSERT_EQ(0, bthread_start_urgent(&tid, &attr, tell, &told));
		while (!told.is)
			;
		bthread_join(tid, nullptr);
		EXPECT_EQ(0, bthread_self_tag());
	}, 0);
	EXPECT_EQ(1, told.by);
}

TEST(FlagsTest, workers_run_on_the_cpus_of_the_set)
{
	cpu_set_t all, seen;
	std::string last;
	int i, nr = 0;

	ASSERT_EQ(0, sched_getaffinity(0, sizeof(all), &all));
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all))
			last = std::to_string(nr = i);
	set("cpu_set", last.c_str());
	run_in_task([&] { sched_getaffinity(0, sizeof(seen), &seen); },
		    BTHREAD_TAG_INVALID);
	EXPECT_EQ(1, CPU_COUNT(&seen));
	EXPECT_TRUE(CPU_ISSET(nr, &seen));
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(seen), &seen));
	EXPECT_TRUE(CPU_EQUAL(&all, &seen)) << "the caller's own stay";
}

TEST(FlagsTest, cpu_time_of_a_task_is_its_own)
{
	uint64_t before = 0, after = 0, slept = 0;
	std::ostringstream said;

	set("bthread_enable_cpu_clock_stat", "true");
	run_in_task([&] {
		before = bthread_cpu_clock_ns();
		compute_ns(20 * 1000 * 1000);
		bthread_usleep(1000);
		after = bthread_cpu_clock_ns();
		bthread_usleep(100 * 1000);
		slept = bthread_cpu_clock_ns();
		bthread::print_task(said, bthread_self(), false, false);
	}, BTHREAD_TAG_INVALID);
	EXPECT_LE(before + 20 * 1000 * 1000, after);
	EXPECT_GT(after + 50 * 1000 * 1000, slept);
	EXPECT_NE(said.str().npos, said.str().find("\nnswitch=2\n"));
	EXPECT_EQ(0U, bthread_cpu_clock_ns());
}

TEST(FlagsTest, what_the_start_reads_stays)
{
	run_in_task([] { EXPECT_EQ(0U, bthread_cpu_clock_ns()); }, 0);
	EXPECT_EQ("", google::SetCommandLineOption(
		"bthread_enable_cpu_clock_stat", "true"));
	EXPECT_EQ("", google::SetCommandLineOption("cpu_set", "0"));
	EXPECT_EQ("", google::SetCommandLineOption("task_group_ntags", "3"));
	/* What is, is right, as when the command line is read only then. */
	set("task_group_ntags", "1");
	set("cpu_set", "");
	set("bthread_enable_cpu_clock_stat", "false");
	FLAGS_task_group_ntags = 3;
	EXPECT_EQ(EPERM, bthread_getconcurrency_by_tag(2));
}

TEST(FlagsTest, variables_are_there)
{
	run_in_task([] {}, 0);
	for (const char *name : { "bthread_count", "bthread_count_0",
			"bthread_group_status", "bthread_signal_second",
			"bthread_stack_count", "bthread_switch_second",
			"bthread_timer_usage",
			"bthread_timer_scheduled_second",
			"bthread_timer_triggered_second",
			"bthread_worker_count", "bthread_worker_count_0",
			"bthread_worker_usage", "bthread_worker_usage_0" })
		EXPECT_NE("", bvar::Variable::describe_exposed(name)) << name;
}

std::string value_of(const char *name)
{
	return bvar::Variable::describe_exposed(name);
}

TEST(FlagsTest, variables_are_there_for_each_tag)
{
	std::string alive;

	set("task_group_ntags", "3");
	run_in_task([&] { alive = value_of("bthread_count_2"); }, 2);
	EXPECT_EQ("1", alive);
	EXPECT_EQ("0", value_of("bthread_count_2"));
	EXPECT_EQ("0", value_of("bthread_worker_count_1"));
	EXPECT_NE("0", value_of("bthread_worker_count_2"));
	EXPECT_NE("", value_of("bthread_worker_usage_1"));
}

}  // namespace
