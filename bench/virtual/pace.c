/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * How many workers run, and what follows from it, on a simulated machine.
 *
 *	SIM_CPUS=4 PARKLOT_SIM=1 pace LOAD
 *
 * runs a load for half a second of virtual time and prints a line: requests in
 * that, how late a request is served (p50, p99, the worst), processor time of
 * a request, and how many threads there are.  PARKLOT_WORKERS and
 * PARKLOT_ELASTIC are the library's.  scripts/results virtual has all of them.
 * The load has run for PACE_WARM_UP_MS before, 100 by default.
 *
 * Requests come to 64 connections, each a task that sleeps until the next one
 * is due and computes for 10 us, more or less.  Or they come by sockets from
 * one thread of another program, which takes as long for a request as the task
 * that answers; how late that is, is what it waits for.  Or they are spawned:
 * as trees, in bursts, by a thread that is no worker, or pass a token.
 */
#include "parklot.h"
#include "parklot/sim.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define NR_CONNECTIONS	64
#define MAX_REQUESTS	(1U << 20)
#define SERVICE_NS	10000
#define ANSWER_NS	5000
#define REQUEST_NS	5000
#define LONG_NS		10000000	/* a long one computes */
#define STUCK_NS	20000000	/* one that blocks does, before it */
#define LEAF_NS		2000		/* each task of a tree */
#define TREE_DEPTH	8
#define BURST		64
#define BURST_NS	2000000		/* a burst comes so often */
#define FOREIGN_NS	100000		/* the same of what a thread spawns */
#define WARM_UP_MS	100
#define LENGTH_NS	500000000ULL

static void grow_trees(void *arg);
static void burst(void *arg);
static void pass_token(void *arg);
static void *spawn_from_outside(void *arg);

static const struct load {
	const char	*name;
	double		busy;		/* of the processors; 0: all */
	int		nr_blockers;	/* that block for 5 ms each time */
	int		nr_hogs;	/* that compute for 20 ms each time */
	int		nr_neighbours;	/* of another program, on a processor */
	double		quota;		/* of the processors' time, for all */
	int		nr_answers;	/* that another program waits for */
	double		long_share;	/* requests that compute for 10 ms */
	double		stuck_share;	/* answers that block for 20 ms */
	uint32_t	nr_stuck;	/* of nr_answers, that always do */
	void		(*serve)(void *arg);	/* one task, beside no others */
	void		*(*foreign)(void *arg);	/* a thread, the same */
} loads[] = {
	{ "tenth",	.busy = 0.1 },
	{ "half",	.busy = 0.5 },
	{ "nine-tenths", .busy = 0.9 },
	{ "closed",	.busy = 0 },
	{ "blockers",	.busy = 0.3, .nr_blockers = 50 },
	{ "hog",	.busy = 0.3, .nr_hogs = 1 },
	{ "hogs",	.busy = 0.3, .nr_hogs = 4 },
	{ "long",	.busy = 0.5, .long_share = 0.01 },
	{ "beside",	.busy = 0.3, .nr_neighbours = 1 },
	{ "beside-closed", .busy = 0, .nr_neighbours = 1 },
	{ "quota",	.busy = 0.3, .quota = 0.75 },
	{ "quota-closed", .busy = 0, .quota = 0.75 },
	{ "quota-client", .nr_answers = 64, .quota = 0.75 },
	{ "client-8",	.nr_answers = 8 },
	{ "client-64",	.nr_answers = 64 },
	{ "client-long", .nr_answers = 64, .long_share = 0.01 },
	{ "client-stuck", .nr_answers = 64, .stuck_share = 0.1 },
	{ "client-crowd", .nr_answers = 48, .nr_stuck = 40 },
	{ "client-hogs", .nr_answers = 64, .nr_hogs = 2 },
	{ "tree",	.serve = grow_trees },
	{ "burst",	.serve = burst },
	{ "token",	.serve = pass_token },
	{ "foreign",	.foreign = spawn_from_outside },
};

static const struct load *load;
static uint64_t begin_ns, end_ns;
static uint32_t late_ns[MAX_REQUESTS];
static uint32_t nr_requests;

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x >> 11;
}

static double uniform(uint64_t *x)
{
	return ((double)next_random(x) + 0.5) / (double)(1ULL << 53);
}

/* Of one of the tasks; with another seed of the simulation it is another. */
static uint64_t chance_of(void *arg)
{
	uint64_t seed = (uint64_t)atoll(getenv("PARKLOT_SIM"));

	return 0x9e3779b97f4a7c15ULL *
	       ((uintptr_t)arg + 1 + (seed - 1) * NR_CONNECTIONS);
}

static uint64_t service_ns(uint64_t *x)
{
	if (uniform(x) < load->long_share)
		return LONG_NS;
	return SERVICE_NS / 2 + next_random(x) % SERVICE_NS;
}

/* Until the next request; in a closed load that is 20 us after the answer. */
static uint64_t pause_ns(uint64_t *x)
{
	double mean = SERVICE_NS * (1 - load->long_share) +
		      LONG_NS * load->long_share;
	double cpus = atof(getenv("SIM_CPUS"));

	if (load->busy == 0)
		return 20000;
	return (uint64_t)(-log(uniform(x)) * mean * NR_CONNECTIONS /
			  (load->busy * cpus));
}

static void note(uint64_t due_ns)
{
	uint64_t now = pl_now();

	if (due_ns < begin_ns || now > end_ns || nr_requests == MAX_REQUESTS)
		return;
	late_ns[nr_requests++] = (uint32_t)(now - due_ns);
}

static void serve(void *arg)
{
	uint64_t x = chance_of(arg);
	uint64_t due = pl_now() + pause_ns(&x);

	while (due < end_ns) {
		pl_sleep_until(due);
		pl_sim_compute(service_ns(&x));
		note(due);
		due = (load->busy == 0 ? pl_now() : due) + pause_ns(&x);
	}
}

static void block(void *arg)
{
	(void)arg;
	while (pl_now() < end_ns) {
		pl_sim_block(5000000);
		pl_sim_compute(20000);
		pl_yield();
	}
}

static void compute(void *arg)
{
	(void)arg;
	while (pl_now() < end_ns) {
		pl_sim_compute(20000000);
		pl_yield();
	}
}

/* ---- a client on the same machine ---- */

struct connection {
	int			fd, client_fd;
	uint64_t		sent_ns;
};

static struct connection connections[NR_CONNECTIONS];

/* It is there for what it does to others. */
static bool is_stuck(const struct connection *c)
{
	return c < connections + load->nr_stuck;
}

static void answer(void *arg)
{
	struct connection *c = &connections[(uintptr_t)arg];
	uint64_t x = chance_of(arg);
	double share;
	char byte;

	while (pl_recv(c->fd, &byte, 1, 0) == 1) {
		share = uniform(&x);
		if (share < load->stuck_share || is_stuck(c))
			pl_sim_block(STUCK_NS);
		pl_sim_compute(share < load->long_share ? LONG_NS : ANSWER_NS);
		if (pl_send(c->fd, &byte, 1, 0) != 1)
			break;
	}
}

static void request(struct connection *c)
{
	char byte = 0;

	pl_sim_compute(REQUEST_NS);
	if (c->sent_ns && recv(c->client_fd, &byte, 1, 0) != 1)
		abort();
	if (c->sent_ns && !is_stuck(c))
		note(c->sent_ns);
	c->sent_ns = pl_now();
	if (send(c->client_fd, &byte, 1, 0) != 1)
		abort();
}

static void *be_client(void *arg)
{
	struct epoll_event events[NR_CONNECTIONS];
	int i, nr, epfd = epoll_create1(0);

	for (i = 0; i < load->nr_answers; i++) {
		events[0].events = EPOLLIN;
		events[0].data.u32 = (uint32_t)i;
		if (epoll_ctl(epfd, EPOLL_CTL_ADD, connections[i].client_fd,
			      events))
			abort();
		request(&connections[i]);
	}
	while (pl_now() < end_ns) {
		nr = epoll_wait(epfd, events, NR_CONNECTIONS, -1);
		for (i = 0; i < nr; i++)
			request(&connections[events[i].data.u32]);
	}
	for (i = 0; i < load->nr_answers; i++)
		close(connections[i].client_fd);
	close(epfd);
	return arg;
}

static void connect_all(void)
{
	int i, fds[2];

	for (i = 0; i < load->nr_answers; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
			abort();
		connections[i].fd = fds[0];
		connections[i].client_fd = fds[1];
	}
}

/* ---- what tasks spawn ---- */

static void grow(void *arg)
{
	uintptr_t depth = (uintptr_t)arg;
	pl_task_t both[2];
	int i;

	pl_sim_compute(LEAF_NS);
	if (!depth)
		return;
	for (i = 0; i < 2; i++)
		if (pl_spawn(&both[i], grow, (void *)(depth - 1), NULL))
			abort();
	for (i = 0; i < 2; i++)
		pl_join(both[i]);
}

static void grow_trees(void *arg)
{
	uint64_t began;

	(void)arg;
	while ((began = pl_now()) < end_ns) {
		grow((void *)(uintptr_t)TREE_DEPTH);
		note(began);
	}
}

static void work_off(void *arg)
{
	pl_sim_compute(SERVICE_NS);
	note((uint64_t)(uintptr_t)arg);
}

static void burst(void *arg)
{
	uint64_t due = pl_now();
	pl_task_t task;
	int i;

	(void)arg;
	for (; due < end_ns; due += BURST_NS) {
		pl_sleep_until(due);
		for (i = 0; i < BURST; i++)
			if (pl_spawn(&task, work_off, (void *)due, NULL))
				abort();
	}
}

static void *spawn_from_outside(void *arg)
{
	pl_task_t task;
	uint64_t now;

	while ((now = pl_now()) < end_ns) {
		if (pl_spawn(&task, work_off, (void *)now, NULL))
			abort();
		pl_sleep(FOREIGN_NS);
	}
	return arg;
}

/* Two tasks, each of which wakes the other. */
static struct pl_sem tokens[2];

static void give_back(void *arg)
{
	(void)arg;
	while (pl_now() < end_ns) {
		pl_sem_wait(&tokens[0]);
		pl_sim_compute(LEAF_NS);
		pl_sem_post(&tokens[1], 1);
	}
}

static void pass_token(void *arg)
{
	uint64_t began;
	pl_task_t other;

	(void)arg;
	if (pl_spawn(&other, give_back, NULL, NULL))
		abort();
	while ((began = pl_now()) < end_ns) {
		pl_sem_post(&tokens[0], 1);
		pl_sim_compute(LEAF_NS);
		pl_sem_wait(&tokens[1]);
		note(began);
	}
	pl_sem_post(&tokens[0], 1);
	pl_join(other);
}

/* A thread of another program. */
static void *be_neighbour(void *arg)
{
	while (pl_now() < end_ns)
		pl_sim_compute(100000);
	return arg;
}

static void add_neighbours(pthread_t *threads, int nr)
{
	while (nr--)
		if (pthread_create(&threads[nr], NULL, be_neighbour, NULL))
			abort();
}

static void spawn(pl_task_t *tasks, int *nr, int more, void (*fn)(void *arg))
{
	while (more--) {
		if (pl_spawn(&tasks[*nr], fn, (void *)(uintptr_t)*nr, NULL))
			abort();
		++*nr;
	}
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double late_us(double share)
{
	return nr_requests ?
	       late_ns[(uint32_t)(share * (nr_requests - 1))] / 1e3 : 0;
}

static double cpu_us(void)
{
	struct pl_stat_worker w = PL_STAT_WORKER_INIT;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; !pl_stat_worker(i, &w); i++)
		sum += w.cpu_ns;
	return (double)sum / 1e3;
}

static uint64_t warm_up_ns(void)
{
	const char *ms = getenv("PACE_WARM_UP_MS");

	return (ms ? strtoull(ms, NULL, 10) : WARM_UP_MS) * 1000000;
}

/* What is used before it counts goes to @used_us. */
static void run(double *used_us)
{
	int nr = 0, i, nr_neighbours = load->nr_neighbours *
				       atoi(getenv("SIM_CPUS"));
	void *(*thread)(void *arg) = load->nr_answers ? be_client :
							load->foreign;
	pthread_t neighbours[64], outside;
	pl_task_t tasks[512];

	begin_ns = pl_now() + warm_up_ns();
	end_ns = begin_ns + LENGTH_NS;
	add_neighbours(neighbours, nr_neighbours);
	connect_all();
	if (load->nr_answers)
		spawn(tasks, &nr, load->nr_answers, answer);
	else if (load->serve)
		spawn(tasks, &nr, 1, load->serve);
	else if (!load->foreign)
		spawn(tasks, &nr, NR_CONNECTIONS, serve);
	if (thread && pthread_create(&outside, NULL, thread, NULL))
		abort();
	spawn(tasks, &nr, load->nr_blockers, block);
	spawn(tasks, &nr, load->nr_hogs, compute);
	pl_sleep_until(begin_ns);
	*used_us = cpu_us();
	while (nr)
		pl_join(tasks[--nr]);
	if (thread)
		pthread_join(outside, NULL);
	for (i = 0; i < nr_neighbours; i++)
		pthread_join(neighbours[i], NULL);
}

/* Begins again with the quota: it is there from the first instant on. */
static void set_quota(char **argv)
{
	char percent[16];

	if (!load->quota || getenv("SIM_QUOTA"))
		return;
	snprintf(percent, sizeof(percent), "%.0f",
		 100 * load->quota * atoi(getenv("SIM_CPUS")));
	setenv("SIM_QUOTA", percent, 1);
	execv("/proc/self/exe", argv);
	abort();
}

int main(int argc, char **argv)
{
	struct pl_stat st = PL_STAT_INIT;
	double used_us;
	size_t i;

	for (i = 0; argc == 2 && i < sizeof(loads) / sizeof(*loads); i++)
		if (!strcmp(argv[1], loads[i].name))
			load = &loads[i];
	if (!load || !getenv("SIM_CPUS") || !getenv("PARKLOT_SIM")) {
		fprintf(stderr, "usage: SIM_CPUS=N PARKLOT_SIM=1 %s LOAD\n",
			argv[0]);
		for (i = 0; i < sizeof(loads) / sizeof(*loads); i++)
			fprintf(stderr, "  %s\n", loads[i].name);
		return 2;
	}
	set_quota(argv);
	run(&used_us);
	pl_stat_read(&st);
	qsort(late_ns, nr_requests, sizeof(*late_ns), compare);
	printf("%-13s %8u %9.1f %9.1f %9.1f %8.2f %u\n", load->name,
	       nr_requests, late_us(0.5), late_us(0.99), late_us(1),
	       nr_requests ? (cpu_us() - used_us) / nr_requests : 0,
	       st.workers);
	return 0;
}
