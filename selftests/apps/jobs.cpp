// SPDX-License-Identifier: GPL-2.0-only
/*
 * A pipeline of jobs in C++, with std::regex, zlib and iostreams: the server of
 * pipeline.hpp, and clients that know what it has to answer
 *
 *	jobs [--seconds N] [--seed S]
 *
 * Clients and tasks of the stages are cancelled at random: a client leaves amid
 * a request or an answer, a stage finishes what it has; another task takes the
 * place of each.  After N seconds, or SIGTERM, the server drains.  By then each
 * job that was accepted has been answered, each answer is right, and what the
 * process has is what it had after a first, short round.
 */
#include "pipeline.hpp"

#include <csignal>
#include <functional>
#include <list>
#include <vector>

#define NR_CLIENTS	60
#define NR_SEARCHING	6
#define NR_PACKING	4
#define NR_FIRST	4	/* jobs of a client in the first round */
#define CANCEL_US	2000	/* between two cancels, at most */

namespace {

std::atomic<long> nr_sent, nr_answered, nr_left, nr_cancelled;

/* What a client asks for, and what it has to get. */
struct order {
	std::string	text, pattern;
	bool		hurries, is_bad;
	long		nr_matches = 0, sum = 0;

	explicit order(uint64_t *seed)
	{
		static const char *const names[] = { "ann", "bob", "eve" };
		const char *name = names[app_random(seed, 3)], *user;
		uint32_t i, nr = 1 + app_random(seed, 40), cost;
		std::ostringstream lines;

		for (i = 0; i < nr; i++) {
			user = names[app_random(seed, 3)];
			cost = app_random(seed, 100000);
			lines << std::setw(8) << std::setfill('0') << i
			      << " user=" << user << " cost=" << cost
			      << ".00 code=" << std::hex << cost << std::dec
			      << '\n';
			if (user == name) {
				nr_matches++;
				sum += cost;
			}
		}
		text = lines.str();
		hurries = !app_random(seed, 4);
		is_bad = !app_random(seed, 16);
		pattern = std::string("user=") + name +
			  (is_bad ? " cost=(" : R"( cost=(\d+)\.\d\d "?code=)"
			  "[[:xdigit:]]+$");
	}
};

void must(bool is_so, const char *what)
{
	if (!is_so)
		app_fail("an answer is wrong: %s", what);
}

void check_packed(std::istream &in, const order &o)
{
	std::string packed, text(o.text.size() + 1, '\0');
	uLongf text_size = text.size();
	long nr_matches, sum;
	unsigned long crc;
	size_t size;

	if (!(in >> nr_matches >> sum >> std::hex >> crc >> std::dec >> size))
		must(false, "DONE");
	in.get();
	packed.resize(size);
	in.read(packed.data(), std::streamsize(size));
	must(in.good(), "its length");
	must(nr_matches == o.nr_matches && sum == o.sum, "what was found");
	must(uncompress(reinterpret_cast<Bytef *>(text.data()), &text_size,
			reinterpret_cast<const Bytef *>(packed.data()),
			size) == Z_OK, "what was packed");
	text.resize(text_size);
	must(text == o.text, "the text");
	must(crc == crc32(0, reinterpret_cast<const Bytef *>(o.text.data()),
			  uInt(o.text.size())), "the CRC");
}

/* False: the server does not take more. */
bool order_one(std::iostream &server, uint64_t *seed)
{
	const order o(seed);
	std::string word;
	int error;

	server << "JOB " << o.hurries << ' ' << std::quoted(o.pattern) << ' '
	       << o.text.size() << '\n' << o.text << std::flush;
	must(bool(server >> word), "none came");
	if (word == "DONE") {
		must(!o.is_bad, "of a bad pattern");
		check_packed(server, o);
	} else if (word == "BAD") {
		must(o.is_bad && server >> error &&
		     error == std::regex_constants::error_paren, "BAD");
	} else {
		must(word == "CLOSED" || (word == "LATE" && o.hurries), "late");
	}
	return word != "CLOSED";
}

/* Until it is cancelled, the server drains, or @nr jobs. */
void be_client(pipeline *server, uint64_t seed, long nr)
{
	fdstream stream(server->connect());
	bool is_open = true;

	while (is_open && nr--) {
		nr_sent++;
		try {
			is_open = order_one(stream, &seed);
			nr_answered++;
		} catch (const std::system_error &) {
			nr_left++;
			throw;
		}
	}
}

/* A task, and after it was cancelled another one of the same kind. */
class place {
public:
	place(std::function<void()> fn, const parklot::options &opts) :
		fn(std::move(fn)), opts(opts)
	{
		start();
	}
	void start()
	{
		task.emplace(fn, opts);
	}
	void cancel()
	{
		task->cancel();
		nr_cancelled++;
		join(true);
	}
	/* Until its function returns, or throws that it was cancelled. */
	void join(bool is_cancelled)
	{
		if (!task->wait_for(std::chrono::nanoseconds(app_limit_ns()))) {
			pl_dump(STDERR_FILENO);
			app_fail("for too long not: the end of a task");
		}
		try {
			task->join();
		} catch (const std::system_error &e) {
			if (!is_cancelled ||
			    e.code() != std::errc::operation_canceled)
				app_fail("a task: %s", e.what());
		}
	}

private:
	std::function<void()>				fn;
	const parklot::options				opts;
	std::optional<parklot::task<std::function<void()>>> task;
};

class round {
public:
	/* @nr: jobs of a client, at most. */
	explicit round(long nr) : seed(app_seed)
	{
		uint64_t i;

		add(searching, NR_SEARCHING, "search",
		    [this] { server.search(); });
		add(packing, NR_PACKING, "pack", [this] { server.pack(); });
		for (i = 0; i < NR_CLIENTS; i++)
			add(clients, 1, "client", [this, i, nr] {
				be_client(&server, app_seed + 1000 * i +
					  uint64_t(nr_sent), nr);
			});
	}
	/* Until there is a signal: true, or @ns have passed. */
	bool cancel_at_random(const sigset_t &set, uint64_t ns)
	{
		const uint64_t end = pl_now() + ns;
		timespec pause = {};

		while (pl_now() < end) {
			pause.tv_nsec = 1000 * app_random(&seed, CANCEL_US);
			if (sigtimedwait(&set, nullptr, &pause) > 0)
				return true;
			cancel_one(app_random(&seed, 4) ? clients :
				   app_random(&seed, 2) ? searching : packing);
		}
		return false;
	}
	void drain()
	{
		server.refuse();
		join(clients);
		server.end_sessions();
		server.end_search();
		join(searching);
		server.end_pack();
		join(packing);
		check();
	}
	/* The clients have as many jobs as they want. */
	void finish()
	{
		join(clients);
		drain();
	}

private:
	using places = std::list<place>;

	template <typename F>
	void add(places &to, int nr, const char *name, F &&fn)
	{
		parklot::options opts;

		/* std::regex calls itself for each character. */
		opts.stack = PL_STACK_LARGE;
		opts.name = name;
		while (nr--)
			to.emplace_back(fn, opts);
	}
	void cancel_one(places &from)
	{
		const uint32_t nr = app_random(&seed, uint32_t(from.size()));
		auto which = std::next(from.begin(), nr);

		which->cancel();
		which->start();
	}
	static void join(places &all)
	{
		for (place &p : all)
			p.join(false);
		all.clear();
	}
	void check()
	{
		const long nr = server.nr_packed + server.nr_late +
				server.nr_bad;

		if (server.nr_accepted != nr)
			app_fail("%ld jobs were accepted, %ld answered",
				 long(server.nr_accepted), nr);
		if (nr_sent != nr_answered + nr_left)
			app_fail("%ld jobs were sent, %ld answered, %ld left",
				 long(nr_sent), long(nr_answered),
				 long(nr_left));
		if (nr_answered > nr + server.nr_refused)
			app_fail("%ld answers came of %ld", long(nr_answered),
				 nr + server.nr_refused);
		std::printf("jobs: %ld packed, %ld late, %ld bad, %ld refused; "
			    "%ld of %ld answered, %ld tasks cancelled\n",
			    long(server.nr_packed), long(server.nr_late),
			    long(server.nr_bad), long(server.nr_refused),
			    long(nr_answered), long(nr_sent),
			    long(nr_cancelled));
	}

	uint64_t	seed;
	pipeline	server;
	places		searching, packing, clients;
};

/* @seconds: 0 in the first round, which is short. */
void run_round(const sigset_t &set, uint64_t seconds)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	bool is_signal;

	nr_sent = nr_answered = nr_left = nr_cancelled = 0;
	app_must("pl_runtime_start", pl_runtime_start(&cfg));
	if (seconds) {
		round all(LONG_MAX);

		std::printf("jobs: working\n");
		is_signal = all.cancel_at_random(set, seconds * NSEC_PER_SEC);
		all.drain();
		std::printf("jobs: drained after %s\n",
			    is_signal ? "a signal" : "its time");
	} else {
		round(NR_FIRST).finish();
	}
	app_wait(app_has_no_tasks, "no tasks, timers and I/O");
	app_must("pl_runtime_stop", pl_runtime_stop());
	app_wait(app_is_alone, "the end of all threads");
}

} /* namespace */

int main(int argc, char **argv)
{
	struct usage before, after;
	uint64_t seconds = 2;
	sigset_t set;
	int i;

	app_name = "jobs";
	app_seed = uint64_t(getpid());
	setvbuf(stdout, nullptr, _IOLBF, 0);
	for (i = 1; i + 1 < argc; i += 2)
		(std::string(argv[i]) == "--seed" ? app_seed : seconds) =
			std::stoul(argv[i + 1]);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, nullptr);
	run_round(set, 0);
	before = app_usage();
	run_round(set, seconds);
	after = app_usage();
	app_compare(&before, &after);
	std::printf("jobs: seed %llu, heap %+ld KiB, resident %+ld KiB\n",
		    static_cast<unsigned long long>(app_seed),
		    (after.heap - before.heap) / 1024,
		    (after.resident - before.resident) / 1024);
	return 0;
}
