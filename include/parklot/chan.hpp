/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Channels for C++.
 */
#ifndef PARKLOT_CHAN_HPP
#define PARKLOT_CHAN_HPP

#include "base.hpp"
#include "chan.h"

#include <memory>
#include <optional>
#include <utility>

namespace parklot {

namespace detail {

/* An item as a pointer. */
template <typename T> struct item {
	static_assert(fits_pointer<T>,
		      "an item larger than a pointer: send a std::unique_ptr");

	static void *put(T &&value) noexcept
	{
		return to_pointer(value);
	}
	static T get(void *p) noexcept
	{
		return from_pointer<T>(p);
	}
};

template <typename T> struct item<std::unique_ptr<T>> {
	static void *put(std::unique_ptr<T> &&value) noexcept
	{
		return const_cast<std::remove_const_t<T> *>(value.release());
	}
	static std::unique_ptr<T> get(void *p) noexcept
	{
		return std::unique_ptr<T>(static_cast<T *>(p));
	}
};

} /* namespace detail */

/* A channel of objects that fit into a pointer, or of std::unique_ptr. */
template <typename T> class channel {
public:
	explicit channel(size_t capacity = 0)
	{
		check(pl_chan_create(&ch, capacity));
	}
	channel(const channel &) = delete;
	channel &operator=(const channel &) = delete;
	/* The program does not use the channel any more. */
	~channel()
	{
		close();
		while (try_recv())
			;
		pl_chan_destroy(ch);
	}

	/* False: the channel is closed. */
	bool send(T value)
	{
		return send_ns(std::move(value), PL_FOREVER);
	}
	/* As send(); throws -ETIMEDOUT. */
	template <typename When> bool send_until(T value, const When &when)
	{
		return send_ns(std::move(value), detail::deadline(when));
	}
	/* False: the channel has no room, or is closed. */
	bool try_send(T value)
	{
		return send_with(std::move(value), [this](void *p) {
			return pl_chan_trysend(ch, p);
		});
	}
	/* std::nullopt: the channel is closed and empty. */
	std::optional<T> recv()
	{
		return recv_ns(PL_FOREVER);
	}
	template <typename When> std::optional<T> recv_until(const When &when)
	{
		return recv_ns(detail::deadline(when));
	}
	/* std::nullopt: there is no item now. */
	std::optional<T> try_recv()
	{
		void *p = nullptr;
		int ret = pl_chan_tryrecv(ch, &p);

		return received(ret, p);
	}
	void close() noexcept
	{
		pl_chan_close(ch);
	}
	pl_chan *native_handle() noexcept
	{
		return ch;
	}

private:
	template <typename Send> bool send_with(T &&value, Send send)
	{
		void *p = detail::item<T>::put(std::move(value));
		int ret = send(p);

		if (!ret)
			return true;
		/* The item is the caller's again. */
		(void)detail::item<T>::get(p);
		if (ret != -EPIPE && ret != -EAGAIN)
			check(ret);
		return false;
	}
	bool send_ns(T &&value, uint64_t deadline_ns)
	{
		auto send = [this, deadline_ns](void *p) {
			return pl_chan_send_until(ch, p, deadline_ns);
		};

		return send_with(std::move(value), send);
	}
	std::optional<T> recv_ns(uint64_t deadline_ns)
	{
		void *p = nullptr;
		int ret = pl_chan_recv_until(ch, &p, deadline_ns);

		return received(ret, p);
	}
	static std::optional<T> received(int ret, void *p)
	{
		if (!ret)
			return detail::item<T>::get(p);
		if (ret != -EPIPE && ret != -EAGAIN)
			check(ret);
		return std::nullopt;
	}

	pl_chan	*ch = nullptr;
};

} /* namespace parklot */

#endif /* PARKLOT_CHAN_HPP */
