/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/ctx/switch: contexts that go on on another thread than they left.
 */
#include "kselftest_harness.h"

#include "ctx.h"

#include <pthread.h>
#include <sched.h>

/*
 * Threads that take contexts from one queue, run each for a while and put it
 * back, after the switch: only then may another thread take it.
 */
#define NR_MIGRANTS	64
#define NR_HOPS		200
#define NR_THREADS	4

struct migrant {
	struct pl__ctx	ctx;
	struct migrant	*next;
	struct pl__ctx	*back;	/* the thread that runs it */
	void		*stack;
	unsigned int	hops;
	unsigned int	nr_bad;
	bool		done;
};

struct hall {
	pthread_mutex_t	lock;
	struct migrant	*first;
	struct migrant	**last;
	unsigned int	nr_left;
};

static void hall_put(struct hall *hall, struct migrant *m)
{
	pthread_mutex_lock(&hall->lock);
	m->next = NULL;
	*hall->last = m;
	hall->last = &m->next;
	pthread_mutex_unlock(&hall->lock);
}

static struct migrant *hall_get(struct hall *hall, bool *over)
{
	struct migrant *m;

	pthread_mutex_lock(&hall->lock);
	*over = !hall->nr_left;
	m = hall->first;
	if (m) {
		hall->first = m->next;
		if (!hall->first)
			hall->last = &hall->first;
	}
	pthread_mutex_unlock(&hall->lock);
	return m;
}

static __attribute__((noinline)) unsigned int hop(struct migrant *m, int depth)
{
	volatile unsigned int local = m->hops;

	if (depth)
		return hop(m, depth - 1) + (local != m->hops - 1);
	m->hops++;
	pl__ctx_switch(&m->ctx, m->back);
	return local != m->hops - 1;
}

static void migrant_entry(void *arg)
{
	struct migrant *m = arg;

	while (m->hops < NR_HOPS)
		m->nr_bad += hop(m, m->hops % 8);
	m->done = true;
	pl__ctx_switch_last(&m->ctx, m->back);
}

static void *hall_thread(void *arg)
{
	struct hall *hall = arg;
	struct pl__ctx self;
	struct migrant *m;
	bool over;

	pl__ctx_thread(&self);
	for (;;) {
		m = hall_get(hall, &over);
		if (over)
			return NULL;
		if (!m) {
			sched_yield();
			continue;
		}
		m->back = &self;
		pl__ctx_switch(&self, &m->ctx);
		if (!m->done) {
			hall_put(hall, m);
			continue;
		}
		pl__ctx_fini(&m->ctx);
		pthread_mutex_lock(&hall->lock);
		hall->nr_left--;
		pthread_mutex_unlock(&hall->lock);
	}
}

TEST(contexts_migrate_between_threads)
{
	static struct migrant migrants[NR_MIGRANTS];
	struct hall hall = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.last = &hall.first,
		.nr_left = NR_MIGRANTS,
	};
	pthread_t threads[NR_THREADS];
	unsigned int i;

	for (i = 0; i < NR_MIGRANTS; i++) {
		migrants[i].stack = stack_new();
		pl__ctx_init(&migrants[i].ctx, migrants[i].stack, STACK_SIZE,
			     migrant_entry, &migrants[i]);
		hall_put(&hall, &migrants[i]);
	}
	for (i = 0; i < NR_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, hall_thread,
					    &hall));
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < NR_MIGRANTS; i++) {
		EXPECT_EQ(NR_HOPS, migrants[i].hops);
		EXPECT_EQ(0, migrants[i].nr_bad);
		stack_free(migrants[i].stack);
	}
}

TEST_HARNESS_MAIN
