// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A load for echo servers: many connections on few threads, by epoll
 *
 * The loop is closed: each connection has one request on its way and sends the
 * next as soon as the last byte of the answer has arrived. The latency of a
 * request is counted from just before its first send() to just after the last
 * recv(). A server that halts is sent nothing meanwhile, so these latencies
 * are those of so many clients that wait for each other's turn, not those of
 * requests that arrive at a rate of their own.
 *
 * Every byte is checked. What is sent differs from connection to connection
 * and from request to request, so that an answer to somebody else, or an old
 * one, is a wrong one. What goes wrong ends its connection, is counted, and
 * fails the run.
 *
 * Nothing here is parklot's: it may drive any server that echoes.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cost.h"
#include "hist.h"
#include "progress.h"
#include "util.h"

#define TICK_MS		100	/* how often a thread looks at the clock */
#define MAX_TOLD	10U	/* failures described; the rest is counted */

enum failure {
	WRONG,		/* a byte that is not the one sent */
	SURPLUS,	/* more bytes than were sent */
	SHORT,		/* the end before the whole answer */
	RESET,		/* an error of send() or recv() */
	REFUSED,	/* an error of connect() */
	STALLED,	/* no byte for as long as --stall says */
	NR_FAILURES
};

static const char *const failure_name[NR_FAILURES] = {
	"wrong", "surplus", "short", "reset", "refused", "stalled",
};

struct options {
	unsigned int nr_conns;
	unsigned int nr_threads;
	unsigned int size;
	double seconds;
	double stall;
	struct sockaddr_in addr;
	pid_t pid;
	bool calls;
	bool bins;
};

struct conn {
	int fd;			/* -1: closed */
	unsigned int id;
	bool wants_out;		/* EPOLLOUT is asked for */
	bool is_ending;		/* nothing more is sent; EOF is the end */
	size_t sent;
	size_t got;
	uint64_t nr_requests;	/* answered */
	uint64_t began_ns;
	uint64_t moved_ns;	/* the last byte sent or received */
	unsigned char *out;	/* what is sent: opts.size bytes */
};

struct loader {
	pthread_t thread;
	int epfd;
	unsigned int nr_conns;
	unsigned int nr_open;
	struct conn *conns;
	unsigned char *in;	/* opts.size + 1 bytes, to see a surplus */
	uint64_t ended_ns;	/* the last answer */
	struct hist hist;
	_Atomic uint64_t nr_requests;	/* for the progress bar */
};

static struct options opts = {
	.nr_conns = 64, .nr_threads = 1, .size = 64, .seconds = 5, .stall = 3,
};
static _Atomic uint64_t nr_failures[NR_FAILURES];
static _Atomic unsigned int nr_told;
static uint64_t stop_ns;

/* Close @c; what it was about is counted, and told to a patient reader. */
__attribute__((format(printf, 4, 5)))
static void fail(struct loader *l, struct conn *c, enum failure what,
		 const char *format, ...)
{
	va_list ap;

	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	l->nr_open--;
	atomic_fetch_add(&nr_failures[what], 1);
	if (atomic_fetch_add(&nr_told, 1) >= MAX_TOLD)
		return;
	flockfile(stderr);
	progress_clear();
	fprintf(stderr, "echo_load: connection %u: request %llu: ", c->id,
		(unsigned long long)c->nr_requests);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	funlockfile(stderr);
}

static void fill(struct conn *c)
{
	uint64_t word = mix((uint64_t)c->id << 40 ^ c->nr_requests);
	size_t i, n;

	for (i = 0; i < opts.size; i += n) {
		n = opts.size - i < sizeof(word) ? opts.size - i : sizeof(word);
		memcpy(c->out + i, &word, n);
		word = mix(word);
	}
}

static void want(struct loader *l, struct conn *c, bool out)
{
	struct epoll_event ev = {
		.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c,
	};

	if (c->wants_out == out)
		return;
	c->wants_out = out;
	if (epoll_ctl(l->epfd, EPOLL_CTL_MOD, c->fd, &ev))
		die("epoll_ctl: %s", strerror(errno));
}

/* Send what is left of the request; false if the connection has failed. */
static bool send_rest(struct loader *l, struct conn *c)
{
	ssize_t n;

	while (c->sent < opts.size) {
		n = send(c->fd, c->out + c->sent, opts.size - c->sent,
			 MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			fail(l, c, RESET, "send: %s", strerror(errno));
			return false;
		}
		c->sent += (size_t)n;
		c->moved_ns = now_ns();
	}
	want(l, c, c->sent < opts.size);
	return true;
}

static bool send_next(struct loader *l, struct conn *c)
{
	c->sent = 0;
	c->got = 0;
	fill(c);
	c->began_ns = now_ns();
	c->moved_ns = c->began_ns;
	return send_rest(l, c);
}

/* Whether the @n bytes of l->in are those that @c has to receive next. */
static bool is_echo(struct loader *l, struct conn *c, size_t n)
{
	const unsigned char *due = c->out + c->got;
	size_t nr_due = c->sent - c->got, i;

	for (i = 0; i < n && i < nr_due; i++) {
		if (l->in[i] == due[i])
			continue;
		fail(l, c, WRONG, "byte %zu: sent 0x%02x, got 0x%02x",
		     c->got + i, due[i], l->in[i]);
		return false;
	}
	if (n > nr_due) {
		fail(l, c, SURPLUS, "%zu bytes sent, more received", c->sent);
		return false;
	}
	return true;
}

/* The peer has closed: right only if we had, and nothing is missing. */
static void take_eof(struct loader *l, struct conn *c)
{
	if (!c->is_ending) {
		fail(l, c, SHORT, "end of stream at byte %zu of %u", c->got,
		     opts.size);
		return;
	}
	close(c->fd);
	c->fd = -1;
	l->nr_open--;
}

/* The answer is whole: send the next request, or say that there is none. */
static bool take_answer(struct loader *l, struct conn *c)
{
	const uint64_t now = now_ns();

	hist_add(&l->hist, now - c->began_ns);
	c->nr_requests++;
	l->ended_ns = now;
	atomic_store_explicit(&l->nr_requests, l->hist.nr,
			      memory_order_relaxed);
	if (now < stop_ns)
		return send_next(l, c);
	c->is_ending = true;
	c->sent = 0;
	c->got = 0;
	c->moved_ns = now;
	if (shutdown(c->fd, SHUT_WR)) {
		fail(l, c, RESET, "shutdown: %s", strerror(errno));
		return false;
	}
	return true;
}

/* Receive once; what remains, epoll will tell again. */
static void receive(struct loader *l, struct conn *c)
{
	ssize_t n = recv(c->fd, l->in, opts.size - c->got + 1, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		fail(l, c, RESET, "recv: %s", strerror(errno));
		return;
	}
	if (!n) {
		take_eof(l, c);
		return;
	}
	if (!is_echo(l, c, (size_t)n))
		return;
	c->moved_ns = now_ns();
	c->got += (size_t)n;
	if (c->got == opts.size)
		take_answer(l, c);
}

static void find_stalled(struct loader *l)
{
	const uint64_t now = now_ns();
	struct conn *c;

	for (c = l->conns; c < l->conns + l->nr_conns; c++) {
		if (c->fd < 0 || (double)(now - c->moved_ns) <
				 opts.stall * (double)NSEC_PER_SEC)
			continue;
		fail(l, c, STALLED, "nothing for %.1f s at byte %zu of %u%s",
		     opts.stall, c->got, opts.size,
		     c->is_ending ? " (no end of stream)" : "");
	}
}

static void *loader_run(void *arg)
{
	struct loader *l = arg;
	struct epoll_event ev[64];
	uint64_t look_ns = 0;
	int i, n;
	unsigned int k;

	for (k = 0; k < l->nr_conns; k++) {
		if (l->conns[k].fd >= 0)
			send_next(l, &l->conns[k]);
	}
	while (l->nr_open) {
		n = epoll_wait(l->epfd, ev, 64, TICK_MS);
		for (i = 0; i < n; i++) {
			struct conn *c = ev[i].data.ptr;

			if ((ev[i].events & EPOLLOUT) && !send_rest(l, c))
				continue;
			if (ev[i].events & ~(uint32_t)EPOLLOUT)
				receive(l, c);
		}
		if (now_ns() < look_ns)
			continue;
		find_stalled(l);
		look_ns = now_ns() + TICK_MS * NSEC_PER_MSEC;
	}
	return NULL;
}

static void conn_open(struct loader *l, struct conn *c)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };
	const int one = 1;

	c->out = zalloc(opts.size, 1);
	l->nr_open++;
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		die("socket: %s", strerror(errno));
	if (connect(c->fd, (const struct sockaddr *)&opts.addr,
		    sizeof(opts.addr))) {
		fail(l, c, REFUSED, "connect: %s", strerror(errno));
		return;
	}
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK))
		die("O_NONBLOCK: %s", strerror(errno));
	if (setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY: %s", strerror(errno));
	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, c->fd, &ev))
		die("epoll_ctl: %s", strerror(errno));
}

/* Blocking connects first, so that all connections begin together. */
static struct loader *loaders_open(void)
{
	struct loader *loaders = zalloc(opts.nr_threads, sizeof(*loaders));
	unsigned int i, k, id = 0;

	for (i = 0; i < opts.nr_threads; i++) {
		struct loader *l = &loaders[i];

		l->nr_conns = opts.nr_conns / opts.nr_threads +
			      (i < opts.nr_conns % opts.nr_threads);
		l->conns = zalloc(l->nr_conns, sizeof(*l->conns));
		l->in = zalloc(opts.size + 1, 1);
		l->epfd = epoll_create1(EPOLL_CLOEXEC);
		if (l->epfd < 0)
			die("epoll_create1: %s", strerror(errno));
		for (k = 0; k < l->nr_conns; k++) {
			l->conns[k].id = id++;
			conn_open(l, &l->conns[k]);
		}
	}
	return loaders;
}

static uint64_t requests_so_far(struct loader *loaders)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < opts.nr_threads; i++)
		sum += atomic_load_explicit(&loaders[i].nr_requests,
					    memory_order_relaxed);
	return sum;
}

/* Show how it goes until the time is up. */
static void watch(struct loader *loaders, uint64_t start_ns)
{
	const struct timespec tick = { .tv_nsec = TICK_MS * NSEC_PER_MSEC };
	uint64_t now, before = 0, sum;
	char text[80];

	while (progress_is_shown() && (now = now_ns()) < stop_ns) {
		sum = requests_so_far(loaders);
		snprintf(text, sizeof(text), "%.1f of %g s  %llu requests/s",
			 (double)(now - start_ns) / NSEC_PER_SEC, opts.seconds,
			 (unsigned long long)(sum - before) * 1000 / TICK_MS);
		progress_draw((double)(now - start_ns),
			      (double)(stop_ns - start_ns), text);
		before = sum;
		nanosleep(&tick, NULL);
	}
	progress_clear();
}

static void print_us(const char *key, uint64_t ns)
{
	printf("%s=%.1f\n", key, (double)ns / 1000);
}

static void print_latency(const struct hist *h)
{
	unsigned int i;

	print_us("p50_us", hist_quantile(h, 50000));
	print_us("p99_us", hist_quantile(h, 99000));
	print_us("p999_us", hist_quantile(h, 99900));
	print_us("max_us", h->max);
	for (i = 0; opts.bins && i < HIST_NR_BINS; i++) {
		if (h->bin[i])
			printf("bin_ns=%llu:%llu\n",
			       (unsigned long long)hist_last(i),
			       (unsigned long long)h->bin[i]);
	}
}

static void print_cost(const struct cost *server, uint64_t own_ns, uint64_t nr)
{
	if (opts.pid)
		printf("server_cpu_us=%.2f\n",
		       (double)server->cpu_ns / 1000 / (double)nr);
	if (server->has_calls)
		printf("server_calls=%.3f\n",
		       (double)server->nr_calls / (double)nr);
	printf("load_cpu_us=%.2f\n", (double)own_ns / 1000 / (double)nr);
}

static uint64_t print_failures(void)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < NR_FAILURES; i++) {
		printf("%s=%llu\n", failure_name[i],
		       (unsigned long long)nr_failures[i]);
		sum += nr_failures[i];
	}
	return sum;
}

/* Start all threads at once; wait for them. How long it took, in ns. */
static uint64_t load(struct loader *loaders)
{
	uint64_t start_ns = now_ns(), end_ns = start_ns;
	unsigned int i;

	stop_ns = start_ns + (uint64_t)(opts.seconds * (double)NSEC_PER_SEC);
	for (i = 0; i < opts.nr_threads; i++) {
		if (pthread_create(&loaders[i].thread, NULL, loader_run,
				   &loaders[i]))
			die("cannot start a thread");
	}
	watch(loaders, start_ns);
	for (i = 0; i < opts.nr_threads; i++) {
		pthread_join(loaders[i].thread, NULL);
		if (loaders[i].ended_ns > end_ns)
			end_ns = loaders[i].ended_ns;
	}
	return end_ns - start_ns;
}

static void loaders_close(struct loader *loaders)
{
	unsigned int i, k;

	for (i = 0; i < opts.nr_threads; i++) {
		for (k = 0; k < loaders[i].nr_conns; k++)
			free(loaders[i].conns[k].out);
		close(loaders[i].epfd);
		free(loaders[i].conns);
		free(loaders[i].in);
	}
	free(loaders);
}

static int run(void)
{
	struct loader *loaders = loaders_open();
	struct hist *all = zalloc(1, sizeof(*all));
	uint64_t own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), ns, nr;
	struct cost server;
	unsigned int i;

	cost_begin(&server, opts.pid, opts.calls);
	ns = load(loaders);
	cost_end(&server);
	own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own_ns;
	for (i = 0; i < opts.nr_threads; i++)
		hist_merge(all, &loaders[i].hist);
	nr = all->nr;
	printf("connections=%u\nsize=%u\nthreads=%u\nseconds=%.3f\n",
	       opts.nr_conns, opts.size, opts.nr_threads,
	       (double)ns / NSEC_PER_SEC);
	printf("requests=%llu\nrps=%.0f\n", (unsigned long long)nr,
	       ns ? (double)nr * NSEC_PER_SEC / (double)ns : 0.0);
	print_latency(all);
	if (nr)
		print_cost(&server, own_ns, nr);
	loaders_close(loaders);
	free(all);
	return print_failures() || !nr;
}

static const char usage[] =
"Usage: echo_load --addr ADDRESS:PORT [OPTION]...\n"
"Loads a TCP echo server over IPv4, checks every byte, prints key=value lines.\n"
"Each connection sends its next request when it has the answer to the last.\n"
"\n"
"  --addr ADDRESS:PORT  the server\n"
"  --connections N      64\n"
"  --size N             bytes a request: 64\n"
"  --seconds S          5\n"
"  --threads N          1\n"
"  --stall S            a connection that moves no byte so long fails: 3\n"
"  --pid PID            the server's process, to read its CPU time\n"
"  --calls              count its system calls too, which slows it; as root\n"
"  --bins               also print the bins of the latency histogram\n"
"  --help               this\n"
"\n"
"Prints requests, rps, latencies, CPU time a request (in us) and how many\n"
"connections failed for which reason. Status: 0; 1 if any did; 2 for bad use.\n";

static void set_option(int opt, char *arg)
{
	switch (opt) {
	case 'a':
		opts.addr = address(arg);
		break;
	case 'c':
		opts.nr_conns = whole(arg, 1U << 20);
		break;
	case 'n':
		opts.size = whole(arg, 1U << 24);
		break;
	case 's':
		opts.seconds = number(arg, 0.001, 86400);
		break;
	case 't':
		opts.nr_threads = whole(arg, 1024);
		break;
	case 'w':
		opts.stall = number(arg, 0.01, 86400);
		break;
	case 'p':
		opts.pid = (pid_t)whole(arg, 1U << 30);
		break;
	case 'l':
		opts.calls = true;
		break;
	case 'b':
		opts.bins = true;
		break;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	default:
		die("--help says what can be asked for");
	}
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "addr", required_argument, NULL, 'a' },
		{ "bins", no_argument, NULL, 'b' },
		{ "calls", no_argument, NULL, 'l' },
		{ "connections", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "pid", required_argument, NULL, 'p' },
		{ "seconds", required_argument, NULL, 's' },
		{ "size", required_argument, NULL, 'n' },
		{ "stall", required_argument, NULL, 'w' },
		{ "threads", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
		set_option(opt, optarg);
	if (optind < argc)
		die("%s: what is that?", argv[optind]);
	if (!opts.addr.sin_port)
		die("--addr is wanted");
	if (opts.calls && !opts.pid)
		die("--calls: of which --pid?");
	if (opts.nr_threads > opts.nr_conns)
		opts.nr_threads = opts.nr_conns;
}

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, "");
	parse(argc, argv);
	raise_limit();
	return run();
}
