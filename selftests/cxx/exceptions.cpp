// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Exceptions in tasks: which are caught and which are thrown is the task's
 * matter, however often and wherever it waits meanwhile.
 *
 * A program by itself, or a shared object with exceptions_run():
 * scripts/test/test-cxx uses both.
 */
#include <parklot.h>

#include "expect.hpp"

#include <exception>
#include <stdexcept>
#include <string>

#define NR_TASKS	64
#define NR_ROUNDS	50

static pl_mutex mutex = PL_MUTEX_INIT;

/* The ways to wait, in turn: by a yield, a timer, a mutex, a join. */
static void wait_somehow(int way)
{
	pl_task_t t;

	switch (way % 4) {
	case 0:
		pl_yield();
		break;
	case 1:
		pl_sleep(1000);
		break;
	case 2:
		pl_mutex_lock(&mutex);
		pl_yield();
		pl_mutex_unlock(&mutex);
		break;
	default:
		if (!pl_spawn(&t, [](void *) { pl_yield(); }, nullptr, nullptr))
			pl_join(t);
	}
}

static std::string current()
{
	try {
		if (!std::current_exception())
			return "none";
		std::rethrow_exception(std::current_exception());
	} catch (const std::exception &e) {
		return e.what();
	}
}

/* Waits in its destructor, of which it knows whether it is by an exception. */
struct guard {
	const std::string	&name;
	int			nr_uncaught = std::uncaught_exceptions();
	int			nr_more;
	int			way;

	guard(const std::string &name, int nr_more, int way)
		: name(name), nr_more(nr_more), way(way) {}
	~guard()
	{
		expect(std::uncaught_exceptions() == nr_uncaught + nr_more,
		       "as many are thrown before a destructor waits");
		wait_somehow(way);
		expect(std::uncaught_exceptions() == nr_uncaught + nr_more,
		       "as many are thrown after a destructor waited");
		try {
			wait_somehow(way + 1);
			throw std::runtime_error(name + " inner");
		} catch (const std::exception &e) {
			wait_somehow(way + 2);
			expect(current() == name + " inner",
			       "one is caught in a destructor");
			expect(e.what() == name + " inner",
			       "what is caught in a destructor is one's own");
		}
		expect(std::uncaught_exceptions() == nr_uncaught + nr_more,
		       "as many are thrown after one was caught meanwhile");
	}
};

static void rethrow(const std::string &name, int way)
{
	try {
		guard g(name, 1, way);
		throw std::runtime_error(name);
	} catch (const std::exception &) {
		expect(current() == name, "one is caught before it waits");
		wait_somehow(way);
		expect(current() == name, "one is caught after it waited");
		expect(!std::uncaught_exceptions(),
		       "none is thrown in a handler");
		{
			guard g(name, 0, way);
		}
		try {
			wait_somehow(way);
			throw std::logic_error(name + " nested");
		} catch (const std::logic_error &) {
			wait_somehow(way + 1);
			expect(current() == name + " nested",
			       "one is caught in a handler");
		}
		wait_somehow(way);
		expect(current() == name, "the first is caught again");
		throw;
	}
}

static void task(void *arg)
{
	const std::string name = "task " + std::to_string((long)arg);
	int i;

	expect(current() == "none", "none is caught as a task starts");
	expect(!std::uncaught_exceptions(), "none is thrown as a task starts");
	for (i = 0; i < NR_ROUNDS; i++) {
		try {
			rethrow(name, (int)(long)arg + i);
			expect(false, "what was rethrown arrives");
		} catch (const std::exception &e) {
			expect(name == e.what(), "a task catches its own");
		}
		expect(current() == "none", "none is caught between handlers");
		wait_somehow(i);
		expect(current() == "none", "none is caught after a wait");
	}
}

/* Leaves from within a handler: what runs next here knows nothing of it. */
static void leave(void *)
{
	try {
		throw std::runtime_error("left behind");
	} catch (const std::exception &) {
		pl_exit();
	}
}

static void join_all(pl_task_t *t, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		pl_join(t[i]);
}

static void spawn_in_handler(void *)
{
	pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t;

	opts.flags = PL_SPAWN_URGENT;
	try {
		throw std::runtime_error("spawner");
	} catch (const std::exception &) {
		expect(!pl_spawn(&t, task, (void *)99L, &opts),
		       "it is spawned");
		expect(current() == "spawner", "one is caught after a spawn");
		pl_join(t);
		expect(current() == "spawner", "one is caught after a join");
	}
}

extern "C" int exceptions_run(void)
{
	pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t[NR_TASKS];
	long i;

	/* On a worker's stack run tasks of both kinds. */
	for (i = 0; i < NR_TASKS; i++) {
		opts.stack = i % 16 == 15 || i % 16 == 8 ? PL_STACK_WORKER :
							   PL_STACK_NORMAL;
		expect(!pl_spawn(&t[i], i % 4 == 3 ? leave : task, (void *)i,
				 &opts), "it is spawned");
	}
	join_all(t, NR_TASKS);
	expect(!pl_spawn(t, spawn_in_handler, nullptr, nullptr),
	       "it is spawned");
	join_all(t, 1);
	return failed();
}

#ifndef IS_PLUGIN
int main()
{
	int ret = exceptions_run();

	return pl_runtime_stop() || ret;
}
#endif
