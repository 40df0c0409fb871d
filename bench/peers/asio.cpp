// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A TCP echo server as Boost.Asio's examples have it: two threads, each with
 * an io_context of its own, connections given to them in turn; a session
 * lives as long as one of its handlers does
 */
#include <boost/asio.hpp>

#include <array>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>

#include "../lib/util.h"

using boost::asio::ip::tcp;
using boost::system::error_code;

class session : public std::enable_shared_from_this<session> {
public:
	explicit session(tcp::socket s) : socket(std::move(s)) { }

	void receive()
	{
		auto self = shared_from_this();

		socket.async_read_some(boost::asio::buffer(data),
				       [self](error_code error, std::size_t n) {
			if (!error)
				self->send(n);
		});
	}

private:
	void send(std::size_t n)
	{
		auto self = shared_from_this();

		boost::asio::async_write(socket, boost::asio::buffer(data, n),
					 [self](error_code error, std::size_t) {
			if (!error)
				self->receive();
		});
	}

	tcp::socket socket;
	std::array<char, 4096> data;
};

/* One thread runs it, so that it may do without locks. */
struct context {
	boost::asio::io_context io{1};
	boost::asio::executor_work_guard<boost::asio::io_context::executor_type>
		work{io.get_executor()};
};

class server {
public:
	server(std::array<context, 2> &all)
		: contexts(all), acceptor(all[0].io,
			tcp::endpoint(boost::asio::ip::address_v4::loopback(),
				      0))
	{
		std::cout << "listening on " << acceptor.local_endpoint()
			  << std::endl;
		accept();
	}

private:
	/* A session belongs to the context of its socket from the beginning. */
	void accept()
	{
		next = (next + 1) % contexts.size();
		acceptor.async_accept(contexts[next].io,
				      [this](error_code error, tcp::socket s) {
			if (error)
				die("accept: %s", error.message().c_str());
			s.set_option(tcp::no_delay(true), error);
			auto made = std::make_shared<session>(std::move(s));
			boost::asio::post(contexts[next].io,
					  [made] { made->receive(); });
			accept();
		});
	}

	std::array<context, 2> &contexts;
	tcp::acceptor acceptor;
	std::size_t next = 0;
};

int main()
{
	std::array<context, 2> contexts;

	raise_limit();
	server all(contexts);
	std::thread other([&] { contexts[1].io.run(); });
	contexts[0].io.run();
	other.join();
}
