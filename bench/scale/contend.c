// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What workers wait for as they become more: a simulation, by discrete events
 *
 * A worker goes from round to round.  A round takes its local time, and visits
 * cache lines on the way.  A line that another one wrote last has to be moved,
 * which takes TRANSFER ns, three times that from another socket; moves of one
 * line follow each other, and nobody else gets a line while its lock is held.
 * Costs, lines and paths are read from a file, see bench/scale/scale:
 *
 *	cost NAME NS
 *	line NAME COPIES WHICH HOLD_NS	COPIES 0: one a worker
 *	visit PATH LINE read|write TIMES
 *
 * WHICH of the copies: "own", that of the worker's number; "any", at random;
 * "all".
 */
#include <getopt.h>

#include "contend.h"
#include "contend_steal.h"

#define ROUNDS		2000	/* of each worker */
#define AHEAD_MAX	1024U	/* tasks of a thread that are alive */
#define SLEEPERS	1000U	/* a worker */
#define SLEEP_NS	1e6
#define IDLE_NS		1000

/* ---- the file ---- */

static bool read_cost(const char *text)
{
	struct cost *c = &sim.costs[sim.nr_costs];

	if (sscanf(text, "cost %23s %lf", c->name, &c->ns) != 2)
		return false;
	if (++sim.nr_costs == COSTS_MAX || c->ns < 0)
		die("cost %s: too many, or negative", c->name);
	return true;
}

static bool read_line(const char *text)
{
	struct line *l = &sim.lines[sim.nr_lines];
	char which[16];

	if (sscanf(text, "line %23s %u %15s %lf", l->name, &l->nr, which,
		   &l->hold_ns) != 4)
		return false;
	l->which = which[0] == 'o' ? OWN : which[1] == 'n' ? ANY :
								     ALL;
	if (++sim.nr_lines == LINES_MAX)
		die("too many lines");
	return true;
}

static bool read_visit(const char *text)
{
	char path[24], name[24], how[8];
	struct visit *v;
	struct path *p;
	double times;

	if (sscanf(text, "visit %23s %23s %7s %lf", path, name, how,
		   &times) != 4)
		return false;
	p = (struct path *)path_of(path);
	if (p->nr == VISITS_MAX)
		die("too many visits of %s", path);
	v = &p->visits[p->nr++];
	v->line = line_of(name);
	v->is_write = how[0] == 'w';
	v->times = times;
	return true;
}

/* Of what --with has, what is so anyway. */
static bool read_way(const char *text)
{
	if (!strcmp(text, "way timers\n"))
		sim.has_own_timers = true;
	else if (!strcmp(text, "way fan\n"))
		sim.has_fan = true;
	else
		return false;
	return true;
}

static void read_file(const char *name)
{
	FILE *f = fopen(name, "re");
	char text[256];

	if (!f)
		die("%s: %s", name, strerror(errno));
	while (fgets(text, sizeof(text), f))
		if (text[0] != '#' && !read_cost(text) && !read_line(text) &&
		    !read_visit(text) && !read_way(text))
			die("%s: not understood: %s", name, text);
	fclose(f);
}

/* ---- subjects in which each worker does its own ---- */

static const struct path *path;
static double local_ns;

static void did_one(struct actor *a)
{
	sim.nr_done++;
	sim.end_ns = a->now;
	sim.is_over = sim.nr_done == sim.nr_workers * ROUNDS;
	begin(a, path, local_ns, did_one);
}

/* Workers do not begin at the same instant. */
static void all_begin(const char *path_name, const char *cost)
{
	unsigned int i;

	path = path_of(path_name);
	local_ns = cost_of(cost);
	for (i = 0; i < sim.nr_workers; i++)
		resume(&sim.actors[i], random_part() * local_ns, did_one);
	sim.nr_done -= sim.nr_workers;
}

static void yields(void)
{
	all_begin("yield", "yield");
}

static void timers(void)
{
	all_begin("timer", "timer");
}

/* ---- sockets: some rounds end with a park ---- */

static double parks, park_ns;

static void did_echo(struct actor *a)
{
	did_one(a);
	a->then = did_echo;
	a->local_ns += park_ns;
	if (sim.nr_workers > 1 && random_part() < parks)
		add_path(a, path_of("park"));
}

static void echoes(void)
{
	unsigned int i;

	parks = cost_of("echo_parks");
	all_begin("echo", "echo");
	for (i = 0; i < sim.nr_workers; i++)
		sim.actors[i].then = did_echo;
}

/* Each round trip finds its worker parked, which one worker alone does too. */
static void parked_echoes(void)
{
	echoes();
	parks = 1;
	park_ns = cost_of("wake_call") + cost_of("wake_run");
}

/* ---- spawns by threads: one half of the processors for the other ---- */

static unsigned int nr_halves, ahead[WORKERS_MAX];
static double spawn_ns, run_ns;

static void spawned(struct actor *a);

static void ran(struct actor *a)
{
	unsigned int i = a->nr % nr_halves;
	struct actor *thread = &sim.actors[i];

	sim.nr_done++;
	sim.end_ns = a->now;
	sim.is_over = sim.nr_done == sim.nr_workers * ROUNDS;
	if (ahead[i]-- == AHEAD_MAX && thread->is_blocked)
		resume(thread, a->now, spawned);
	if (sim.nr_workers == 1)
		begin(a, path_of("thread_spawn"), spawn_ns, spawned);
	else if (ahead[i])
		begin(a, path_of("thread_run"), run_ns, ran);
	else
		block(a);
}

static void run_one(struct actor *a)
{
	begin(a, path_of("thread_run"), run_ns, ran);
}

/* By a thread; it begins with none spawned. */
static void spawned(struct actor *a)
{
	struct actor *worker = &sim.actors[(a->nr + nr_halves) %
					   sim.nr_workers];
	bool is_first = a->begun == a->now;

	if (!is_first)
		ahead[a->nr]++;
	if (sim.nr_workers == 1 && !is_first) {
		run_one(a);
		return;
	}
	if (ahead[a->nr] && worker->is_blocked)
		resume(worker, a->now, run_one);
	if (ahead[a->nr] == AHEAD_MAX)
		block(a);
	else
		begin(a, path_of("thread_spawn"), spawn_ns, spawned);
}

static void foreign(void)
{
	unsigned int i;

	nr_halves = sim.nr_workers > 1 ? sim.nr_workers / 2 : 1;
	spawn_ns = cost_of("foreign_spawn");
	run_ns = cost_of("foreign_work");
	for (i = 0; i < nr_halves; i++)
		resume(&sim.actors[i], random_part() * spawn_ns, spawned);
}

/* ---- sleeps: one thread fires all timers, or each worker its own ---- */

static unsigned int nr_asleep;		/* in order of their deadlines */
static double *due;
static unsigned int first_due, nr_ready, nr_taken[WORKERS_MAX];
static double fire_ns, work_ns;

static void worker_takes(struct actor *a);

static void fall_asleep(double until)
{
	due[(first_due + nr_asleep++) % (SLEEPERS * WORKERS_MAX)] = until;
}

static void slept(struct actor *a)
{
	sim.nr_done++;
	sim.end_ns = a->now;
	sim.is_over = sim.nr_done == sim.nr_workers * SLEEPERS * 4;
	fall_asleep(a->now + SLEEP_NS);
	worker_takes(a);
}

/* A thief takes one more than half of the rest, at most. */
static void worker_takes(struct actor *a)
{
	unsigned int nr = nr_ready / 2;

	if (!nr_taken[a->nr] && nr_ready) {
		nr = nr > STEAL_MAX ? STEAL_MAX : nr;
		nr_ready -= nr_taken[a->nr] = nr + 1;
		visit_copy(a, line_of("inbox"), 0, true);
	}
	if (!nr_taken[a->nr]) {
		block(a);
		return;
	}
	nr_taken[a->nr]--;
	begin(a, path_of("sleep"), work_ns, slept);
}

static void wake_idle_worker(double now)
{
	unsigned int i;

	for (i = 0; i < sim.nr_workers; i++)
		if (sim.actors[i].is_blocked) {
			resume(&sim.actors[i], now, worker_takes);
			return;
		}
}

static void fire(struct actor *a);

static void fired(struct actor *a)
{
	nr_ready++;
	wake_idle_worker(a->now);
	fire(a);
}

/* The thread sleeps until the first deadline. */
static void fire(struct actor *a)
{
	if (!nr_asleep || due[first_due] > a->now) {
		a->now = nr_asleep ? due[first_due] : a->now + IDLE_NS;
		begin(a, path_of("nothing"), 0, fire);
		return;
	}
	first_due = (first_due + 1) % (SLEEPERS * WORKERS_MAX);
	nr_asleep--;
	begin(a, path_of("fire"), fire_ns, fired);
}

/* With SLEEPERS tasks a worker none has more work than these give it. */
static void slept_apart(struct actor *a)
{
	sim.nr_done++;
	sim.end_ns = a->now;
	sim.is_over = sim.nr_done == sim.nr_workers * ROUNDS;
	if (a->now < a->begun + SLEEP_NS / SLEEPERS)
		a->now = a->begun + SLEEP_NS / SLEEPERS;
	begin(a, path_of("sleep"), fire_ns + work_ns, slept_apart);
}

static void sleep_apart(void)
{
	unsigned int i;

	for (i = 0; i < sim.nr_workers; i++)
		resume(&sim.actors[i], random_part() * SLEEP_NS / SLEEPERS,
		       slept_apart);
	sim.nr_done -= sim.nr_workers;
}

static void sleeps(void)
{
	unsigned int i;

	fire_ns = cost_of("sleep_fire");
	work_ns = cost_of("sleep");
	if (sim.has_own_timers || is_option("timers")) {
		sleep_apart();
		return;
	}
	due = zalloc(SLEEPERS * WORKERS_MAX, sizeof(*due));
	for (i = 0; i < sim.nr_workers * SLEEPERS; i++)
		fall_asleep((double)i * SLEEP_NS /
			    (sim.nr_workers * SLEEPERS));
	sim.actors[sim.nr_workers].is_server = true;
	resume(&sim.actors[sim.nr_workers], 0, fire);
}

/* ---- one subject ---- */

static void reset(unsigned int nr_actors)
{
	unsigned int i;
	struct line *l;

	sim.nr_actors = nr_actors;
	sim.actors = zalloc(nr_actors, sizeof(*sim.actors));
	sim.heap = zalloc(nr_actors, sizeof(struct actor *));
	for (i = 0; i < nr_actors; i++) {
		sim.actors[i].nr = i;
		sim.actors[i].is_blocked = true;
	}
	for (i = 0; i < sim.nr_lines; i++) {
		l = &sim.lines[i];
		l->nr_copies = l->nr && !is_option(l->name) ? l->nr :
							      nr_actors;
		l->copies = zalloc(l->nr_copies, sizeof(*l->copies));
	}
}

/* The line in which most time was lost, and how much an operation. */
static void print_loss(void)
{
	struct line *worst = &sim.lines[0];
	unsigned int i;

	for (i = 1; i < sim.nr_lines; i++)
		if (sim.lines[i].lost_ns > worst->lost_ns)
			worst = &sim.lines[i];
	printf("\t%s\t%.1f", worst->lost_ns > 0 ? worst->name : "-",
	       worst->lost_ns / sim.nr_done);
}

static void print_result(const char *name)
{
	double busy_ns = 0, end = sim.end_ns;
	unsigned int i;

	for (i = 0; i < sim.nr_actors; i++)
		if (!sim.actors[i].is_server)
			busy_ns += sim.actors[i].busy_ns;
	printf("%s\t%u\t%.6g\t%.4g\t%.4g", name, sim.nr_workers,
	       sim.is_time ? end / 1000 : sim.nr_done * 1e9 / end,
	       busy_ns / sim.nr_done, busy_ns / (end * sim.nr_workers));
	print_loss();
	printf("\t%.3f\n", sim.actors[sim.nr_workers].busy_ns / end);
}

static const struct subject {
	const char *name;
	void (*start)(void);
} subjects[] = {
	{ "yield", yields },
	{ "timer", timers },
	{ "echo", echoes },
	{ "echopark", parked_echoes },
	{ "foreign", foreign },
	{ "sleep", sleeps },
	{ "tree", contend_trees },
	{ "tree2m", contend_large_trees },
	{ "ramp", contend_ramp },
	{ NULL, NULL },
};

static void simulate(const char *name)
{
	const struct subject *s = subjects;

	while (s->name && strcmp(s->name, name))
		s++;
	if (!s->name)
		die("no subject '%s'", name);
	reset(sim.nr_workers + 1);
	s->start();
	run();
	print_result(name);
}

static const char usage[] =
"Usage: contend [OPTION]... FILE SUBJECT\n"
"Simulates a subject: yield, timer, echo, echopark (each parks), foreign, sleep,\n"
"tree (of 131071 tasks), tree2m (of 2097151) or ramp.  Prints by tabs: it;\n"
"workers; operations a second, or microseconds of a ramp; busy ns of workers for\n"
"each; their busy part; the line in which most time was lost, ns for each; how\n"
"busy the timer thread was.\n"
"\n"
"  --workers N    1 to 256 (1)\n"
"  --transfer NS  what a line costs from another processor (100)\n"
"  --socket N     processors of a socket (64)\n"
"  --seed N       of what is random (1)\n"
"  --with A,B     as if each worker had a copy of the line A of its own; and\n"
"                 \"timers\": each worker fires its own; \"wake\": a ramp wakes all\n"
"                 at once; \"half\": a thief takes half of a queue, however long;\n"
"                 \"fan\": a thief that finds two more wakes two\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "seed", required_argument, NULL, 'r' },
		{ "socket", required_argument, NULL, 's' },
		{ "transfer", required_argument, NULL, 't' },
		{ "with", required_argument, NULL, 'o' },
		{ "workers", required_argument, NULL, 'w' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	sim.nr_workers = 1;
	sim.socket = 64;
	sim.transfer_ns = 100;
	sim.random = 1;
	sim.with = "";
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r')
			sim.random = whole(optarg, 1U << 31);
		else if (opt == 's')
			sim.socket = whole(optarg, 1024);
		else if (opt == 't')
			sim.transfer_ns = number(optarg, 0, 10000);
		else if (opt == 'o')
			sim.with = optarg;
		else if (opt == 'w')
			sim.nr_workers = whole(optarg, 256);
		else if (opt == 'h')
			return fputs(usage, stdout) < 0;
		else
			die("see --help");
	}
	if (argc - optind != 2)
		die("a file and a subject are wanted, see --help");
	read_file(argv[optind]);
	simulate(argv[optind + 1]);
	return 0;
}
