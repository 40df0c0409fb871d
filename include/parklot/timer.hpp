/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Timers for C++.
 */
#ifndef PARKLOT_TIMER_HPP
#define PARKLOT_TIMER_HPP

#include "base.hpp"
#include "sync.h"
#include "timer.h"

#include <utility>

namespace parklot {

/*
 * Calls a function on the timer thread at a time, or after a while, unless it
 * is destroyed before; its destructor waits while that runs.  The function must
 * be short, and must not block, throw or destroy the timer.
 */
template <typename F> class timer {
public:
	template <typename When>
	timer(const When &when, F f) : fn(std::move(f))
	{
		pl_mutex_trylock(&running);
		check(pl_timer_add(&id, detail::deadline(when), run, this));
	}
	timer(const timer &) = delete;
	timer &operator=(const timer &) = delete;
	~timer()
	{
		if (pl_timer_del(id) == -EBUSY)
			pl_mutex_lock(&running);
	}

	/* True: the function will not run. */
	bool cancel() noexcept
	{
		return !pl_timer_del(id);
	}

private:
	static void run(void *arg) noexcept
	{
		timer *t = static_cast<timer *>(arg);

		t->fn();
		pl_mutex_unlock(&t->running);
	}

	F		fn;
	pl_mutex	running = PL_MUTEX_INIT;
	pl_timer_t	id = 0;
};

template <typename When, typename F> timer(const When &, F) -> timer<F>;

} /* namespace parklot */

#endif /* PARKLOT_TIMER_HPP */
