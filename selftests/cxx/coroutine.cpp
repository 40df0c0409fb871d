// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * C++20: coroutines that wait for tasks
 */
#include <parklot.hpp>

#include "expect.hpp"

#include <stdexcept>
#include <string>
#include <unistd.h>

#ifndef PARKLOT_HAS_COROUTINES
# error "this compiler has no coroutines"
#endif

using namespace std::chrono_literals;

#define NR_ROUNDS	1000

/* A coroutine that starts at once, and that nobody waits for but by a latch. */
struct job {
	struct promise_type {
		job get_return_object() noexcept { return {}; }
		std::suspend_never initial_suspend() noexcept { return {}; }
		std::suspend_never final_suspend() noexcept { return {}; }
		void return_void() noexcept {}
		void unhandled_exception() noexcept { std::terminate(); }
	};
};

/* Of tasks that end at once, and that end later. */
static job sum_up(int round, pl_latch *end)
{
	auto slow = parklot::spawn([round] {
		parklot::this_task::sleep_for(round % 8 * 1us);
		return round;
	});
	auto fast = parklot::spawn([] { return 1; });
	int sum = co_await slow;

	sum += co_await fast;
	expect(sum == round + 1, "results are awaited");
	expect(sum == slow.join() + fast.join(), "and may be joined for");
	pl_latch_done(end);
}

static job catch_it(pl_latch *end)
{
	auto t = parklot::spawn([]() -> std::string {
		parklot::this_task::yield();
		throw std::runtime_error("thrown");
	});

	try {
		co_await t;
		expect(false, "an exception is awaited");
	} catch (const std::runtime_error &e) {
		expect(e.what() == std::string("thrown"),
		       "the task's exception is thrown");
	}
	pl_latch_done(end);
}

/*
 * The frame goes, and the task's object with it, in the task that has ended; it
 * does so after @begun, when the coroutine waits.
 */
static job goes_on_in_the_task(pl_latch *begun, pl_latch *end)
{
	pl_task_t there = 0;
	auto t = parklot::spawn([&] {
		pl_latch_wait(begun);
		there = parklot::this_task::get_id();
	});

	co_await t;
	expect(there && parklot::this_task::get_id() == there,
	       "a coroutine goes on in the task");
	pl_latch_done(end);
}

/* I/O is awaited by a task that makes it; the thread goes on meanwhile. */
static job read_twice(int fd, pl_latch *end)
{
	char buf[8];
	auto read = [&] { return pl_read(fd, buf, sizeof(buf)); };
	auto first = parklot::spawn(read);
	ssize_t n = co_await first;

	expect(n == 3 && std::string(buf, 3) == "one", "I/O is awaited");
	auto second = parklot::spawn(read);
	n = co_await second;
	expect(!n, "and its end");
	pl_latch_done(end);
}

static void awaits_io()
{
	pl_latch end = PL_LATCH_INIT(1);
	int fds[2];

	expect(!pipe(fds), "there is a pipe");
	read_twice(fds[0], &end);
	expect(pl_latch_wait_until(&end, pl_now() + 1000000) == -ETIMEDOUT,
	       "nothing was written yet");
	expect(write(fds[1], "one", 3) == 3, "something is");
	close(fds[1]);
	expect(!pl_latch_wait(&end), "the coroutine has ended");
	close(fds[0]);
}

int main()
{
	pl_latch end = PL_LATCH_INIT(2 * NR_ROUNDS + 1);
	pl_latch begun = PL_LATCH_INIT(1);

	for (int i = 0; i < NR_ROUNDS; i++) {
		sum_up(i, &end);
		catch_it(&end);
	}
	goes_on_in_the_task(&begun, &end);
	pl_latch_done(&begun);
	awaits_io();
	expect(!pl_latch_wait(&end), "all coroutines have ended");
	expect(!pl_runtime_stop(), "the runtime stops");
	return failed();
}
