/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A socket as a std::iostream: what waits is the task.  An error is the
 * std::system_error of parklot::check(), also the one of a cancelled task.
 */
#ifndef SELFTESTS_APPS_FDSTREAM_HPP
#define SELFTESTS_APPS_FDSTREAM_HPP

#include <array>
#include <iostream>
#include <parklot.hpp>
#include <streambuf>

class fdbuf : public std::streambuf {
public:
	explicit fdbuf(int fd) : fd(fd)
	{
		setp(out.data(), out.data() + out.size());
	}
	fdbuf(const fdbuf &) = delete;
	fdbuf &operator=(const fdbuf &) = delete;
	~fdbuf() override
	{
		pl_close(fd);
	}

protected:
	int_type underflow() override
	{
		const ssize_t n = pl_recv(fd, in.data(), in.size(), 0);

		parklot::check(n);
		setg(in.data(), in.data(), in.data() + n);
		return n ? traits_type::to_int_type(*gptr()) :
			   traits_type::eof();
	}
	int_type overflow(int_type c) override
	{
		sync();
		if (traits_type::eq_int_type(c, traits_type::eof()))
			return traits_type::not_eof(c);
		return sputc(traits_type::to_char_type(c));
	}
	int sync() override
	{
		const char *at = pbase();

		while (at < pptr()) {
			const ssize_t n = pl_send(fd, at, size_t(pptr() - at),
						  0);

			parklot::check(n);
			at += n;
		}
		setp(out.data(), out.data() + out.size());
		return 0;
	}

private:
	const int		fd;
	std::array<char, 1024>	in, out;
};

/* Has the descriptor, and throws what its buffer throws. */
class fdstream : private fdbuf, public std::iostream {
public:
	explicit fdstream(int fd) : fdbuf(fd), std::iostream(this)
	{
		exceptions(std::ios::badbit);
	}
};

#endif /* SELFTESTS_APPS_FDSTREAM_HPP */
