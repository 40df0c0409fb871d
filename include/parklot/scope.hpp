/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Scopes for C++: tasks that end before the block that started them does, also
 * if that is left by an exception.
 */
#ifndef PARKLOT_SCOPE_HPP
#define PARKLOT_SCOPE_HPP

#include "base.hpp"
#include "scope.h"
#include "task.hpp"

#include <atomic>
#include <exception>
#include <memory>
#include <utility>

namespace parklot {

/*
 * A block and its children.  Its destructor cancels what leave() has not waited
 * for, and waits.
 */
class scope {
public:
	scope()
	{
		check(pl_scope_enter(&s, PL_FOREVER, 0));
	}
	/* Until a time of the clock, or for a duration. */
	template <typename When>
	explicit scope(const When &when, uint32_t flags = 0)
	{
		check(pl_scope_enter(&s, detail::deadline(when), flags));
	}
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;
	~scope()
	{
		if (!is_inside)
			return;
		pl_scope_cancel(&s, -ECANCELED);
		pl_scope_leave(&s);
	}

	/*
	 * Starts a child.  An exception that leaves it is a failure; what it
	 * returns is not looked at.
	 */
	template <typename F> void spawn(F &&f)
	{
		spawn(options(), std::forward<F>(f));
	}
	template <typename F> void spawn(const options &o, F &&f)
	{
		using C = child<std::decay_t<F>>;
		pl_spawn_opts opts = detail::spawn_opts(o);
		auto c = std::make_unique<C>(*this, std::forward<F>(f));

		check(pl_scope_spawn(&s, nullptr, C::run, c.get(), &opts));
		c.release();
	}
	/*
	 * Waits for the children, and throws what the first one threw that
	 * failed, or the error with which the scope was cancelled.
	 */
	void leave()
	{
		int ret = wait();

		if (!is_inside && first)
			std::rethrow_exception(first);
		check(ret);
	}
	void cancel(int error = ECANCELED)
	{
		check(pl_scope_cancel(&s, -error));
	}
	bool is_cancelled() noexcept
	{
		return pl_scope_error(&s) < 0;
	}

private:
	template <typename F> struct child {
		child(scope &in, F fn) : in(in), fn(std::move(fn)) {}
		static intptr_t run(void *arg) noexcept
		{
			std::unique_ptr<child> c(static_cast<child *>(arg));

			try {
				c->fn();
			} catch (const detail::exit_request &) {
			} catch (...) {
				c->in.note(std::current_exception());
				return -ECANCELED;
			}
			return 0;
		}

		scope	&in;
		F	fn;
	};

	template <typename F> friend void in_scope_of(scope &s, F &&f);

	/* A child that fails because the scope was cancelled says nothing. */
	void note(std::exception_ptr &&error) noexcept
	{
		if (!is_cancelled() && !has_first.exchange(true))
			first = std::move(error);
	}
	int wait() noexcept
	{
		int ret = pl_scope_leave(&s);

		/* Refused; or cancelled with it, then it refuses a second. */
		is_inside = ret == -EINVAL;
		return ret;
	}

	pl_scope		s = PL_SCOPE_INIT;
	bool			is_inside = true;
	std::atomic<bool>	has_first = false;
	std::exception_ptr	first;
};

template <typename F> void in_scope_of(scope &s, F &&f)
{
	try {
		std::forward<F>(f)(s);
	} catch (const detail::exit_request &) {
		/* It ends the task; the scope's destructor waits. */
		throw;
	} catch (...) {
		s.note(std::current_exception());
		pl_scope_cancel(&s.s, -ECANCELED);
	}
	s.leave();
}

/*
 * Calls the function with a scope, and leaves that: throws what the function or
 * a child threw first.
 */
template <typename F> void in_scope(F &&f)
{
	scope s;

	in_scope_of(s, std::forward<F>(f));
}

template <typename When, typename F> void in_scope(const When &when, F &&f)
{
	scope s(when);

	in_scope_of(s, std::forward<F>(f));
}

/*
 * Calls the function where cancels do not reach: to say goodbye, or roll back,
 * by a time of its own.
 */
template <typename When, typename F> void shielded(const When &when, F &&f)
{
	scope s(when, PL_SCOPE_SHIELD);

	in_scope_of(s, [&](scope &) { std::forward<F>(f)(); });
}

} /* namespace parklot */

#endif /* PARKLOT_SCOPE_HPP */
