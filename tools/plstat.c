// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * plstat - what a running program of parklot's does
 *
 * Reads the counters where they are, by process_vm_readv(2), as
 * lib/debug/stat_export.h says: the program does nothing for it, and may as
 * well be stopped.  The kernel allows it to users that may trace.
 */
#include "sched/latency_hist.h"
#include "peek.h"

#include <getopt.h>
#include <inttypes.h>
#include <parklot.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define NR_WORKERS_MAX	65536
#define NR_TRIES	100

enum { RUNNING = 2, STOPPING = 3 };	/* of enum pl__rt_state */

struct value {
	char		name[32];
	bool		is_gauge;
	uint64_t	now;
};

#define NR_DELAYS_MAX	4

/* As in latency_hist.h, of all workers. */
struct delays {
	char		name[sizeof(((struct pl__stat_export *)0)->name) + 1];
	uint64_t	bin[PL__LATENCY_BINS];
};

/* One look at all of it. */
struct sample {
	uint64_t	at_ns;
	bool		is_running;
	uint32_t	backend;
	uint32_t	nr;
	struct value	value[NR_ENTRIES_MAX];
	uint32_t	nr_delays;
	struct delays	delays[NR_DELAYS_MAX];
};

static volatile sig_atomic_t is_over;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- reading ---- */

static struct value *value_named(struct sample *s, const char *name)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		if (!strcmp(s->value[i].name, name))
			return &s->value[i];
	return NULL;
}

static uint64_t get(struct sample *s, const char *name)
{
	const struct value *v = value_named(s, name);

	return v ? v->now : 0;
}

static void add(struct sample *s, const char *name, uint8_t flags,
		uint64_t value)
{
	struct value *v = value_named(s, name);

	if (!v && s->nr == NR_ENTRIES_MAX)
		return;
	if (!v) {
		v = &s->value[s->nr++];
		*v = (struct value){ .is_gauge = flags & PL__EXPORT_GAUGE };
		snprintf(v->name, sizeof(v->name), "%s", name);
	}
	v->now += flags & PL__EXPORT_MINUS ? -value : value;
}

static struct delays *delays_named(struct sample *s, const char *name)
{
	struct delays *d = s->delays;

	while (d < s->delays + s->nr_delays && strcmp(d->name, name))
		d++;
	if (d < s->delays + s->nr_delays || s->nr_delays == NR_DELAYS_MAX)
		return d < s->delays + s->nr_delays ? d : NULL;
	s->nr_delays++;
	snprintf(d->name, sizeof(d->name), "%s", name);
	return d;
}

/* False: nothing is mapped there; base 0: of none, that they are named. */
static bool add_delays(struct sample *s, const char *name, uint64_t base)
{
	struct delays *d = delays_named(s, name);
	uint32_t bin[PL__LATENCY_BINS] = { 0 };
	size_t i;

	if (base && !peek(bin, base, sizeof(bin)))
		return false;
	for (i = 0; d && i < PL__LATENCY_BINS; i++)
		d->bin[i] += bin[i];
	return true;
}

/* All entries of one object at @base; @base 0: of none, that they are named. */
static bool add_object(struct sample *s, enum pl__stat_export_where where,
		       uint64_t base)
{
	uint64_t value;
	uint32_t i;

	for (i = 0; i < table.nr; i++) {
		char name[sizeof(entries[i].name) + 1] = "";

		if (entries[i].where != where ||
		    entries[i].size > sizeof(value))
			continue;
		memcpy(name, entries[i].name, sizeof(entries[i].name));
		if (entries[i].flags & PL__EXPORT_HIST) {
			if (!add_delays(s, name,
					base ? base + entries[i].offset : 0))
				return false;
			continue;
		}
		value = 0;
		if (base && !peek(&value, base + entries[i].offset,
				  entries[i].size))
			return false;
		add(s, name, entries[i].flags, value);
	}
	return true;
}

static bool add_workers(struct sample *s, uint64_t workers, uint32_t nr)
{
	uint64_t worker, ring;
	uint32_t i;

	for (i = 0; i < nr && i < NR_WORKERS_MAX; i++) {
		if (!peek(&worker, workers + i * 8ULL, 8) ||
		    !add_object(s, PL__EXPORT_WORKER, worker) ||
		    !peek(&ring, worker + table.ring, 8))
			return false;
		if (ring && !add_object(s, PL__EXPORT_RING, ring))
			return false;
	}
	return true;
}

static bool add_timers(struct sample *s, uint64_t timers)
{
	uint64_t buckets;
	uint32_t nr, i;

	if (!timers)
		return true;
	if (!add_object(s, PL__EXPORT_TIMERS, timers) ||
	    !peek(&buckets, timers + table.buckets, 8) ||
	    !peek(&nr, timers + table.nr_buckets, 4))
		return false;
	for (i = 0; i < nr; i++)
		if (!add_object(s, PL__EXPORT_BUCKET,
				buckets + (uint64_t)i * table.bucket_size))
			return false;
	return true;
}

/* What follows from the others. */
static void add_differences(struct sample *s)
{
	uint64_t ended = get(s, "timers_fired") + get(s, "timers_deleted");
	uint64_t idle = get(s, "workers_parked") + get(s, "workers_blocked");
	static const char *const names[] = {
		"tasks_alive", "timers_alive", "io_in_flight", "workers_running"
	};
	int64_t alive[] = {
		(int64_t)(get(s, "tasks_spawned") - get(s, "tasks_ended")),
		(int64_t)(get(s, "timers_added") - ended),
		(int64_t)(get(s, "io_submitted") - get(s, "io_completed")),
		(int64_t)(get(s, "workers") - idle),
	};
	size_t i;

	/* Each was read at a moment of its own. */
	for (i = 0; i < sizeof(alive) / sizeof(*alive); i++)
		add(s, names[i], PL__EXPORT_GAUGE,
		    alive[i] > 0 ? (uint64_t)alive[i] : 0);
}

/*
 * What @percent of them were below, in ns, since @before if there is one; 0:
 * there were none.
 */
static uint64_t delay_below(const struct delays *before, const struct delays *d,
			    unsigned int percent)
{
	uint64_t nr[PL__LATENCY_BINS], all = 0, sum = 0;
	unsigned int i;

	for (i = 0; i < PL__LATENCY_BINS; i++) {
		nr[i] = d->bin[i];
		if (before && before->bin[i] <= nr[i])
			nr[i] -= before->bin[i];
		all += nr[i];
	}
	for (i = 0; i < PL__LATENCY_BINS && all; i++) {
		sum += nr[i];
		if (sum * 100 >= all * percent)
			return 1ULL << (i + PL__LATENCY_SHIFT);
	}
	return 0;
}

static const unsigned int percents[] = { 50, 99 };

static void add_percentiles(struct sample *s)
{
	char name[sizeof(s->value[0].name)];
	size_t i, k;

	for (i = 0; i < s->nr_delays; i++)
		for (k = 0; k < 2; k++) {
			snprintf(name, sizeof(name), "%s_p%u_ns",
				 s->delays[i].name, percents[k]);
			add(s, name, PL__EXPORT_GAUGE,
			    delay_below(NULL, &s->delays[i], percents[k]));
		}
}

static bool is_in_use(void)
{
	uint32_t state;

	if (!peek(&state, table.rt + table.state, sizeof(state)))
		die("process %d: its runtime cannot be read", pid);
	return state == RUNNING || state == STOPPING;
}

static bool look_at_running(struct sample *s)
{
	uint64_t workers, timers;
	uint32_t nr;

	return peek(&workers, table.rt + table.workers, 8) &&
	       peek(&nr, table.rt + table.nr_workers, 4) &&
	       peek(&timers, table.rt + table.timers, 8) &&
	       peek(&s->backend, table.rt + table.backend, 4) &&
	       add_workers(s, workers, nr) && add_timers(s, timers) &&
	       is_in_use();
}

/* A runtime that stops takes its workers away while they are looked at. */
static void look(struct sample *s)
{
	int tries = 0, i;

	do {
		if (tries++ == NR_TRIES)
			die("process %d: what it counts cannot be read", pid);
		memset(s, 0, sizeof(*s));
		s->at_ns = now_ns();
		for (i = 0; i < PL__EXPORT_NR_WHERE; i++)
			add_object(s, (enum pl__stat_export_where)i, 0);
		s->is_running = is_in_use();
	} while (s->is_running && !look_at_running(s));
	if (!add_object(s, PL__EXPORT_RT, table.rt))
		die("process %d: its runtime cannot be read", pid);
	add_differences(s);
	add_percentiles(s);
}

/* ---- telling ---- */

static const char *backend_name(const struct sample *s)
{
	static const char *const names[] = { "auto", "module", "futex" };

	return !s->is_running ? "none" : s->backend < 3 ? names[s->backend] :
							 "unknown";
}

static void print_json(struct sample *s)
{
	uint32_t i;

	printf("{\"pid\":%d,\"version\":\"%.16s\",\"running\":%s,\"backend\":\"%s\"",
	       pid, table.library, s->is_running ? "true" : "false",
	       backend_name(s));
	for (i = 0; i < s->nr; i++)
		printf(",\"%s\":%" PRIu64, s->value[i].name, s->value[i].now);
	puts("}");
}

static void print_prometheus(struct sample *s)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++) {
		const struct value *v = &s->value[i];
		const char *end = v->is_gauge ? "" : "_total";

		printf("# TYPE parklot_%s%s %s\n", v->name, end,
		       v->is_gauge ? "gauge" : "counter");
		printf("parklot_%s%s{pid=\"%d\",backend=\"%s\"} %" PRIu64 "\n",
		       v->name, end, pid, backend_name(s), v->now);
	}
}

static void print_rate(struct sample *before, struct sample *s,
		       const char *said, const char *name)
{
	uint64_t was = get(before, name), is = get(s, name);
	double seconds = (double)(s->at_ns - before->at_ns) / 1e9;

	if (before->at_ns)
		printf("%8.0f %s/s",
		       is > was ? (double)(is - was) / seconds : 0.0, said);
	else
		printf("%8" PRIu64 " %s", is, said);
}

struct row {
	const char	*title;
	const char	*gauge, *gauge_said;
	const char	*name[4], *said[4];
};

static const struct row rows[] = {
	{ "tasks", "tasks_alive", "alive",
	  { "tasks_spawned", "tasks_ended" }, { "spawned", "ended" } },
	{ "switches", NULL, NULL, { "switches", "steals" },
	  { "switches", "steals" } },
	{ "parking", NULL, NULL, { "parks", "wakes", "wakes_empty" },
	  { "parks", "wakes", "empty wakes" } },
	{ "blocking", NULL, NULL, { "blocks", "all_blocked" },
	  { "blocks", "times all blocked" } },
	{ "crowds", NULL, NULL, { "set_aside", "spares" },
	  { "set aside", "spares started" } },
	{ "stalls", "workers_stalled", "stalled",
	  { "stalls", "stalls_over" }, { "found", "over the target" } },
	{ "timers", "timers_alive", "alive",
	  { "timers_added", "timers_fired", "timers_deleted" },
	  { "added", "fired", "deleted" } },
	{ "io", "io_in_flight", "in flight",
	  { "io_submitted", "io_completed", "io_enters" },
	  { "submitted", "done", "enters" } },
};

/* As powers of 2 have it: a percentile is below what is told. */
static void print_delay(const struct delays *before, const struct delays *d)
{
	size_t kind = strcspn(d->name, "_");
	uint64_t ns;
	unsigned int i;

	printf("%.*s", (int)kind, d->name);
	for (i = 0; i < 2; i++) {
		ns = delay_below(before, d, percents[i]);
		printf(" p%u ", percents[i]);
		if (ns >= 10000000)
			printf("%.1f ms", (double)ns / 1000000);
		else if (ns)
			printf("%.1f us", (double)ns / 1000);
		else
			putchar('-');
	}
}

static void print_delays(struct sample *before, struct sample *s)
{
	uint32_t i;

	printf("%-8s ", "delays");
	for (i = 0; i < s->nr_delays; i++) {
		fputs(i ? "    " : "", stdout);
		print_delay(before->nr_delays == s->nr_delays ?
			    &before->delays[i] : NULL, &s->delays[i]);
	}
	putchar('\n');
}

/* Sums since the beginning if there is none @before. */
static void print_screen(struct sample *before, struct sample *s)
{
	size_t i, j;

	printf("parklot %.16s, process %d, ", table.library, pid);
	if (s->is_running)
		printf("%s, runs for %.1f s\n", backend_name(s),
		       (double)(s->at_ns - table.started_ns) / 1e9);
	else
		puts("does not run");
	printf("workers  %7" PRIu64 " started: %" PRIu64 " run, %" PRIu64
	       " parked, %" PRIu64 " blocked\n", get(s, "workers"),
	       get(s, "workers_running"), get(s, "workers_parked"),
	       get(s, "workers_blocked"));
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];

		printf("%-8s ", r->title);
		if (r->gauge)
			printf("%7" PRIu64 " %-9s", get(s, r->gauge),
			       r->gauge_said);
		else
			printf("%17s", "");
		for (j = 0; j < 4 && r->name[j]; j++)
			print_rate(before, s, r->said[j], r->name[j]);
		putchar('\n');
	}
	print_delays(before, s);
}

/* ---- the screen ---- */

static struct termios cooked;

static void on_signal(int sig)
{
	(void)sig;
	is_over = 1;
}

static bool is_on_screen;

static void screen_end(void)
{
	if (!is_on_screen)
		return;
	is_on_screen = false;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (isatty(0))
		tcsetattr(0, TCSADRAIN, &cooked);
}

static void screen_begin(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct termios raw;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (isatty(0) && !tcgetattr(0, &cooked)) {
		raw = cooked;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tcsetattr(0, TCSADRAIN, &raw);
	}
	is_on_screen = true;
	before_last_words = screen_end;
	atexit(screen_end);
	fputs("\033[?1049h\033[?25l", stdout);
}

/* Whether it is to end. */
static bool rest(double seconds)
{
	struct pollfd in = { .fd = isatty(0) ? 0 : -1, .events = POLLIN };
	char key = 0;

	if (poll(&in, 1, (int)(seconds * 1000)) > 0 &&
	    (read(0, &key, 1) != 1 || key == 'q'))
		return true;
	return is_over;
}

/* Where nothing is a screen, one under the other. */
static void watch(double seconds)
{
	static struct sample before, now;
	bool is_screen = isatty(1);

	if (is_screen)
		screen_begin();
	do {
		look(&now);
		if (is_screen)
			fputs("\033[H\033[J", stdout);
		print_screen(&before, &now);
		if (is_screen)
			puts("\nq: quit");
		if (fflush(stdout))
			exit(1);
		before = now;
	} while (!rest(seconds));
}

static const char help[] =
	"Usage: plstat [OPTION]... PID\n"
	"What process PID, a program that uses parklot, does: a screen each second.\n"
	"\n"
	"  -1, --once             sums since its start, once\n"
	"  -j, --json             the same as a JSON object\n"
	"  -p, --prometheus       the same for Prometheus\n"
	"  -i, --interval=SECONDS between screens\n"
	"  -h, --help             this\n"
	"      --version          the version\n";

struct choice {
	void	(*print)(struct sample *s);
	bool	is_once;
	double	seconds;
};

static void choose(struct choice *c, int option)
{
	char *end = NULL;

	switch (option) {
	case '1':
		c->is_once = true;
		return;
	case 'j':
		c->print = print_json;
		return;
	case 'p':
		c->print = print_prometheus;
		return;
	case 'i':
		c->seconds = strtod(optarg, &end);
		if (*end || !(c->seconds >= 0.01 && c->seconds <= 86400))
			die_of_argument(optarg, "not an interval in seconds");
		return;
	case 'h':
		fputs(help, stdout);
		exit(0);
	case 'v':
		puts("plstat " PARKLOT_VERSION);
		exit(0);
	default:
		fputs(help, stderr);
		exit(2);
	}
}

static void set_pid(const char *s)
{
	char *end;
	long v = strtol(s, &end, 10);

	if (*end || v <= 0 || v > INT32_MAX)
		die_of_argument(s, "not the number of a process");
	pid = (pid_t)v;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "once", no_argument, NULL, '1' },
		{ "json", no_argument, NULL, 'j' },
		{ "prometheus", no_argument, NULL, 'p' },
		{ "interval", required_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	static struct sample none, s;
	struct choice c = { .seconds = 1 };
	int option;

	while ((option = getopt_long(argc, argv, "1jpi:h", options, NULL)) >= 0)
		choose(&c, option);
	if (argc - optind != 1)
		choose(&c, '?');
	set_pid(argv[optind]);
	find_table();
	if (!c.print && !c.is_once) {
		watch(c.seconds);
		return 0;
	}
	look(&s);
	if (c.print)
		c.print(&s);
	else
		print_screen(&none, &s);
	return fflush(stdout) ? 1 : 0;
}
