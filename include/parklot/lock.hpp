/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Mutex, readers and writers, condition variable for C++.
 */
#ifndef PARKLOT_LOCK_HPP
#define PARKLOT_LOCK_HPP

#include "base.hpp"
#include "sync.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace parklot {

/* For std::lock_guard, std::unique_lock and std::scoped_lock. */
class mutex {
public:
	constexpr mutex() noexcept = default;
	mutex(const mutex &) = delete;
	mutex &operator=(const mutex &) = delete;

	/* Not a point of cancellation. */
	void lock() noexcept
	{
		pl_mutex_lock(&m);
	}
	bool try_lock() noexcept
	{
		return !pl_mutex_trylock(&m);
	}
	/* A point of cancellation, by a time or for a while. */
	template <typename When> bool try_lock_until(const When &when)
	{
		return detail::in_time(pl_mutex_lock_until(&m,
						detail::deadline(when)));
	}
	template <typename When> bool try_lock_for(const When &when)
	{
		return try_lock_until(when);
	}
	void unlock() noexcept
	{
		pl_mutex_unlock(&m);
	}
	pl_mutex *native_handle() noexcept
	{
		return &m;
	}

private:
	pl_mutex m = PL_MUTEX_INIT;
};

/* For std::shared_lock, too. */
class shared_mutex {
public:
	constexpr shared_mutex() noexcept = default;
	shared_mutex(const shared_mutex &) = delete;
	shared_mutex &operator=(const shared_mutex &) = delete;

	void lock() noexcept
	{
		pl_rwlock_wrlock(&l);
	}
	bool try_lock() noexcept
	{
		return !pl_rwlock_trywrlock(&l);
	}
	void unlock() noexcept
	{
		pl_rwlock_wrunlock(&l);
	}
	void lock_shared() noexcept
	{
		pl_rwlock_rdlock(&l);
	}
	bool try_lock_shared() noexcept
	{
		return !pl_rwlock_tryrdlock(&l);
	}
	void unlock_shared() noexcept
	{
		pl_rwlock_rdunlock(&l);
	}
	pl_rwlock *native_handle() noexcept
	{
		return &l;
	}

private:
	pl_rwlock l = PL_RWLOCK_INIT;
};

/* Waits are points of cancellation; they throw with the mutex locked. */
class condition_variable {
public:
	constexpr condition_variable() noexcept = default;
	condition_variable(const condition_variable &) = delete;
	condition_variable &operator=(const condition_variable &) = delete;

	void notify_one() noexcept
	{
		pl_cond_signal(&c);
	}
	void notify_all() noexcept
	{
		pl_cond_broadcast(&c);
	}
	void wait(std::unique_lock<mutex> &lock)
	{
		check(pl_cond_wait(&c, lock.mutex()->native_handle()));
	}
	template <typename Predicate>
	void wait(std::unique_lock<mutex> &lock, Predicate is_so)
	{
		while (!is_so())
			wait(lock);
	}
	template <typename When>
	std::cv_status wait_until(std::unique_lock<mutex> &lock,
				  const When &when)
	{
		return wait_ns(lock, detail::deadline(when)) ?
		       std::cv_status::no_timeout : std::cv_status::timeout;
	}
	template <typename When, typename Predicate>
	bool wait_until(std::unique_lock<mutex> &lock, const When &when,
			Predicate is_so)
	{
		const uint64_t deadline_ns = detail::deadline(when);

		while (!is_so())
			if (!wait_ns(lock, deadline_ns))
				return is_so();
		return true;
	}
	template <typename When>
	std::cv_status wait_for(std::unique_lock<mutex> &lock,
				const When &when)
	{
		return wait_until(lock, when);
	}
	template <typename When, typename Predicate>
	bool wait_for(std::unique_lock<mutex> &lock, const When &when,
		      Predicate is_so)
	{
		return wait_until(lock, when, std::move(is_so));
	}
	pl_cond *native_handle() noexcept
	{
		return &c;
	}

private:
	bool wait_ns(std::unique_lock<mutex> &lock, uint64_t deadline_ns)
	{
		return detail::in_time(pl_cond_wait_until(&c,
				lock.mutex()->native_handle(), deadline_ns));
	}

	pl_cond c = PL_COND_INIT;
};

} /* namespace parklot */

#endif /* PARKLOT_LOCK_HPP */
