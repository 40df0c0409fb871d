/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What every benchmark does: run its cases several times, print the medians
 *
 * A case is a function that measures once and says what came out of it with
 * bench_put().  Each run is a process of its own, so that none inherits the
 * memory, the threads or the luck of another; what has to be warm, a case
 * warms up itself.  C and C++.
 *
 * Prints for each result "subject case median min max unit", by tabs, and
 * behind that how wide min and max are apart if it is more than 15 % of the
 * median.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <getopt.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hist.h"
#include "util.h"

#define BENCH_RUNS_MAX	101
#define BENCH_NAMES_MAX	160
#define BENCH_SECONDS	60		/* a run that takes longer hangs */
#define BENCH_SWING	0.15

struct bench_case {
	const char *name;	/* NULL ends an array of them */
	void (*run)(void);
};

/* What came out under one name, of all runs. */
struct bench_result {
	char name[32];
	char unit[16];
	double value[BENCH_RUNS_MAX];
	unsigned int nr;
};

struct bench_opts {
	unsigned int runs;
	const char *only;
	bool list;
};

/* Where bench_put() writes to: the pipe of the run. */
static FILE *bench_out;

/* Of the case that runs. */
static const char *bench_name;

/* One result of this run. */
static inline void bench_put(const char *name, const char *unit, double value)
{
	fprintf(bench_out, "%s %s %.9g\n", name, unit, value);
}

/* A part of 100,000 of a histogram of nanoseconds, in microseconds. */
static inline void bench_put_us(const char *name, const struct hist *h,
				uint32_t per_100k)
{
	bench_put(name, "us", (double)hist_quantile(h, per_100k) / 1000);
}

static uint64_t bench_wall_ns, bench_cpu_ns;

static inline void bench_begin(void)
{
	bench_wall_ns = now_ns();
	bench_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/*
 * The time since bench_begin(), in parts of @unit_ns nanoseconds: by the
 * clock, and what all threads of the process had of the processors.
 */
static inline void bench_put_time(const char *name, const char *unit,
				  double unit_ns)
{
	uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - bench_cpu_ns;
	uint64_t wall_ns = now_ns() - bench_wall_ns;
	char text[32];

	bench_put(name, unit, (double)wall_ns / unit_ns);
	snprintf(text, sizeof(text), "%s.cpu", name);
	bench_put(text, unit, (double)cpu_ns / unit_ns);
}

/*
 * For work that keeps one thread busy and never sleeps: the CPU time of each
 * of @nr.  It is the same as the clock's on a machine that does nothing else,
 * and is not disturbed on one that does.
 */
static inline void bench_put_busy(const char *name, double nr)
{
	uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - bench_cpu_ns;

	bench_put(name, "ns", (double)cpu_ns / nr);
}

static inline int bench_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Puts them in order. */
static inline double bench_median(double *value, unsigned int nr)
{
	qsort(value, nr, sizeof(*value), bench_by_value);
	return (value[(nr - 1) / 2] + value[nr / 2]) / 2;
}

/* As many digits as mean something. */
static inline void bench_print_number(double v)
{
	printf("\t%.*f", v >= 1000 ? 0 : v >= 100 ? 1 : v >= 1 ? 2 : 4, v);
}

static inline void bench_print(const char *subject, struct bench_result *r)
{
	double median = bench_median(r->value, r->nr);
	double min = r->value[0], max = r->value[r->nr - 1];

	printf("%s\t%s", subject, r->name);
	bench_print_number(median);
	bench_print_number(min);
	bench_print_number(max);
	printf("\t%s", r->unit);
	if (max - min > BENCH_SWING * median && r->nr > 1)
		printf("\tswings %.0f %%", median > 0 ?
		       100 * (max - min) / median : 100.0);
	putchar('\n');
	fflush(stdout);
}

static inline void bench_keep(struct bench_result *results, const char *name,
			      const char *unit, double value)
{
	struct bench_result *r = results;

	while (r->nr && strcmp(r->name, name))
		r++;
	if (r == results + BENCH_NAMES_MAX || r->nr == BENCH_RUNS_MAX)
		die("%s: too many results", name);
	snprintf(r->name, sizeof(r->name), "%s", name);
	snprintf(r->unit, sizeof(r->unit), "%s", unit);
	r->value[r->nr++] = value;
}

__attribute__((noreturn))
static inline void bench_child(const struct bench_case *c, int fd)
{
	bench_out = fdopen(fd, "w");
	if (!bench_out)
		die("%s: %s", c->name, strerror(errno));
	bench_name = c->name;
	alarm(BENCH_SECONDS);
	c->run();
	fflush(bench_out);
	_exit(0);
}

static inline void bench_run(const struct bench_case *c,
			     struct bench_result *results)
{
	char name[32], unit[16];
	int fds[2], status;
	double value;
	FILE *in;
	pid_t pid;

	if (pipe(fds))
		die("pipe: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		close(fds[0]);
		bench_child(c, fds[1]);
	}
	close(fds[1]);
	in = fdopen(fds[0], "r");
	if (!in)
		die("%s: %s", c->name, strerror(errno));
	while (fscanf(in, "%31s %15s %lf", name, unit, &value) == 3)
		bench_keep(results, name, unit, value);
	fclose(in);
	if (waitpid(pid, &status, 0) != pid || status)
		die("%s: ended with status 0x%x", c->name, status);
}

/* Runs in turn over all cases, so that a bad moment hits each of them once. */
static inline void bench_run_all(const char *subject,
				 const struct bench_case *cases,
				 const struct bench_opts *o)
{
	struct bench_result *results, *r;
	const struct bench_case *c;
	unsigned int i;

	results = (struct bench_result *)zalloc(BENCH_NAMES_MAX + 1,
						sizeof(*results));
	for (i = 0; i < o->runs; i++) {
		for (c = cases; c->name; c++) {
			if (!o->only || !strcmp(o->only, c->name))
				bench_run(c, results);
		}
	}
	for (r = results; r->nr; r++)
		bench_print(subject, r);
	free(results);
}

static inline struct bench_opts bench_options(int argc, char **argv)
{
	static const char usage[] = "[--runs N] [--case NAME] [--list]";
	static const struct option options[] = {
		{ "case", required_argument, NULL, 'c' },
		{ "list", no_argument, NULL, 'l' },
		{ "runs", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	struct bench_opts o = { 5, NULL, false };
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'c')
			o.only = optarg;
		else if (opt == 'l')
			o.list = true;
		else if (opt == 'r')
			o.runs = whole(optarg, BENCH_RUNS_MAX);
		else
			die("usage: %s", usage);
	}
	if (optind < argc)
		die("usage: %s", usage);
	return o;
}

/* The main() of a benchmark. */
static inline int bench_main(int argc, char **argv, const char *subject,
			     const struct bench_case *cases)
{
	struct bench_opts o = bench_options(argc, argv);
	const struct bench_case *c;

	for (c = cases; o.list && c->name; c++)
		puts(c->name);
	if (!o.list)
		bench_run_all(subject, cases, &o);
	return 0;
}

struct bench_subject {
	const char *name;	/* NULL ends an array of them */
	const struct bench_case *cases;
};

/* The same of one that has several subjects: SUBJECT OPTION..., or "list". */
static inline int bench_main_of(int argc, char **argv,
				const struct bench_subject *subjects)
{
	const struct bench_subject *s;

	if (argc < 2)
		die("which subject, or list?");
	for (s = subjects; s->name; s++) {
		if (!strcmp(argv[1], s->name))
			return bench_main(argc - 1, argv + 1, s->name,
					  s->cases);
		if (!strcmp(argv[1], "list"))
			puts(s->name);
	}
	return strcmp(argv[1], "list") ? 2 : 0;
}

#endif /* BENCH_BENCH_H */
