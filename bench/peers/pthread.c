// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Threads, with what the C library has for them
 */
#include <pthread.h>
#include <sched.h>

#include "../lib/bench.h"

#define NR_JOINED	5000
#define NR_TRIPS	20000
#define NR_THREADS	8
#define NR_COUNTS	250000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static uint32_t turn;
static uint64_t sum;

static pthread_t start(void *(*fn)(void *arg), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, arg))
		die("cannot start a thread");
	return t;
}

/* What one worker is to tasks. */
static void on_one_cpu(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("affinity: %s", strerror(errno));
}

static void *nothing(void *arg)
{
	return arg;
}

static void join_each(void)
{
	int i;

	bench_begin();
	for (i = 0; i < NR_JOINED; i++)
		pthread_join(start(nothing, NULL), NULL);
	bench_put_time("join", "ns", NR_JOINED);
}

static void *play(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;
	int i;

	for (i = 0; i < NR_TRIPS; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != me)
			pthread_cond_wait(&cond, &mutex);
		turn = !me;
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

static void both(void)
{
	pthread_t a, b;

	on_one_cpu();
	bench_begin();
	a = start(play, (void *)0);
	b = start(play, (void *)1);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	bench_put_busy("cond", NR_TRIPS);
}

static void *add_up(void *arg)
{
	int i;

	for (i = 0; i < NR_COUNTS; i++) {
		pthread_mutex_lock(&mutex);
		sum++;
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

static void contended(void)
{
	pthread_t threads[NR_THREADS];
	int i;

	bench_begin();
	for (i = 0; i < NR_THREADS; i++)
		threads[i] = start(add_up, NULL);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	bench_put_time("8_tasks", "ns", (double)NR_THREADS * NR_COUNTS);
}

int main(int argc, char **argv)
{
	static const struct bench_case spawn[] = {
		{ "join", join_each },
		{ NULL, NULL },
	};
	static const struct bench_case pingpong[] = {
		{ "cond", both },
		{ NULL, NULL },
	};
	static const struct bench_case mutexes[] = {
		{ "8_tasks", contended },
		{ NULL, NULL },
	};
	static const struct bench_subject subjects[] = {
		{ "spawn", spawn },
		{ "pingpong", pingpong },
		{ "mutex", mutexes },
		{ NULL, NULL },
	};

	return bench_main_of(argc, argv, subjects);
}
