/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Times and errors for C++.
 */
#ifndef PARKLOT_BASE_HPP
#define PARKLOT_BASE_HPP

#include "task.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>

namespace parklot {

/* The clock of deadlines: CLOCK_MONOTONIC. */
using clock = std::chrono::steady_clock;

/* Throws a std::system_error if @ret is a negative errno. */
inline void check(long ret)
{
	if (ret < 0)
		throw std::system_error(static_cast<int>(-ret),
					std::generic_category());
}

namespace detail {

/* ns: 0 for negative durations, PL_FOREVER for those that overflow. */
template <typename Rep, typename Period>
uint64_t nanoseconds(const std::chrono::duration<Rep, Period> &d)
{
	using wide = std::chrono::duration<long double, std::nano>;

	if (d <= d.zero())
		return 0;
	if (wide(d) >= wide(std::chrono::nanoseconds::max()))
		return PL_FOREVER;
	return static_cast<uint64_t>(std::chrono::duration_cast<
				std::chrono::nanoseconds>(d).count());
}

template <typename Duration>
uint64_t deadline(const std::chrono::time_point<clock, Duration> &at)
{
	return nanoseconds(at.time_since_epoch());
}

template <typename Rep, typename Period>
uint64_t deadline(const std::chrono::duration<Rep, Period> &d)
{
	uint64_t ns = nanoseconds(d), now = pl_now();

	return ns < PL_FOREVER - now ? now + ns : PL_FOREVER;
}

/* False: -ETIMEDOUT; throws other errors. */
inline bool in_time(int ret)
{
	if (ret == -ETIMEDOUT)
		return false;
	check(ret);
	return true;
}

template <typename T> constexpr bool fits_pointer =
	std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(void *);

/* Its bytes, in a pointer, and back. */
template <typename T> void *to_pointer(const T &value) noexcept
{
	void *p = nullptr;

	static_assert(fits_pointer<T>);
	std::memcpy(&p, std::addressof(value), sizeof(T));
	return p;
}

template <typename T> T from_pointer(void *p) noexcept
{
	alignas(T) unsigned char bytes[sizeof(T)];

	std::memcpy(bytes, &p, sizeof(T));
	return *std::launder(reinterpret_cast<T *>(bytes));
}

} /* namespace detail */

} /* namespace parklot */

#endif /* PARKLOT_BASE_HPP */
