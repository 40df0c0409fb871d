/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "queue/latency.h"
#include "ctx/self.h"
#include "queue/aside.h"

/* Time between samples of a worker: with less the distance grows. */
#define SAMPLES_NEAR_NS	(500 * 1000ULL)
/* With more each spawn is sampled. */
#define SAMPLES_FAR_NS	(5 * 1000 * 1000ULL)

/* The first function of a task that was sampled. */
static __pl_entry void spawn_sample_run(void *arg)
{
	struct pl__task *t = pl__current();
	uint64_t ready_ns = t->waiter.ready_ns;
	_Atomic uint64_t *watched;

	t->fn = t->sampled_fn;
	t->locals = NULL;
	watched = &pl__rt.outside[ready_ns % PL__NR_STRIPES].sampled_ns;
	if (load_relaxed(watched) == ready_ns)
		store_relaxed(watched, 0);
	pl__latency_hist_add(&pl__self()->spawn_latency, ready_ns);
	t->fn(arg);
}

/* The low bits of the time, which is rounded up, say whose stripe it is in. */
static void spawn_sample_at(struct pl__task *t, uint64_t now)
{
	struct pl__stripe *s = pl__stripe();
	uint64_t ns = (now | (PL__NR_STRIPES - 1)) + 1 +
		      (uint64_t)(s - pl__rt.outside);

	/* For how long a background task waits does not tell of the load. */
	if (pl__is_background(t))
		return;
	if (!load_relaxed(&s->sampled_ns))
		store_relaxed(&s->sampled_ns, ns);
	t->waiter.ready_ns = ns;
	t->sampled_fn = t->fn;
	t->fn = spawn_sample_run;
}

void pl__spawn_sample(struct pl__task *t)
{
	spawn_sample_at(t, pl__now_ns());
}

void pl__spawn_sample_by(struct pl__worker *w, struct pl__task *t)
{
	uint64_t now = pl__now_ns(), past = now - w->sampled_ns;

	if (past > SAMPLES_FAR_NS)
		w->spawns_unsampled = 0;
	else if (past < SAMPLES_NEAR_NS &&
		 w->spawns_unsampled < PL__SAMPLE_MOST - 1)
		w->spawns_unsampled = 2 * w->spawns_unsampled + 1;
	w->sampled_ns = now;
	w->spawns_to_sample = w->spawns_unsampled;
	spawn_sample_at(t, now);
}

void (*pl__task_fn(const struct pl__task *t))(void *arg)
{
	return t->fn == spawn_sample_run ? t->sampled_fn : t->fn;
}
