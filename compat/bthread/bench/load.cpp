// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A server of bRPC's that echoes, and its load: a closed loop of tasks
 *
 *	load -port 0
 *	load -server ADDRESS -tasks 64 -bytes 64 -seconds 5 -blocking 10
 *
 * The second prints one line: requests a second, p50 and p99 in us of those
 * that neither block nor compute, CPU time of the server for each request in
 * us, and errors.
 */
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <vector>

#include <brpc/channel.h>
#include <brpc/server.h>
#include <bthread/bthread.h>
#include <butil/time.h>
#include <gflags/gflags.h>

#include "load.pb.h"

DEFINE_int32(port, -1, "serve at this port; 0: at any");
DEFINE_string(server, "", "load the server at this address");
DEFINE_int32(tasks, 64, "so many call at a time");
DEFINE_int32(bytes, 64, "in a request, and in its answer");
DEFINE_double(seconds, 5, "measured, after a fifth of that to get going");
DEFINE_int32(blocking, 0, "percent of the requests block for 20 ms");
DEFINE_int32(computing, 0, "percent of the requests compute for 10 ms");
DEFINE_string(protocol, "baidu_std", "baidu_std or http");
DEFINE_string(connection_type, "", "single, pooled or short; else the protocol's");

static const int BLOCK_US = 20000;
static const int COMPUTE_US = 10000;

/* Of processor time: as much work, however many others run. */
static int64_t cpu_us()
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

class Echoes : public load::Load {
	typedef google::protobuf::RpcController Controller;
	typedef google::protobuf::Closure Closure;

	void Echo(Controller *, const load::Call *in, load::Call *out,
		  Closure *done) override
	{
		brpc::ClosureGuard guard(done);

		if (in->blocks())
			usleep(BLOCK_US);
		if (in->computes())
			for (const int64_t from = cpu_us();
			     cpu_us() < from + COMPUTE_US;)
				;
		out->set_data(in->data());
	}

	void Usage(Controller *, const load::Call *, load::Used *out,
		   Closure *done) override
	{
		brpc::ClosureGuard guard(done);
		struct rusage u;

		getrusage(RUSAGE_SELF, &u);
		out->set_cpu_us((u.ru_utime.tv_sec + u.ru_stime.tv_sec) *
				1000000 + u.ru_utime.tv_usec +
				u.ru_stime.tv_usec);
	}
};

static int serve()
{
	brpc::ServerOptions options;
	brpc::Server server;
	Echoes echoes;

	if (server.AddService(&echoes, brpc::SERVER_DOESNT_OWN_SERVICE) ||
	    server.Start(FLAGS_port, &options))
		return 1;
	server.RunUntilAskedToQuit();
	return 0;
}

/* Of one task; @us only of calls that neither block nor compute. */
struct Caller {
	std::vector<int64_t> us;
	int64_t nr = 0;
	int64_t nr_errors = 0;
	int nth = 0;
};

static load::Load_Stub *stub;
static std::atomic<bool> is_measured, is_over;

static void *call_on(void *p)
{
	Caller *c = (Caller *)p;
	load::Call in;

	in.set_data(std::string(FLAGS_bytes, 'x'));
	/* Spread: not all of them block, or compute, at a time. */
	for (int64_t i = c->nth * 37; !is_over.load(); i++) {
		const bool blocks = i % 100 < FLAGS_blocking;
		const bool computes = i % 100 >= 100 - FLAGS_computing;
		const int64_t begin = butil::cpuwide_time_us();
		brpc::Controller control;
		load::Call out;

		in.set_blocks(blocks);
		in.set_computes(computes);
		stub->Echo(&control, &in, &out, nullptr);
		if (control.Failed() || out.data().size() != in.data().size())
			c->nr_errors++;
		if (!is_measured.load())
			continue;
		c->nr++;
		if (!blocks && !computes)
			c->us.push_back(butil::cpuwide_time_us() - begin);
	}
	return nullptr;
}

static int64_t server_cpu_us()
{
	brpc::Controller control;
	load::Call in;
	load::Used out;

	stub->Usage(&control, &in, &out, nullptr);
	return control.Failed() ? -1 : out.cpu_us();
}

static void report(std::vector<Caller> &callers, double seconds, int64_t cpu_us)
{
	std::vector<int64_t> us;
	int64_t nr = 0, nr_errors = 0;

	for (Caller &c : callers) {
		us.insert(us.end(), c.us.begin(), c.us.end());
		nr += c.nr;
		nr_errors += c.nr_errors;
	}
	us.push_back(0);
	std::sort(us.begin(), us.end());
	printf("%.0f\t%ld\t%ld\t%.2f\t%ld\n", nr / seconds,
	       (long)us[us.size() / 2], (long)us[us.size() * 99 / 100],
	       nr ? (double)cpu_us / nr : 0.0, (long)nr_errors);
}

static int load_it()
{
	std::vector<Caller> callers(FLAGS_tasks);
	std::vector<bthread_t> tasks(FLAGS_tasks);
	brpc::ChannelOptions options;
	brpc::Channel channel;
	int64_t cpu_us, begin;
	double seconds;

	options.timeout_ms = 10000;
	options.max_retry = 0;
	options.protocol = FLAGS_protocol;
	options.connection_type = FLAGS_connection_type;
	if (channel.Init(FLAGS_server.c_str(), &options))
		return 1;
	stub = new load::Load_Stub(&channel);
	for (int i = 0; i < FLAGS_tasks; i++) {
		callers[i].nth = i;
		if (bthread_start_background(&tasks[i], nullptr, call_on,
					     &callers[i]))
			return 1;
	}
	usleep(FLAGS_seconds * 200000);
	cpu_us = server_cpu_us();
	begin = butil::cpuwide_time_us();
	is_measured = true;
	usleep(FLAGS_seconds * 1000000);
	is_measured = false;
	seconds = (butil::cpuwide_time_us() - begin) / 1e6;
	cpu_us = server_cpu_us() - cpu_us;
	is_over = true;
	for (bthread_t t : tasks)
		bthread_join(t, nullptr);
	report(callers, seconds, cpu_us);
	return 0;
}

int main(int argc, char **argv)
{
	gflags::ParseCommandLineFlags(&argc, &argv, true);
	if (FLAGS_port >= 0)
		return serve();
	if (!FLAGS_server.empty())
		return load_it();
	fprintf(stderr, "usage: load -port PORT | -server ADDRESS ...; --help\n");
	return 1;
}
