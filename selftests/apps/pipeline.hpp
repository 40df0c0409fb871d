/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server of jobs.cpp: sessions read jobs from streams, a stage of tasks
 * searches their texts by std::regex, the next one packs them by zlib, and the
 * session answers
 *
 *	JOB HURRIES "PATTERN" LENGTH\nTEXT
 *	DONE MATCHES SUM CRC LENGTH\nPACKED | LATE\n | BAD CODE\n | CLOSED\n
 *
 * SUM is that of the numbers in the pattern's first group.  A job that hurries
 * is late after a while; the others are done however long that takes.  A job is
 * in its session's frame, which waits until the stages do not have it any more.
 *
 * To drain is to refuse jobs, to finish those that were accepted, and to end
 * stage by stage.  A task of a stage may be cancelled at any time: it finishes
 * the job that it has, and ends.
 */
#ifndef SELFTESTS_APPS_PIPELINE_HPP
#define SELFTESTS_APPS_PIPELINE_HPP

#include "fdstream.hpp"
#include "process.h"

#include <functional>
#include <iomanip>
#include <optional>
#include <regex>
#include <sstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <zlib.h>

constexpr auto WHILE_HURRYING = std::chrono::milliseconds(5);
constexpr int NO_ERROR = -1;

struct job {
	std::string		pattern, text;
	long			nr_matches = 0, sum = 0;
	std::string		packed;
	unsigned long		crc = 0;
	int			error = NO_ERROR;	/* std::regex_error's */
	std::atomic<bool>	is_late = false;
	parklot::mutex		mutex;
	parklot::condition_variable finished;
	bool			is_finished = false;	/* mutex */

	/* False: not while it hurries. */
	bool wait(bool hurries)
	{
		std::unique_lock lock(mutex);
		auto is_so = [this] { return is_finished; };

		if (!hurries || finished.wait_for(lock, WHILE_HURRYING, is_so))
			return finished.wait(lock, is_so), true;
		is_late = true;
		finished.wait(lock, is_so);
		return false;
	}
	/* The last thing that a stage does with it. */
	void finish()
	{
		std::lock_guard lock(mutex);

		is_finished = true;
		finished.notify_one();
	}
	void search();
	void pack();
};

/* Gives way between lines: it goes on in another thread, perhaps. */
inline void job::search()
{
	try {
		const std::regex regex(pattern);
		std::istringstream lines(text);
		std::smatch match;

		for (std::string line; std::getline(lines, line);) {
			if (std::regex_search(line, match, regex)) {
				nr_matches++;
				sum += std::stol(match[1]);
			}
			parklot::this_task::yield();
		}
	} catch (const std::regex_error &e) {
		/* Others throw and catch meanwhile. */
		parklot::this_task::sleep_for(std::chrono::microseconds(100));
		error = e.code();
	}
}

inline void job::pack()
{
	constexpr size_t PIECE = 512;
	z_stream z = {};
	size_t at = 0, n;

	if (deflateInit(&z, Z_BEST_SPEED) != Z_OK)
		app_fail("deflateInit: %s", z.msg);
	packed.resize(deflateBound(&z, text.size()));
	z.next_out = reinterpret_cast<Bytef *>(packed.data());
	z.avail_out = uInt(packed.size());
	do {
		n = std::min(PIECE, text.size() - at);
		z.next_in = reinterpret_cast<Bytef *>(text.data()) + at;
		z.avail_in = uInt(n);
		crc = crc32(crc, z.next_in, z.avail_in);
		at += n;
		if (deflate(&z, at < text.size() ? Z_NO_FLUSH : Z_FINISH) < 0)
			app_fail("deflate: %s", z.msg);
		parklot::this_task::yield();
	} while (at < text.size());
	packed.resize(z.total_out);
	deflateEnd(&z);
}

class pipeline {
public:
	std::atomic<long> nr_accepted = 0, nr_packed = 0, nr_late = 0,
			  nr_bad = 0, nr_refused = 0;

	pipeline()
	{
		sockaddr_un any = {};

		/* Nowhere in the file system: the kernel finds a name. */
		any.sun_family = AF_UNIX;
		listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (listener < 0 ||
		    bind(listener, reinterpret_cast<sockaddr *>(&any),
			 sizeof(any.sun_family)) ||
		    listen(listener, SOMAXCONN) ||
		    getsockname(listener, reinterpret_cast<sockaddr *>(&addr),
				&addr_len))
			app_fail("listen: %s", strerror(errno));
		acceptor.emplace([this] { accept(); });
	}

	int connect()
	{
		const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int err;

		if (fd < 0)
			app_fail("socket: %s", strerror(errno));
		err = pl_connect(fd, reinterpret_cast<sockaddr *>(&addr),
				 addr_len);
		if (err)
			pl_close(fd);
		parklot::check(err);
		return fd;
	}

	/* A task of the first stage, until it is cancelled or that closes. */
	void search()
	{
		while (auto j = to_search.recv())
			finish([&, j = *j] {
				if (!j->is_late)
					j->search();
				to_pack.send(j);
			});
	}
	/* One of the second stage. */
	void pack()
	{
		while (auto j = to_pack.recv())
			finish([&, j = *j] {
				if (!j->is_late && j->error == NO_ERROR)
					j->pack();
				j->finish();
			});
	}

	void refuse()
	{
		is_draining = true;
	}
	/* Clients have gone, and their connections were all taken. */
	void end_sessions()
	{
		pl_close(listener);
		acceptor->join();
		std::unique_lock lock(mutex);

		session_ended.wait(lock, [this] { return !nr_sessions; });
	}
	void end_search()
	{
		to_search.close();
	}
	void end_pack()
	{
		to_pack.close();
	}

private:
	/* Where a cancel does not reach. */
	template <typename F> static void finish(F &&f)
	{
		parklot::shielded(parklot::clock::time_point::max(),
				  std::forward<F>(f));
	}

	void accept()
	{
		int fd;

		while ((fd = pl_accept(listener, nullptr, nullptr,
				       SOCK_CLOEXEC)) >= 0) {
			{
				std::lock_guard lock(mutex);

				nr_sessions++;
			}
			parklot::detach([this, fd] { serve(fd); });
		}
		if (fd != -EBADF)
			app_fail("accept: %s", strerror(-fd));
	}

	void serve(int fd)
	{
		try {
			fdstream peer(fd);

			while (serve_one(peer))
				;
		} catch (const std::system_error &e) {
			if (e.code() != std::errc::broken_pipe &&
			    e.code() != std::errc::connection_reset)
				app_fail("a session: %s", e.what());
		}
		std::lock_guard lock(mutex);

		nr_sessions--;
		session_ended.notify_one();
	}

	/* False: the peer has gone. */
	bool serve_one(std::iostream &peer)
	{
		bool hurries, is_in_time;
		std::string word;
		size_t size;
		job j;

		if (!(peer >> word >> hurries >> std::quoted(j.pattern) >>
		      size) || word != "JOB")
			return false;
		peer.get();
		j.text.resize(size);
		if (!peer.read(j.text.data(), std::streamsize(size)))
			return false;
		if (is_draining) {
			nr_refused++;
			peer << "CLOSED" << std::endl;
			return true;
		}
		nr_accepted++;
		to_search.send(&j);
		is_in_time = j.wait(hurries);
		answer(peer, j, is_in_time);
		return true;
	}

	void answer(std::ostream &peer, const job &j, bool is_in_time)
	{
		if (!is_in_time) {
			nr_late++;
			peer << "LATE" << std::endl;
		} else if (j.error != NO_ERROR) {
			nr_bad++;
			peer << "BAD " << j.error << std::endl;
		} else {
			nr_packed++;
			peer << "DONE " << j.nr_matches << ' ' << j.sum << ' '
			     << std::hex << j.crc << std::dec << ' '
			     << j.packed.size() << '\n' << j.packed
			     << std::flush;
		}
	}

	sockaddr_un			addr = {};
	socklen_t			addr_len = sizeof(addr);
	int				listener;
	std::atomic<bool>		is_draining = false;
	parklot::mutex			mutex;
	parklot::condition_variable	session_ended;
	long				nr_sessions = 0;	/* mutex */
	parklot::channel<job *>		to_search{8}, to_pack{8};
	std::optional<parklot::task<std::function<void()>>> acceptor;
};

#endif /* SELFTESTS_APPS_PIPELINE_HPP */
