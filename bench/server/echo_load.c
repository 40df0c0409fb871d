// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A load for echo servers: many connections on few threads, by epoll
 *
 * A closed loop: each connection sends its next request as soon as the last
 * byte of the answer has arrived, and a latency is counted from just before the
 * first send() to just after the last recv().  A server that halts is sent
 * nothing meanwhile, so these latencies are those of so many clients that wait
 * for each other's turn.
 *
 * An open loop, with --rate: requests are due at random moments, whatever the
 * server does.  Each takes the connection that has been idle for longest; if
 * none is, it waits.  Its latency counts from when it was due, so that a server
 * that halts is charged for all that was due meanwhile.
 *
 * Every byte is checked.  What goes wrong ends its connection, is counted, and
 * fails the run.
 *
 * Nothing here is parklot's: it may drive any server that echoes.
 */
#include <getopt.h>
#include <locale.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "arrivals.h"
#include "cost.h"
#include "echo_conn.h"
#include "../lib/hist.h"
#include "progress.h"
#include "../lib/util.h"

#define TICK_MS		100	/* how often a thread looks at the clock */
#define SEED		1

struct options {
	unsigned int nr_conns;
	unsigned int nr_threads;
	unsigned int size;
	double rate;		/* requests a second; 0: a closed loop */
	double seconds;
	double warm_up;		/* seconds before these */
	double stall;
	struct sockaddr_in addr;
	pid_t pid;
	bool calls;
	bool bins;
};

struct loader {
	struct conn_set set;
	pthread_t thread;
	unsigned int nr_conns;
	struct conn *conns;
	struct arrivals arrivals;
	struct conn **idle;	/* a queue: nr_idle from idle_first on */
	unsigned int idle_first;
	unsigned int nr_idle;
	uint64_t ended_ns;	/* the last answer */
	struct hist hist;
	_Atomic uint64_t nr_requests;	/* for the progress bar */
};

static struct options opts = {
	.nr_conns = 64, .nr_threads = 1, .size = 64, .seconds = 5, .stall = 3,
};
static uint64_t count_ns, stop_ns;	/* what is answered in between counts */

/* ---- the open loop ---- */

static void idle_push(struct loader *l, struct conn *c)
{
	conn_rest(c);
	l->idle[(l->idle_first + l->nr_idle++) % l->nr_conns] = c;
}

/* The one that has been idle for longest; NULL: none. */
static struct conn *idle_pop(struct loader *l)
{
	struct conn *c;

	while (l->nr_idle) {
		c = l->idle[l->idle_first];
		l->idle_first = (l->idle_first + 1) % l->nr_conns;
		l->nr_idle--;
		if (c->fd >= 0)
			return c;
	}
	return NULL;
}

/* All that was due before the end is sent, however late. */
static bool has_arrivals(const struct loader *l)
{
	return l->arrivals.next_ns < (double)stop_ns;
}

static void send_due(struct loader *l)
{
	struct conn *c;

	while (l->nr_idle && has_arrivals(l) &&
	       l->arrivals.next_ns <= (double)now_ns()) {
		c = idle_pop(l);
		if (!c)
			return;
		conn_send_next(&l->set, c, (uint64_t)l->arrivals.next_ns);
		arrivals_advance(&l->arrivals);
	}
	while (!has_arrivals(l) && (c = idle_pop(l)))
		conn_end(&l->set, c);
}

/* Until the next arrival that has a connection, or the next tick. */
static struct timespec time_to_wait(const struct loader *l)
{
	double ns = TICK_MS * (double)NSEC_PER_MSEC, left;

	if (opts.rate > 0 && l->nr_idle && has_arrivals(l)) {
		left = l->arrivals.next_ns - (double)now_ns();
		ns = left < 0 ? 0 : left < ns ? left : ns;
	}
	return (struct timespec){ .tv_nsec = (long)ns };
}

/* ---- both ---- */

/* The answer is whole: send the next request, or say that there is none. */
static void take_answer(struct loader *l, struct conn *c)
{
	const uint64_t now = now_ns();

	if (now >= count_ns)
		hist_add(&l->hist, now - c->began_ns);
	c->nr_requests++;
	l->ended_ns = now;
	atomic_store_explicit(&l->nr_requests, l->hist.nr,
			      memory_order_relaxed);
	if (opts.rate > 0)
		idle_push(l, c);
	else if (now < stop_ns)
		conn_send_next(&l->set, c, 0);
	else
		conn_end(&l->set, c);
}

static void find_stalled(struct loader *l)
{
	const uint64_t now = now_ns();
	struct conn *c;

	for (c = l->conns; c < l->conns + l->nr_conns; c++) {
		if (c->fd < 0 || c->is_idle || (double)(now - c->moved_ns) <
					opts.stall * (double)NSEC_PER_SEC)
			continue;
		conn_fail(&l->set, c, CONN_STALLED,
			  "nothing for %.1f s at byte %zu of %u%s", opts.stall,
			  c->got, opts.size,
			  c->is_ending ? " (no end of stream)" : "");
	}
}

static void loader_begin(struct loader *l)
{
	struct conn *c;

	/* The kernel's default wakes 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	for (c = l->conns; c < l->conns + l->nr_conns; c++) {
		if (c->fd < 0)
			continue;
		if (opts.rate > 0)
			idle_push(l, c);
		else
			conn_send_next(&l->set, c, 0);
	}
}

static void loader_event(struct loader *l, const struct epoll_event *ev)
{
	struct conn *c = ev->data.ptr;

	if ((ev->events & EPOLLOUT) && !conn_send_rest(&l->set, c))
		return;
	if (ev->events & ~(uint32_t)EPOLLOUT && conn_receive(&l->set, c))
		take_answer(l, c);
	if (opts.rate > 0)
		send_due(l);
}

static void *loader_run(void *arg)
{
	struct loader *l = arg;
	struct epoll_event ev[64];
	struct timespec ts;
	uint64_t look_ns = 0;
	int i, n;

	loader_begin(l);
	while (l->set.nr_open) {
		ts = time_to_wait(l);
		n = epoll_pwait2(l->set.epfd, ev, 64, &ts, NULL);
		for (i = 0; i < n; i++)
			loader_event(l, &ev[i]);
		if (opts.rate > 0)
			send_due(l);
		if (now_ns() < look_ns)
			continue;
		find_stalled(l);
		look_ns = now_ns() + TICK_MS * NSEC_PER_MSEC;
	}
	return NULL;
}

/* Blocking connects first, so that all connections begin together. */
static void loader_open(struct loader *l, unsigned int first_id)
{
	unsigned int k;

	l->set.size = opts.size;
	l->conns = zalloc(l->nr_conns, sizeof(*l->conns));
	l->idle = zalloc(l->nr_conns, sizeof(*l->idle));
	l->set.in = zalloc(opts.size + 1, 1);
	l->set.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->set.epfd < 0)
		die("epoll_create1: %s", strerror(errno));
	for (k = 0; k < l->nr_conns; k++) {
		l->conns[k].id = first_id + k;
		conn_open(&l->set, &l->conns[k], &opts.addr);
	}
}

static struct loader *loaders_open(void)
{
	struct loader *loaders = zalloc(opts.nr_threads, sizeof(*loaders));
	unsigned int i, id = 0;

	for (i = 0; i < opts.nr_threads; i++) {
		loaders[i].nr_conns = opts.nr_conns / opts.nr_threads +
				      (i < opts.nr_conns % opts.nr_threads);
		loader_open(&loaders[i], id);
		id += loaders[i].nr_conns;
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
	if (opts.pid)
		printf("server_switches=%.4f\n",
		       (double)server->nr_switches / (double)nr);
	if (server->has_calls)
		printf("server_calls=%.3f\n",
		       (double)server->nr_calls / (double)nr);
	printf("load_cpu_us=%.2f\n", (double)own_ns / 1000 / (double)nr);
}

static uint64_t print_failures(void)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < CONN_NR_FAILURES; i++) {
		printf("%s=%llu\n", conn_failure_name[i],
		       (unsigned long long)conn_nr_failures[i]);
		sum += conn_nr_failures[i];
	}
	return sum;
}

static void begin(struct cost *server, uint64_t *own_ns)
{
	*own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	cost_begin(server);
}

/*
 * Start all threads at once; wait for them. How long it took, in ns, without
 * the warm-up, after which @server and @own_ns begin.
 */
static uint64_t load(struct loader *loaders, struct cost *server,
		     uint64_t *own_ns)
{
	uint64_t start_ns, end_ns;
	unsigned int i;

	if (!(opts.warm_up > 0))
		begin(server, own_ns);
	start_ns = now_ns();
	count_ns = start_ns + (uint64_t)(opts.warm_up * (double)NSEC_PER_SEC);
	stop_ns = count_ns + (uint64_t)(opts.seconds * (double)NSEC_PER_SEC);
	end_ns = count_ns;
	for (i = 0; i < opts.nr_threads; i++) {
		if (opts.rate > 0)
			arrivals_init(&loaders[i].arrivals, SEED + i,
				      opts.rate / opts.nr_threads, start_ns);
		if (pthread_create(&loaders[i].thread, NULL, loader_run,
				   &loaders[i]))
			die("cannot start a thread");
	}
	if (opts.warm_up > 0) {
		sleep_until(count_ns);
		begin(server, own_ns);
	}
	watch(loaders, count_ns);
	for (i = 0; i < opts.nr_threads; i++) {
		pthread_join(loaders[i].thread, NULL);
		if (loaders[i].ended_ns > end_ns)
			end_ns = loaders[i].ended_ns;
	}
	return end_ns - count_ns;
}

static void loaders_close(struct loader *loaders)
{
	unsigned int i, k;

	for (i = 0; i < opts.nr_threads; i++) {
		for (k = 0; k < loaders[i].nr_conns; k++)
			free(loaders[i].conns[k].out);
		close(loaders[i].set.epfd);
		free(loaders[i].conns);
		free(loaders[i].idle);
		free(loaders[i].set.in);
	}
	free(loaders);
}

static int run(void)
{
	struct loader *loaders = loaders_open();
	struct hist *all = zalloc(1, sizeof(*all));
	uint64_t own_ns, ns, nr;
	struct cost server;
	unsigned int i;

	cost_prepare(&server, opts.pid, opts.calls);
	ns = load(loaders, &server, &own_ns);
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
"Each connection sends its next request when it has the answer to the last, or\n"
"requests are due at a rate, and latencies count from when they were due.\n"
"\n"
"  --addr ADDRESS:PORT  the server\n"
"  --connections N      64\n"
"  --size N             bytes a request: 64\n"
"  --rate R             requests a second, at random moments; no closed loop\n"
"  --seconds S          5\n"
"  --warm-up S          seconds before, which do not count: 0\n"
"  --threads N          1\n"
"  --stall S            a connection that moves no byte so long fails: 3\n"
"  --pid PID            the server's process, to read its CPU time and how often\n"
"                       its threads went to sleep\n"
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
	case 'r':
		opts.rate = number(arg, 1, 1e9);
		break;
	case 's':
		opts.seconds = number(arg, 0.001, 86400);
		break;
	case 'u':
		opts.warm_up = number(arg, 0, 86400);
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
		{ "rate", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 's' },
		{ "size", required_argument, NULL, 'n' },
		{ "stall", required_argument, NULL, 'w' },
		{ "threads", required_argument, NULL, 't' },
		{ "warm-up", required_argument, NULL, 'u' },
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
