// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * All that <parklot.hpp> promises, each by a function that is named for it.
 */
#include <parklot.hpp>

#include "expect.hpp"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <new>
#include <numeric>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

static std::atomic<long> nr_news;

/* Inlined, GCC takes them for mismatched. */
__attribute__((noinline)) void *operator new(size_t size)
{
	void *p = std::malloc(size);

	nr_news++;
	if (!p)
		throw std::bad_alloc();
	return p;
}

__attribute__((noinline)) void operator delete(void *p) noexcept
{
	std::free(p);
}

__attribute__((noinline)) void operator delete(void *p, size_t) noexcept
{
	std::free(p);
}

/* The errno that @fn throws; 0 if it does not. */
template <typename F> static int error_of(F fn)
{
	try {
		fn();
	} catch (const std::system_error &e) {
		return e.code().value();
	}
	return 0;
}

/* ---- tasks ---- */

static void join_returns_the_result()
{
	int there = 7;
	auto by_value = parklot::spawn([] { return std::string("forty-two"); });
	auto by_reference = parklot::spawn([&]() -> int & { return there; });
	auto nothing = parklot::spawn([&] { there++; });
	auto moved = parklot::spawn([p = std::make_unique<int>(3)]() mutable {
		return std::move(p);
	});

	expect(by_value.join() == "forty-two", "a value is returned");
	expect(&by_reference.join() == &there, "a reference is returned");
	nothing.join();
	expect(there == 8, "a task without a result has run");
	expect(*moved.join() == 3, "what is moved only is returned");
}

static void join_throws_what_the_task_threw()
{
	auto t = parklot::spawn([]() -> int {
		parklot::this_task::yield();
		throw std::out_of_range("far out");
	});

	for (int i = 0; i < 2; i++) {
		try {
			t.join();
			expect(false, "join throws");
		} catch (const std::out_of_range &e) {
			expect(e.what() == std::string("far out"),
			       "join throws what the task threw");
		}
	}
}

static void destructor_cancels_and_waits()
{
	bool is_cancelled = false;

	{
		auto t = parklot::spawn([&] {
			is_cancelled = error_of([] {
				parklot::this_task::sleep_for(1h);
			}) == ECANCELED;
		});
		expect(!t.is_done(), "it is not done while it sleeps");
	}
	expect(is_cancelled, "a destructor cancels the task and waits");
}

/* The caller's own cancellation does not let the object go too early. */
static void cancelled_parent_waits_for_its_child()
{
	std::atomic<bool> may_end{false}, has_ended{false}, is_early{false};
	auto parent = parklot::spawn([&] {
		{
			auto child = parklot::spawn([&] {
				while (!may_end)
					parklot::this_task::yield();
				for (int i = 0; i < 100; i++)
					parklot::this_task::yield();
				has_ended = true;
			});
			expect(error_of([&] { child.join(); }) == ECANCELED,
			       "join is a point of cancellation");
		}
		is_early = !has_ended;
	});

	parent.cancel();
	may_end = true;
	parent.wait();
	expect(!is_early, "a cancelled parent's destructor waits");
}

static void wait_for_ends_at_its_time()
{
	auto t = parklot::spawn([] { parklot::this_task::sleep_for(1h); });

	expect(!t.wait_for(1ms), "wait_for ends at its time");
	expect(!t.wait_until(parklot::clock::now() + 1ms),
	       "wait_until ends at its time");
	expect(!t.wait_until(parklot::clock::time_point::min()),
	       "a time in the past polls");
	t.interrupt();
	expect(error_of([&] { t.join(); }) == EINTR, "join throws its EINTR");
}

struct counter {
	std::atomic<int>	&nr;

	~counter()
	{
		nr++;
	}
};

static void leave(std::atomic<int> &nr)
{
	counter c{nr};

	parklot::this_task::exit();
}

static void exit_unwinds()
{
	std::atomic<int> nr = 0;
	auto nothing = parklot::spawn([&] { leave(nr); });
	auto number = parklot::spawn([&] { leave(nr); return 1; });

	nothing.join();
	expect(error_of([&] { number.join(); }) == ECANCELED,
	       "a result that is not there is ECANCELED");
	expect(nr == 2, "exit() unwinds");
}

static void many_in_a_deque()
{
	std::vector<int> squares(1000);
	auto square = [&](size_t i) {
		return [&squares, i] { squares[i] = static_cast<int>(i * i); };
	};
	std::deque<parklot::task<decltype(square(0))>> tasks;

	for (size_t i = 0; i < squares.size(); i++)
		tasks.emplace_back(square(i));
	for (auto &t : tasks)
		t.join();
	expect(std::accumulate(squares.begin(), squares.end(), 0) == 332833500,
	       "a deque of tasks has run");
}

static void detached_run()
{
	pl_latch latch = PL_LATCH_INIT(3);
	std::string text = "a text that takes memory of its own";
	long a = 1, b = 2, c = 3;
	pl_latch *to = &latch;
	static std::atomic<int> nr_unwound;

	parklot::detach([to] { pl_latch_done(to); });
	parklot::detach([=] {
		expect(a + b + c == 6 && text[0] == 'a', "a copy arrives");
		pl_latch_done(to);
	});
	parklot::detach([to] {
		counter c{nr_unwound};

		pl_latch_done(to);
		parklot::this_task::exit();
	});
	expect(!pl_latch_wait(&latch), "detached tasks have run");
}

static void options_are_used()
{
	parklot::options o;

	o.stack = PL_STACK_SMALL;
	o.name = "named";
	o.stack_size = 1;
	o.stack = PL_STACK_NORMAL;
	parklot::spawn(o, [] {}).join();
	o.stack_size = SIZE_MAX;
	expect(error_of([&] { parklot::spawn(o, [] {}); }) == EINVAL,
	       "no stack is so large");
	o = parklot::options();
	parklot::check(pl_group_create(&o.group, nullptr));
	expect(parklot::spawn(o, pl_group_self).join() == o.group, "group");
	o.flags = 1U << 31;
	expect(error_of([&] { parklot::spawn(o, [] {}); }) == EINVAL,
	       "a refused spawn throws");
}

/* In a runtime of its own, as all others are without a limit. */
static void spawn_waits_until_its_deadline()
{
	struct pl_config cfg = PL_CONFIG_INIT;
	pl_latch latch = PL_LATCH_INIT(1);
	parklot::options o;

	cfg.max_tasks = 2;
	parklot::check(pl_runtime_start(&cfg));
	o.flags = PL_SPAWN_WAIT;
	{
		auto first = parklot::spawn([&] { pl_latch_wait(&latch); });
		auto second = parklot::spawn([&] { pl_latch_wait(&latch); });

		o.deadline = parklot::clock::now() +
			     std::chrono::milliseconds(5);
		expect(error_of([&] { parklot::spawn(o, [] {}); }) == ETIMEDOUT,
		       "the wait for room ended");
		o.deadline = parklot::clock::time_point();
		expect(error_of([&] { parklot::spawn(o, [] {}); }) == ETIMEDOUT,
		       "it does not wait at all");
		pl_latch_done(&latch);
	}
	o.deadline = parklot::clock::time_point::max();
	parklot::spawn(o, [] {}).join();
	parklot::check(pl_runtime_stop());
}

/* ---- locks ---- */

static parklot::mutex global;		/* initialised by the compiler */

static void locks_are_the_standard_s()
{
	parklot::mutex other;
	parklot::shared_mutex shared;
	long sum = 0;
	auto add = [&] {
		for (int i = 0; i < 1000; i++) {
			std::scoped_lock both(global, other);
			std::unique_lock<parklot::shared_mutex> w(shared);

			sum++;
		}
	};
	auto a = parklot::spawn(add), b = parklot::spawn(add);

	a.join();
	b.join();
	{
		std::shared_lock<parklot::shared_mutex> r(shared), s(shared);

		expect(!shared.try_lock(), "readers keep a writer out");
	}
	expect(sum == 2000, "scoped_lock and unique_lock exclude others");
	std::lock_guard<parklot::mutex> lock(global);
	expect(!global.try_lock(), "lock_guard locks");
	expect(!global.try_lock_for(1ms), "try_lock_for ends at its time");
	std::unique_lock<parklot::mutex> timed(other, 1ms);
	expect(timed.owns_lock(), "a unique_lock locks within its time");
}

static void condition_variable_waits()
{
	parklot::condition_variable cond;
	parklot::mutex m;
	int turn = 0;
	auto play = [&](int me) {
		return [&, me] {
			for (int i = 0; i < 100; i++) {
				std::unique_lock<parklot::mutex> lock(m);

				cond.wait(lock, [&] { return turn == me; });
				turn = !me;
				cond.notify_all();
			}
		};
	};
	auto a = parklot::spawn(play(0)), b = parklot::spawn(play(1));

	a.join();
	b.join();
	std::unique_lock<parklot::mutex> lock(m);
	expect(cond.wait_for(lock, 1ms) == std::cv_status::timeout,
	       "wait_for ends at its time");
	expect(!cond.wait_until(lock, parklot::clock::now() + 1ms,
				[] { return false; }),
	       "wait_until ends at its time");
	expect(cond.wait_for(lock, 1h, [] { return true; }),
	       "what is so is not waited for");
}

static void cancelled_wait_unlocks()
{
	parklot::condition_variable cond;
	parklot::mutex m;
	auto t = parklot::spawn([&] {
		std::unique_lock<parklot::mutex> lock(m);

		for (;;)
			cond.wait(lock);
	});

	t.cancel();
	expect(error_of([&] { t.join(); }) == ECANCELED,
	       "a cancelled wait throws");
	expect(m.try_lock(), "a cancelled wait leaves its mutex unlocked");
}

/* ---- channels, timers ---- */

struct tracked {
	static inline std::atomic<int> nr;

	tracked() { nr++; }
	~tracked() { nr--; }
};

static void channels_carry_values()
{
	parklot::channel<int> numbers(4);
	auto sender = parklot::spawn([&] {
		for (int i = 0; i < 1000; i++)
			numbers.send(i);
		numbers.close();
	});
	int sum = 0;

	while (auto n = numbers.recv())
		sum += *n;
	expect(sum == 499500, "a channel carries numbers");
	expect(!numbers.send(1), "a closed channel takes nothing");
	expect(!numbers.try_recv(), "a closed channel is empty");
}

static void channels_own_what_they_hold()
{
	{
		parklot::channel<std::unique_ptr<tracked>> ch(2);

		expect(ch.try_send(std::make_unique<tracked>()) &&
		       ch.send(std::make_unique<tracked>()), "there is room");
		expect(!ch.try_send(std::make_unique<tracked>()),
		       "there is room for two");
		expect(error_of([&] {
			ch.send_until(std::make_unique<tracked>(), 1ms);
		}) == ETIMEDOUT, "a time-out is thrown");
		expect(tracked::nr == 2, "what is not sent is destroyed");
		ch.recv();
		expect(tracked::nr == 1, "what is received is the receiver's");
	}
	expect(tracked::nr == 0, "what is left is destroyed");
	parklot::channel<int> empty;
	expect(error_of([&] { empty.recv_until(1ms); }) == ETIMEDOUT,
	       "a time-out is thrown");
}

static void timers_fire()
{
	pl_latch latch = PL_LATCH_INIT(1);
	bool is_late = true;
	parklot::timer soon(1ms, [&] { pl_latch_done(&latch); });

	{
		parklot::timer never(1h, [&] { is_late = false; });
		parklot::timer cancelled(parklot::clock::now() + 1h, [] {});

		expect(cancelled.cancel(), "a timer is taken back");
	}
	expect(is_late, "a timer that is destroyed does not fire");
	expect(!pl_latch_wait(&latch), "a timer fires");
}

static void scope_waits_for_its_children()
{
	std::atomic<int> sum = 0;

	parklot::in_scope([&](parklot::scope &s) {
		for (int i = 0; i < 100; i++)
			s.spawn([&, i] {
				parklot::this_task::yield();
				sum += i;
			});
	});
	expect(sum == 4950, "all children have run");
}

/* How many frames in a scope were unwound. */
static std::atomic<int> nr_in_scope;

static void sleep_for_ever(std::atomic<int> &nr)
{
	counter c{nr_in_scope};

	nr++;
	parklot::this_task::sleep_for(1h);
}

static void child_that_throws_cancels_the_rest()
{
	std::atomic<int> nr = 0;
	std::string caught;

	nr_in_scope = 0;
	try {
		parklot::in_scope([&](parklot::scope &s) {
			s.spawn([&] { sleep_for_ever(nr); });
			s.spawn([&] {
				while (!nr)
					parklot::this_task::yield();
				throw std::runtime_error("of a child");
			});
			parklot::this_task::sleep_for(1h);
		});
	} catch (const std::runtime_error &e) {
		caught = e.what();
	}
	expect(caught == "of a child", "what a child threw is thrown");
	expect(nr_in_scope == 1, "the others were unwound");
	expect(!parklot::this_task::is_cancelled(), "and nothing outside");
}

static void exception_cancels_the_children()
{
	std::atomic<int> nr = 0;
	bool is_caught = false;

	nr_in_scope = 0;
	try {
		parklot::scope s;

		s.spawn([&] { sleep_for_ever(nr); });
		while (!nr)
			parklot::this_task::yield();
		throw std::runtime_error("of the block");
	} catch (const std::runtime_error &) {
		is_caught = true;
		expect(nr_in_scope == 1, "its children have ended");
	}
	expect(is_caught, "the block's own exception goes on");
}

static void scope_has_a_deadline()
{
	expect(error_of([] {
		parklot::in_scope(1ms, [](parklot::scope &s) {
			s.spawn([] { parklot::this_task::sleep_for(1h); });
		});
	}) == ETIMEDOUT, "a time-out is thrown");
	expect(error_of([] {
		parklot::scope s;

		s.spawn([] { parklot::this_task::exit(); });
		s.cancel(EPIPE);
		expect(s.is_cancelled(), "it is cancelled");
		s.leave();
	}) == EPIPE, "the reason is thrown");
	parklot::spawn([] {
		parklot::scope outer, inner;

		outer.cancel(EINVAL);
		expect(error_of([&] { outer.leave(); }) == EINVAL, "too early");
	}).join();
}

static void exit_leaves_cancelled_scopes()
{
	std::atomic<int> nr = 0;
	auto late = parklot::spawn([&] {
		parklot::in_scope(0ms, [](parklot::scope &) {
			parklot::this_task::exit();
		});
		nr++;
	});
	auto cancelled = parklot::spawn([&] {
		parklot::in_scope([](parklot::scope &s) {
			s.cancel(EPIPE);
			parklot::this_task::exit();
		});
		nr++;
	});

	expect(!error_of([&] { late.join(); }) &&
	       !error_of([&] { cancelled.join(); }), "exit() outdoes errors");
	expect(!nr, "exit() ends the task");
}

static void shield_keeps_cancels_out()
{
	bool is_through = false;
	auto t = parklot::spawn([&] {
		if (error_of([] {
			parklot::this_task::sleep_for(1h);
		}) != ECANCELED)
			return;
		parklot::shielded(1h, [&] {
			parklot::this_task::sleep_for(1ms);
			is_through = true;
		});
		parklot::this_task::sleep_for(1ms);
	});

	t.cancel();
	expect(error_of([&] { t.join(); }) == ECANCELED,
	       "after the shield it is cancelled");
	expect(is_through, "in the shield it is not");
	expect(error_of([] {
		parklot::shielded(1ms, [] {
			parklot::this_task::sleep_for(1h);
		});
	}) == ETIMEDOUT, "a shield has a deadline");
}

static void nothing_is_allocated()
{
	parklot::channel<int> ch(1);
	parklot::mutex m;
	int sum = 0;
	long before = nr_news;

	for (int i = 0; i < 100; i++) {
		auto t = parklot::spawn([&] {
			std::lock_guard<parklot::mutex> lock(m);

			return *ch.recv();
		});
		parklot::timer late(1h, [&] { sum = 0; });

		parklot::detach([&ch] { ch.send(1); });
		sum += t.join();
	}
	expect(sum == 100, "all have run");
	expect(nr_news == before, "nothing is allocated");
}

static void all()
{
	join_returns_the_result();
	join_throws_what_the_task_threw();
	destructor_cancels_and_waits();
	cancelled_parent_waits_for_its_child();
	wait_for_ends_at_its_time();
	exit_unwinds();
	many_in_a_deque();
	detached_run();
	options_are_used();
	locks_are_the_standard_s();
	condition_variable_waits();
	cancelled_wait_unlocks();
	channels_carry_values();
	channels_own_what_they_hold();
	timers_fire();
	scope_waits_for_its_children();
	child_that_throws_cancels_the_rest();
	exception_cancels_the_children();
	scope_has_a_deadline();
	exit_leaves_cancelled_scopes();
	shield_keeps_cancels_out();
	nothing_is_allocated();
}

/* In an ordinary thread, and in a task. */
int main()
{
	all();
	parklot::spawn(all).join();
	expect(!pl_runtime_stop(), "the runtime stops");
	spawn_waits_until_its_deadline();
	return failed();
}
