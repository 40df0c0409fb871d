/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker_thread: how the thread of a worker begins and ends
 */
#include "sched.h"
#include "ring.h"
#include "sys.h"

/* A task called pthread_exit(): neither it nor those behind it ever end. */
static void gone(void *arg)
{
	struct pl__worker *w = arg;

	fprintf(stderr, "parklot: task '%s' ended its worker, by pthread_exit()\n",
		w->current ? pl__task_name(w->current) : "?");
	abort();
}

static void *worker_main(void *arg)
{
	struct pl__worker *w = arg;
	void *sigstack;
	char name[16];

	/* Until whoever starts us has counted us, and dropped it. */
	pl__lock(&pl__rt.start_lock);
	pl__unlock(&pl__rt.start_lock);

	snprintf(name, sizeof(name), "pl-worker/%u", w->index);
	pl__thread_name(name);
	store_relaxed(&w->tid, pl__thread_id());
	pl__self_set(w);
	pl__self_is_own();
	pl__self_guard(w, gone);
	pl__stack_thread_init(&sigstack);
	pl__ctx_thread(&w->loop);
	atomic_store(&w->hand, pl__crew_join(&pl__rt.lots, w->index));
	pl__worker_run(w);

	pl__self_unguard();
	pl__stack_thread_fini(sigstack);
	pl__self_set(NULL);
	return NULL;
}

static struct pl__worker *worker_new(uint32_t index, bool has_token)
{
	struct pl__worker *w = pl__alloc_aligned(PL_CACHELINE, sizeof(*w));

	if (!w)
		return NULL;
	if (pl__deque_init(&w->deque, 256)) {
		pl__free(w);
		return NULL;
	}
	w->index = index;
	w->lot = index % pl__rt.cfg.nr_lots;
	w->rng = 0x9e3779b9U * (index + 1) | 1;
	w->is_searching = has_token;
	list_init(&w->park.list);
	return w;
}

static void worker_free(struct pl__worker *w)
{
	pl__slab_cache_drain(&pl__rt.tasks, &w->tasks);
	pl__stack_cache_drain(&pl__rt.stacks, &w->stacks);
	if (w->ring)
		pl__ring_close(w->ring);
	if (load_relaxed(&w->watched.stat_plus_1))
		pl__close(load_relaxed(&w->watched.stat_plus_1) - 1);
	pl__deque_fini(&w->deque);
	pl__free(w);
}

static int start_next(bool has_token)
{
	uint32_t i = load_relaxed(&pl__rt.nr_started);
	uint32_t state = load_relaxed(&pl__rt.state);
	struct pl__worker *w;
	int ret;

	/* Those that are started at once nobody has called for. */
	if (has_token ? !pl__is_start_due() : i >= pl__rt.cfg.max_workers)
		return -EBUSY;
	if (state == PL__RT_DRAINED || state == PL__RT_STOPPED)
		return -ECANCELED;
	w = worker_new(i, has_token);
	pl__rt.workers[i] = w;
	ret = w ? pl__thread_start(&w->thread, worker_main, w) : -ENOMEM;
	if (ret) {
		pl__rt.workers[i] = NULL;
		if (w)
			worker_free(w);
		pl__try_later();
		return ret;
	}
	store_release(&pl__rt.nr_started, i + 1);
	return 0;
}

int pl__worker_start(bool has_token)
{
	int ret;

	pl__lock(&pl__rt.start_lock);
	ret = start_next(has_token);
	pl__unlock(&pl__rt.start_lock);
	return ret;
}

void pl__worker_join_all(void)
{
	uint32_t nr, i;

	/* Whoever starts one now sees the state under the lock. */
	pl__lock(&pl__rt.start_lock);
	nr = load_relaxed(&pl__rt.nr_started);
	pl__unlock(&pl__rt.start_lock);

	for (i = 0; i < nr; i++)
		pthread_join(pl__rt.workers[i]->thread, NULL);
}

void pl__worker_free_all(void)
{
	uint32_t nr = load_relaxed(&pl__rt.nr_started), i;

	store_relaxed(&pl__rt.nr_started, 0);
	for (i = 0; i < nr; i++)
		worker_free(pl__rt.workers[i]);
}
