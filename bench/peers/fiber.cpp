// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Boost.Fiber: work stealing on two threads that poll while they are idle,
 * its fastest, but where a sleep is measured; fibers that run at once where
 * nothing else is asked for, which saves it a queue and keeps few alive
 *
 * One thread has stacks from a pool, and round robin; pools are no good for
 * two, between which fibers move.
 */
#include <boost/fiber/all.hpp>

#include <atomic>
#include <thread>
#include <vector>

#include "../lib/bench.h"

#define STACK_SIZE	32768
#define NR_YIELDS	2000000
#define NR_JOINED	200000
#define NR_MANY		20000
#define NR_TRIPS	200000
#define NR_TASKS	8
#define NR_COUNTS	250000
#define NR_SLEEPS	1000
#define NR_SLEEPERS	10000
#define NR_WAKES	1500
#define NR_WARM		50
#define EVERY_NS	400000
#define SPIN_NS		60000

namespace bf = boost::fibers;
using std::allocator_arg;

static bf::fixedsize_stack stack(STACK_SIZE);

/* Calls @fn in a fiber of a thread; another thread helps. */
template <typename F>
static void on_two(bool may_sleep, F fn)
{
	bf::mutex mutex;
	bf::condition_variable_any cond;
	bool is_over = false;
	std::thread helper([&] {
		bf::use_scheduling_algorithm<bf::algo::work_stealing>(2,
								may_sleep);
		std::unique_lock<bf::mutex> lock(mutex);
		while (!is_over)
			cond.wait(lock);
	});

	bf::use_scheduling_algorithm<bf::algo::work_stealing>(2, may_sleep);
	bf::fiber(fn).join();
	mutex.lock();
	is_over = true;
	mutex.unlock();
	cond.notify_all();
	helper.join();
}

template <typename F>
static bf::fiber now(F fn)
{
	return bf::fiber(bf::launch::dispatch, allocator_arg, stack, fn);
}

template <typename F>
static bf::fiber later(F fn)
{
	return bf::fiber(bf::launch::post, allocator_arg, stack, fn);
}

/* ---- yield ---- */

static void yield_to(const char *name, int nr_tasks)
{
	bf::pooled_fixedsize_stack pool(STACK_SIZE);
	std::vector<bf::fiber> fibers;

	bench_begin();
	for (int i = 0; i < nr_tasks; i++)
		fibers.emplace_back(bf::launch::post, allocator_arg, pool, [=] {
			for (int k = 0; k < NR_YIELDS / nr_tasks; k++)
				boost::this_fiber::yield();
		});
	for (auto &f : fibers)
		f.join();
	bench_put_busy(name, NR_YIELDS);
}

static void yield_2(void)
{
	yield_to("2_tasks", 2);
}

static void yield_1000(void)
{
	yield_to("1000_tasks", 1000);
}

/* ---- spawn ---- */

static void join_each(void)
{
	bf::pooled_fixedsize_stack pool(STACK_SIZE);

	bench_begin();
	for (int i = 0; i < NR_JOINED; i++)
		bf::fiber(bf::launch::dispatch, allocator_arg, pool,
			  [] { }).join();
	bench_put_time("join", "ns", NR_JOINED);
}

/* All are alive at once: a fifth of them, or it takes gigabytes. */
static void spawn_many(void)
{
	on_two(false, [] {
		for (int round = 0; round < 3; round++) {
			std::vector<bf::fiber> fibers;

			if (round == 1)
				bench_begin();
			fibers.reserve(NR_MANY);
			for (int i = 0; i < NR_MANY; i++)
				fibers.push_back(later([] { }));
			for (auto &f : fibers)
				f.join();
		}
		bench_put_time("task_100k", "ns", 2.0 * NR_MANY);
	});
}

/* ---- ping-pong, mutex ---- */

static void play(bf::mutex &m, bf::condition_variable &c, bool &turn, bool me)
{
	for (int i = 0; i < NR_TRIPS; i++) {
		std::unique_lock<bf::mutex> lock(m);

		while (turn != me)
			c.wait(lock);
		turn = !me;
		c.notify_one();
	}
}

static void pingpong(void)
{
	bf::condition_variable cond;
	bf::mutex mutex;
	bool turn = false;

	bench_begin();
	bf::fiber a([&] { play(mutex, cond, turn, false); });
	bf::fiber b([&] { play(mutex, cond, turn, true); });
	a.join();
	b.join();
	bench_put_busy("cond", NR_TRIPS);
}

static void contended(void)
{
	on_two(false, [] {
		std::vector<bf::fiber> fibers;
		uint64_t sum = 0;
		bf::mutex mutex;

		bench_begin();
		for (int i = 0; i < NR_TASKS; i++)
			fibers.push_back(later([&] {
				for (int k = 0; k < NR_COUNTS; k++) {
					mutex.lock();
					sum++;
					mutex.unlock();
				}
			}));
		for (auto &f : fibers)
			f.join();
		bench_put_time("8_tasks", "ns", (double)NR_TASKS * NR_COUNTS);
	});
}

/* ---- trees ---- */

static int fib(int n)
{
	int a, b;

	if (n < 2)
		return n;
	bf::fiber f = now([&a, n] { a = fib(n - 1); });
	bf::fiber g = now([&b, n] { b = fib(n - 2); });
	f.join();
	g.join();
	return a + b;
}

static void fib_27(void)
{
	on_two(false, [] {
		bench_begin();
		if (fib(27) != 196418)
			die("wrong");
		bench_put_time("27", "ms", NSEC_PER_MSEC);
	});
}

static uint64_t grow(uint32_t first, uint32_t size)
{
	uint64_t sums[10], sum = 0;
	bf::fiber children[10];

	if (size == 1)
		return first;
	size /= 10;
	for (uint32_t i = 0; i < 10; i++)
		children[i] = now([=, &sums] {
			sums[i] = grow(first + i * size, size);
		});
	for (uint32_t i = 0; i < 10; i++) {
		children[i].join();
		sum += sums[i];
	}
	return sum;
}

static void skynet(void)
{
	on_two(false, [] {
		bench_begin();
		if (grow(0, 1000000) != 499999500000)
			die("wrong");
		bench_put_time("1m", "ms", NSEC_PER_MSEC);
	});
}

/* ---- sleep ---- */

static std::chrono::steady_clock::time_point at(uint64_t ns)
{
	return std::chrono::steady_clock::time_point(
		std::chrono::nanoseconds(ns));
}

static void sleep_often(void)
{
	static struct hist late;

	on_two(true, [] {
		uint64_t ns = now_ns();

		for (int i = 0; i < NR_SLEEPS; i++) {
			ns += NSEC_PER_MSEC;
			boost::this_fiber::sleep_until(at(ns));
			hist_add(&late, now_ns() - ns);
		}
	});
	bench_put_us("1ms_p50", &late, 50000);
	bench_put_us("1ms_p99", &late, 99000);
}

/* Each due 100 ms after it comes to it, or in turn, 10 us apart. */
static void sleep_all(const char *p50, const char *p99, bool in_turn)
{
	static struct hist late;

	on_two(true, [=] {
		const uint64_t first_ns = now_ns() + 300 * NSEC_PER_MSEC;
		std::vector<uint64_t> late_ns(NR_SLEEPERS);
		std::vector<bf::fiber> fibers;

		for (int i = 0; i < NR_SLEEPERS; i++)
			fibers.push_back(later([&late_ns, in_turn, first_ns,
						i] {
				uint64_t ns = in_turn ? first_ns + i * 10000 :
					now_ns() + 100 * NSEC_PER_MSEC;

				boost::this_fiber::sleep_until(at(ns));
				late_ns[i] = now_ns() - ns;
			}));
		for (auto &f : fibers)
			f.join();
		for (uint64_t ns : late_ns)
			hist_add(&late, ns);
	});
	bench_put_us(p50, &late, 50000);
	bench_put_us(p99, &late, 99000);
}

static void sleep_many(void)
{
	sleep_all("10k_p50", "10k_p99", false);
}

static void sleep_in_turn(void)
{
	sleep_all("10k_in_turn_p50", "10k_in_turn_p99", true);
}

/* ---- wake ---- */

static std::atomic<uint64_t> due_ns;
static std::atomic<uint32_t> word;
static struct hist call, run;

/* A thread of fibers that sleeps, and one that wakes a fiber of its. */
static void wake(void)
{
	bf::condition_variable cond;
	bf::mutex mutex;
	std::thread t([&] {
		bf::use_scheduling_algorithm<bf::algo::shared_work>(true);
		for (uint32_t i = 0; i < NR_WAKES; i++) {
			std::unique_lock<bf::mutex> lock(mutex);

			while (word == i)
				cond.wait(lock);
			if (i >= NR_WARM)
				hist_add(&run, now_ns() - due_ns);
		}
	});
	uint64_t ns = now_ns();

	for (int i = 0; i < NR_WAKES; i++) {
		ns += EVERY_NS;
		sleep_until(ns - SPIN_NS);
		while (now_ns() < ns)
			;
		due_ns = ns;
		mutex.lock();
		word++;
		mutex.unlock();
		uint64_t start_ns = now_ns();
		cond.notify_one();
		if (i >= NR_WARM)
			hist_add(&call, now_ns() - start_ns);
	}
	t.join();
	bench_put_us("call_p50", &call, 50000);
	bench_put_us("run_p50", &run, 50000);
	bench_put_us("run_p99", &run, 99000);
}

#define CASES(name, ...) \
	static const struct bench_case name[] = { __VA_ARGS__, { NULL, NULL } }

CASES(yields, { "2_tasks", yield_2 }, { "1000_tasks", yield_1000 });
CASES(spawns, { "join", join_each }, { "task_100k", spawn_many });
CASES(pingpongs, { "cond", pingpong });
CASES(mutexes, { "8_tasks", contended });
CASES(fibs, { "27", fib_27 });
CASES(skynets, { "1m", skynet });
CASES(sleeps, { "1ms", sleep_often }, { "10k", sleep_many },
      { "10k_in_turn", sleep_in_turn });
CASES(wakes, { "idle", wake });

int main(int argc, char **argv)
{
	static const struct bench_subject subjects[] = {
		{ "yield", yields },
		{ "spawn", spawns },
		{ "pingpong", pingpongs },
		{ "mutex", mutexes },
		{ "fib", fibs },
		{ "skynet", skynets },
		{ "sleep", sleeps },
		{ "wake", wakes },
		{ NULL, NULL },
	};

	return bench_main_of(argc, argv, subjects);
}
