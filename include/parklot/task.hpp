/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Tasks for C++: a task runs a function object; join() returns its result, or
 * throws its exception.
 */
#ifndef PARKLOT_TASK_HPP
#define PARKLOT_TASK_HPP

#include "base.hpp"
#include "sync.h"
#include "task.h"

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#if defined(__cpp_impl_coroutine) && defined(__has_include)
# if __has_include(<coroutine>)
#  include <coroutine>
#  define PARKLOT_HAS_COROUTINES	1
# endif
#endif

namespace parklot {

namespace detail {

/* What this_task::exit() throws. */
struct exit_request {};

/* Resumes a coroutine in the task that has ended. */
struct resumer {
	void	(*resume)(resumer *self);
};

/* The result of a function, until join() takes it. */
template <typename T> struct result {
	std::optional<T>	value;

	template <typename F> void run(F &fn)
	{
		value.emplace(fn());
	}
	T take()
	{
		if (!value)
			check(-ECANCELED);
		return std::move(*value);
	}
};

template <typename T> struct result<T &> {
	T			*value = nullptr;

	template <typename F> void run(F &fn)
	{
		value = std::addressof(fn());
	}
	T &take()
	{
		if (!value)
			check(-ECANCELED);
		return *value;
	}
};

template <> struct result<void> {
	template <typename F> void run(F &fn)
	{
		fn();
	}
	void take() {}
};

} /* namespace detail */

namespace this_task {

inline pl_task_t get_id() noexcept
{
	return pl_self();
}

inline bool is_cancelled() noexcept
{
	return pl_cancelled();
}

inline void yield() noexcept
{
	pl_yield();
}

/* Until a time of the clock, or for a duration. */
template <typename When> void sleep_until(const When &when)
{
	check(pl_sleep_until(detail::deadline(when)));
}

template <typename When> void sleep_for(const When &when)
{
	sleep_until(when);
}

/* Ends a task of this header: its frames are unwound, unlike by pl_exit(). */
[[noreturn]] inline void exit()
{
	throw detail::exit_request();
}

} /* namespace this_task */

/* The options of pl_spawn(). */
struct options {
	enum pl_stack	stack = PL_STACK_NORMAL;
	uint32_t	flags = 0;
	const char	*name = nullptr;
	size_t		stack_size = 0;
	/* with PL_SPAWN_WAIT */
	clock::time_point deadline = clock::time_point::max();
	/* of pl_group_create(); 0: the caller's */
	pl_group_t	group = 0;
};

namespace detail {

inline pl_spawn_opts spawn_opts(const options &o)
{
	pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.stack = o.stack;
	opts.flags = o.flags;
	opts.name = o.name;
	opts.stack_size = o.stack_size;
	opts.deadline_ns = deadline(o.deadline);
	if (!opts.deadline_ns)
		opts.deadline_ns = 1;	/* 0 stands for none */
	opts.group = o.group;
	return opts;
}

inline void spawn(pl_task_t *id, void (*fn)(void *arg), void *arg,
		  const options &o)
{
	pl_spawn_opts opts = spawn_opts(o);

	check(pl_spawn(id, fn, arg, &opts));
}

} /* namespace detail */

/*
 * Runs a function in a task.  The object keeps the function and its result or
 * exception, so its destructor cancels the task and waits for its end, unless a
 * call has waited before; that wait is no point of cancellation.
 */
template <typename F> class task {
public:
	using result_type = std::invoke_result_t<F &>;

	explicit task(F f, const options &o = options()) : fn(std::move(f))
	{
		pl_mutex_trylock(&running);
		detail::spawn(&id, run, this, o);
	}
	task(const task &) = delete;
	task &operator=(const task &) = delete;
	~task()
	{
		if (!is_done())
			pl_cancel(id);
		pl_mutex_lock(&running);
	}

	/* Waits for its end; returns its result, or throws its exception. */
	result_type join()
	{
		wait();
		return fetch();
	}
	void wait()
	{
		wait_ns(PL_FOREVER);
	}
	/* False: the task did not end in time. */
	template <typename When> bool wait_until(const When &when)
	{
		return wait_ns(detail::deadline(when));
	}
	template <typename When> bool wait_for(const When &when)
	{
		return wait_until(when);
	}
	bool is_done() const noexcept
	{
		return next.load(std::memory_order_acquire) == done();
	}
	void cancel() noexcept
	{
		pl_cancel(id);
	}
	void interrupt() noexcept
	{
		pl_interrupt(id);
	}
	pl_task_t get_id() const noexcept
	{
		return id;
	}

#ifdef PARKLOT_HAS_COROUTINES
	struct awaiter : detail::resumer {
		explicit awaiter(task &t) : t(t) {}
		bool await_ready() const noexcept
		{
			return t.is_done();
		}
		/* False: the task has just ended. */
		bool await_suspend(std::coroutine_handle<> h) noexcept
		{
			detail::resumer *none = nullptr;

			coroutine = h;
			this->resume = [](detail::resumer *self) {
				static_cast<awaiter *>(self)->
					coroutine.resume();
			};
			return t.next.compare_exchange_strong(none, this);
		}
		result_type await_resume()
		{
			/* The task may not have unlocked it yet. */
			pl_mutex_lock(&t.running);
			pl_mutex_unlock(&t.running);
			return t.fetch();
		}

	private:
		task			&t;
		std::coroutine_handle<>	coroutine;
	};

	/* For one coroutine, which resumes in the task that has ended. */
	awaiter operator co_await() noexcept
	{
		return awaiter(*this);
	}
#endif

private:
	/* The value of "next" that means: the task has ended. */
	detail::resumer *done() const noexcept
	{
		return reinterpret_cast<detail::resumer *>(
						const_cast<task *>(this));
	}
	static void run(void *arg) noexcept
	{
		static_cast<task *>(arg)->run_here();
	}
	void run_here() noexcept
	{
		detail::resumer *waiting;

		try {
			value.run(fn);
		} catch (const detail::exit_request &) {
		} catch (...) {
			error = std::current_exception();
		}
		waiting = next.exchange(done());
		/* From here on the object may be destroyed. */
		pl_mutex_unlock(&running);
		if (waiting)
			waiting->resume(waiting);
	}
	bool wait_ns(uint64_t deadline_ns)
	{
		if (!detail::in_time(pl_mutex_lock_until(&running,
							 deadline_ns)))
			return false;
		pl_mutex_unlock(&running);
		return true;
	}
	result_type fetch()
	{
		if (error)
			std::rethrow_exception(error);
		return value.take();
	}

	F				fn;
	detail::result<result_type>	value;
	std::exception_ptr		error;
	pl_mutex			running = PL_MUTEX_INIT;
	std::atomic<detail::resumer *>	next = nullptr;
	pl_task_t			id = 0;
};

/* auto t = parklot::spawn([] { return 42; }); */
template <typename F> task<std::decay_t<F>> spawn(F &&f)
{
	return task<std::decay_t<F>>(std::forward<F>(f));
}

template <typename F>
task<std::decay_t<F>> spawn(const options &o, F &&f)
{
	return task<std::decay_t<F>>(std::forward<F>(f), o);
}

namespace detail {

template <typename F> void run_and_exit(F &fn) noexcept
{
	try {
		fn();
	} catch (const exit_request &) {
	}
}

} /* namespace detail */

/*
 * A task without a waiter; an exception in it calls std::terminate().  A
 * function that is larger than a pointer is allocated.
 */
template <typename F>
pl_task_t detach(F &&f, const options &o = options())
{
	using G = std::decay_t<F>;
	pl_task_t id;

	if constexpr (detail::fits_pointer<G>) {
		detail::spawn(&id, [](void *arg) {
			G fn = detail::from_pointer<G>(arg);

			detail::run_and_exit(fn);
		}, detail::to_pointer<G>(f), o);
	} else {
		auto fn = std::make_unique<G>(std::forward<F>(f));

		detail::spawn(&id, [](void *arg) {
			std::unique_ptr<G> fn(static_cast<G *>(arg));

			detail::run_and_exit(*fn);
		}, fn.get(), o);
		fn.release();
	}
	return id;
}

} /* namespace parklot */

#endif /* PARKLOT_TASK_HPP */
