// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * plstat - what a running program of parklot's does
 *
 * Reads the counters where they are, by process_vm_readv(2), as
 * lib/debug/stat_export.h says: the program does nothing for it, and may as
 * well be stopped.  The kernel allows it to users that may trace.
 */
#include "format.h"
#include "running.h"
#include "sample.h"

#include <dirent.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

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
	{ "limit", "max_tasks", "at most",
	  { "spawns_refused", "spawns_waited" }, { "refused", "waited" } },
	{ "switches", NULL, NULL, { "switches", "steals" },
	  { "switches", "steals" } },
	{ "load", "workers_active", "workers for it",
	  { "active_raised", "active_lowered" },
	  { "times more", "times fewer" } },
	{ "for", NULL, NULL,
	  { "raised_waits", "raised_stuck", "raised_trial" },
	  { "waits", "stuck", "trials" } },
	{ "parking", NULL, NULL, { "parks", "wakes", "wakes_empty" },
	  { "parks", "wakes", "empty wakes" } },
	{ "blocking", NULL, NULL, { "blocks", "all_blocked" },
	  { "blocks", "times all blocked" } },
	{ "crowds", NULL, NULL, { "set_aside", "spares" },
	  { "set aside", "spares started" } },
	{ "background", "background_ready", "ready", { "background_late" },
	  { "run before others" } },
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
		if (i)
			printf("%s", i % 2 ? "    " : "\n         ");
		print_delay(before->nr_delays == s->nr_delays ?
			    &before->delays[i] : NULL, &s->delays[i]);
	}
	putchar('\n');
}

/* Those that the program has made, each by the number that it has there. */
static void print_groups(const struct sample *s)
{
	const struct group *g;
	uint32_t i;

	for (i = 1; i < s->nr_groups; i++) {
		g = &s->group[i];
		printf("group %-2u %7" PRIu64 " started: %" PRIu64 " parked, %" PRIu64
		       " blocked, %" PRIu64 " to run  %s\n", i + 1, g->workers,
		       g->parked, g->blocked, g->active, g->name);
	}
}

/* Sums since the beginning if there is none @before. */
static void print_screen(struct sample *before, struct sample *s)
{
	size_t i, j;

	printf("parklot %.16s, process %d, ", table.library, pid);
	if (s->is_running)
		printf("%s, runs for %.1f s\n", backend_name(s), uptime(s));
	else
		puts("does not run");
	printf("workers  %7" PRIu64 " started: %" PRIu64 " run, %" PRIu64
	       " parked, %" PRIu64 " blocked\n", get(s, "workers"),
	       get(s, "workers_running"), get(s, "workers_parked"),
	       get(s, "workers_blocked"));
	print_groups(s);
	if (s->is_running)
		print_running();
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

static volatile sig_atomic_t is_over;
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

/* ---- all processes ---- */

static void print_process(void)
{
	static struct sample s;
	char path[64], name[16] = "?";
	FILE *comm;

	find_table();
	look(&s);
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	comm = fopen(path, "re");
	if (comm && fgets(name, sizeof(name), comm))
		name[strcspn(name, "\n")] = '\0';
	printf("%7d %-8.16s %-8s %-8s %7" PRIu64 " %8" PRIu64 " %9.0f %s\n", pid,
	       table.library, backend_name(&s), io_name(&s), get(&s, "workers"),
	       get(&s, "tasks_alive"), s.is_running ? uptime(&s) : 0.0, name);
	exit(fflush(stdout) ? 1 : 0);
}

/* A child looks, which ends without a word if something is in the way. */
static void list_process(pid_t of)
{
	const pid_t child = fork();

	if (child < 0)
		die("cannot fork: %s", strerror(errno));
	if (child) {
		waitpid(child, NULL, 0);
		return;
	}
	pid = of;
	if (freopen("/dev/null", "w", stderr))
		print_process();
	_exit(1);
}

/* That it has memory, as the kernel's threads have not; or why not. */
static int has_memory(pid_t of)
{
	char path[64];
	FILE *maps;
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/maps", of);
	errno = 0;
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	ret = fgetc(maps) == EOF ? -errno : 1;
	fclose(maps);
	return ret;
}

static void list(void)
{
	DIR *proc = opendir("/proc");
	unsigned int nr_others = 0;
	struct dirent *entry;
	pid_t of;
	int ret;

	if (!proc)
		die("/proc: %s", strerror(errno));
	puts("    PID VERSION  BACKEND  IO       WORKERS    TASKS   SECONDS COMMAND");
	fflush(stdout);
	while ((entry = readdir(proc))) {
		of = (pid_t)atoi(entry->d_name);
		ret = of > 0 && of != getpid() ? has_memory(of) : 0;
		if (ret > 0)
			list_process(of);
		nr_others += ret == -EACCES || ret == -EPERM;
	}
	closedir(proc);
	if (nr_others)
		fprintf(stderr, "plstat: processes of others, not looked at: %u\n",
			nr_others);
}

static const char help[] =
	"Usage: plstat [OPTION]... [PID]\n"
	"What process PID, a program that uses parklot, does: a screen each second.\n"
	"Without PID and options: the processes that use parklot.\n"
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
	if (argc == 1) {
		list();
		return 0;
	}
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
