/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * worker_thread: start and end of a worker's thread
 *
 * A thread ends with the runtime, or when its worker is surplus for the idle
 * timeout.  The next thread that ends joins it; the thread that stops the
 * runtime joins the last.  So at most one ended thread is not joined.
 */
#include "pace/worker_thread.h"
#include "queue/ready.h"
#include "pace/kept.h"
#include "queue/place.h"
#include "pace/pace.h"
#include "pace/notify.h"
#include "base/inject.h"
#include "ring/ring.h"
#include "base/sys.h"

void (*pl__worker_run)(struct pl__worker *w);

/* A task called pthread_exit(): neither it nor the tasks behind it ever end. */
static void gone(void *arg)
{
	struct pl__worker *w = arg;

	fprintf(stderr, "parklot: task '%s' ended its worker, by pthread_exit()\n",
		w->current ? pl__task_name(w->current) : "?");
	abort();
}

/* The crew counts a spare as idle, see aside.h. */
static void worker_join_crew(struct pl__worker *w)
{
	_Atomic uint32_t *crew_word = pl__crew_join(&w->group->lots, w->index);

	if (crew_word && pl__is_spare(w))
		store_relaxed(crew_word, 1);
	atomic_store(&w->crew_word, crew_word);
}

static void *worker_main(void *arg)
{
	struct pl__worker *w = arg;
	void *sigstack;
	char name[16];

	/*
	 * Waits until the starter has counted this worker and dropped the lock.
	 */
	pl__lock(&pl__rt.start_lock);
	store_relaxed(&w->tid, pl__thread_id());
	pl__pin_worker(w);
	pl__unlock(&pl__rt.start_lock);

	snprintf(name, sizeof(name), "pl-worker/%u", w->number);
	pl__thread_name(name);
	/* Tasks sleep in it until their deadlines. */
	pl__thread_slack(1);
	w->errno_at = pl__errno_at();
	pl__own_waits_count_in(&w->own_waits);
	pl__self_set(w);
	pl__self_is_own();
	pl__self_guard(w, gone);
	pl__stack_thread_init(&sigstack);
	pl__ctx_thread(&w->loop);
	PL_INJECT("join");
	worker_join_crew(w);
	pl__worker_run(w);
	/* Another thread may be @w by now. */

	pl__self_unguard();
	pl__stack_thread_fini(sigstack);
	pl__self_set(NULL);
	return NULL;
}

static struct pl__worker *worker_new(struct pl__group *g, uint32_t index)
{
	struct pl__worker *w = pl__alloc_aligned(PL_CACHELINE, sizeof(*w));

	if (!w)
		return NULL;
	if (pl__deque_init(&w->deque, 256))
		goto err_free;
	if (pl__deque_init(&w->events, 256))
		goto err_deque;
	w->index = index;
	w->group = g;
	w->place = pl__group_place(g);
	w->number = load_relaxed(&pl__rt.nr_started);
	w->lot = index % g->lots.nr;
	w->inbox = pl__inbox_of(g, index);
	w->inbox_turn = index * PL__INBOXES_IN_TURN;
	w->rng = 0x9e3779b9U * (index + 1) | 1;
	w->next_late = index;
	w->event_mask = PL__NO_EVENTS;
	list_init(&w->park.list);
	return w;

err_deque:
	pl__deque_fini(&w->deque);
err_free:
	pl__free(w);
	return NULL;
}

static void worker_free(struct pl__worker *w)
{
	pl__slab_cache_drain(&pl__rt.tasks, &w->tasks);
	pl__stack_cache_drain(&pl__rt.stacks, &w->stacks);
	if (w->ring)
		pl__ring_close(w->ring);
	if (load_relaxed(&w->sysmon.stat_plus_1))
		pl__close(load_relaxed(&w->sysmon.stat_plus_1) - 1);
	pl__deque_fini(&w->events);
	pl__deque_fini(&w->deque);
	pl__free(w);
}

/* A slot without a thread, or NULL. */
static struct pl__worker *vacant(struct pl__group *g)
{
	uint32_t nr = load_relaxed(&g->nr_started), i;

	if (nr == load_relaxed(&g->nr_alive))
		return NULL;
	for (i = 0; i < nr; i++)
		if (!g->workers[i]->has_thread)
			return g->workers[i];
	return NULL;
}

enum start_as {
	START_RESERVE,
	START_SEARCHER,
	START_SPARE,
};

/* The new thread waits for start_lock until it is counted. */
static int worker_begin(struct pl__group *g, struct pl__worker *w,
			enum start_as as)
{
	int ret;

	w->is_searching = as == START_SEARCHER;
	w->spare_task = NULL;
	pl__duty(w, as == START_SPARE ? PL__STARTS_AS_SPARE : PL__STARTS);
	ret = pl__timers_start_thread(pl__rt.timers, &w->thread, worker_main,
				      w);
	if (ret) {
		pl__duty(w, PL__ENDS);
		return ret;
	}
	pl__thread_stack(w->thread, &w->thread_stack);
	w->has_thread = true;
	w->is_starting = true;
	atomic_fetch_add(&g->nr_starting, 1);
	return 0;
}

static int begin_in_new_slot(struct pl__group *g, enum start_as as)
{
	uint32_t i = load_relaxed(&g->nr_started);
	struct pl__worker *w = worker_new(g, i);
	int ret;

	if (!w)
		return -ENOMEM;
	g->workers[i] = w;
	pl__rt.workers[w->number] = w;
	ret = worker_begin(g, w, as);
	if (ret) {
		g->workers[i] = NULL;
		pl__rt.workers[w->number] = NULL;
		worker_free(w);
		return ret;
	}
	store_release(&g->nr_started, i + 1);
	store_release(&pl__rt.nr_started, w->number + 1);
	return 0;
}

/*
 * Sysmon's count may be of blocks that are over, and so count a worker twice
 * that is a spare by now.  Sysmon raises it again.
 */
static void crew_count_lower(struct pl__group *g)
{
	uint32_t nr = load_relaxed(&g->nr_crew_blocked);
	uint32_t now = pl__crew_nr_blocked(&g->lots);

	if (now < nr)
		atomic_compare_exchange_strong(&g->nr_crew_blocked, &nr,
					       now);
}

static bool is_start_refused(struct pl__group *g, enum start_as as)
{
	/* A worker in reserve is started without a notification. */
	if (as != START_SEARCHER)
		return load_relaxed(&g->nr_alive) >=
			       g->max_workers ||
		       (as == START_SPARE && !pl__is_spare_due(g));
	crew_count_lower(g);
	return !pl__is_start_due(g);
}

static int start_next(struct pl__group *g, enum start_as as)
{
	uint32_t state = load_relaxed(&pl__rt.state);
	struct pl__worker *w;
	int ret;

	/* What is not above the target is no spare. */
	if (as == START_SPARE &&
	    load_relaxed(&g->nr_alive) < load_relaxed(&g->active))
		as = START_RESERVE;
	if (is_start_refused(g, as))
		return -EBUSY;
	if (state == PL__RT_DRAINED || state == PL__RT_STOPPED)
		return -ECANCELED;
	w = vacant(g);
	ret = w ? worker_begin(g, w, as) : begin_in_new_slot(g, as);
	store_relaxed(&g->start_error, ret);
	if (ret)
		pl__retry_later();
	else
		atomic_fetch_add(&g->nr_alive, 1);
	return ret;
}

static int worker_start_as(struct pl__group *g, enum start_as as)
{
	int ret;

	pl__lock(&pl__rt.start_lock);
	ret = start_next(g, as);
	pl__unlock(&pl__rt.start_lock);
	return ret;
}

int pl__worker_start(struct pl__group *g, bool is_searcher)
{
	return worker_start_as(g, is_searcher ? START_SEARCHER : START_RESERVE);
}

int pl__worker_start_spare(struct pl__group *g)
{
	int ret = worker_start_as(g, START_SPARE);

	if (!ret)
		atomic_fetch_add(&g->aside.nr_spares, 1);
	return ret;
}

/* ---- surplus workers ---- */

_Atomic uint64_t pl__idle_timeout_ns = 5 * NSEC_PER_SEC;

static uint32_t nr_to_end(struct pl__group *g)
{
	uint32_t alive = load_relaxed(&g->nr_alive);
	uint32_t nr = load_relaxed(&g->target);

	if (nr < g->min_workers)
		nr = g->min_workers;
	return alive > nr + 1 ? alive - (nr + 1) : 0;
}

bool pl__is_end_due(struct pl__group *g)
{
	return nr_to_end(g);
}

/* Under start_lock: gives up all that the slot's next thread is to have. */
static void worker_give_up(struct pl__worker *w)
{
	struct pl__group *g = w->group;
	_Atomic uint32_t *crew_word = load_relaxed(&w->crew_word);

	pl__kept_give_up(w);
	pl__slab_cache_drain(&pl__rt.tasks, &w->tasks);
	pl__stack_cache_drain(&pl__rt.stacks, &w->stacks);
	if (crew_word) {
		pl__crew_leave(&g->lots, w->index);
		store_relaxed(crew_word, 0);
		atomic_store(&w->crew_word, NULL);
	}
	counter_add(&w->stat.cpu_past_ns, pl__thread_cpu_ns(pthread_self()));
	store_relaxed(&w->tid, 0);
	pl__own_waits_count_in(NULL);
	pl__self_set(NULL);
	w->has_thread = false;

	/* [end-a] pairs with [idle-b] in pl__notify_one(). */
	atomic_fetch_sub(&g->nr_alive, 1);
	PL_INJECT("end-a");
	pl__duty(w, PL__ENDS);
}

/*
 * From here on the caller is an ordinary thread; another thread may be the
 * worker.
 */
static void worker_thread_end(struct pl__group *g, pthread_t before,
			      bool has_before)
{
	pl__full_barrier();
	PL_INJECT("end-a");
	pl__notify_if_work(g);
	if (has_before)
		pthread_join(before, NULL);
}

bool pl__worker_end(struct pl__worker *w)
{
	struct pl__group *g = w->group;
	pthread_t before;
	bool has_before, ends;

	/*
	 * Keeps the runtime from being taken apart until this thread is
	 * through.
	 */
	if (!pl__rt_enter())
		return false;
	pl__lock(&pl__rt.start_lock);
	/* The kernel cancels the requests of a thread that ends. */
	ends = nr_to_end(g) > pl__nr_blocked(g) +
			     load_relaxed(&g->nr_stalled) &&
	       !load_relaxed(&w->nr_for_others);
	if (ends) {
		before = pl__rt.ended;
		has_before = pl__rt.has_ended;
		pl__rt.ended = w->thread;
		pl__rt.has_ended = true;
		worker_give_up(w);
	}
	pl__unlock(&pl__rt.start_lock);
	if (ends)
		worker_thread_end(g, before, has_before);
	pl__rt_exit();
	return ends;
}

/* ---- all of them ---- */

void pl__worker_join_all(struct pl__group *g)
{
	uint32_t nr, i;

	/*
	 * A thread that starts a worker from now on sees the state under the
	 * lock.
	 */
	pl__lock(&pl__rt.start_lock);
	nr = load_relaxed(&g->nr_started);
	pl__unlock(&pl__rt.start_lock);

	for (i = 0; i < nr; i++)
		if (g->workers[i]->has_thread)
			pthread_join(g->workers[i]->thread, NULL);
}

void pl__worker_join_ended(void)
{
	if (pl__rt.has_ended)
		pthread_join(pl__rt.ended, NULL);
	pl__rt.has_ended = false;
}

void pl__worker_free_all(struct pl__group *g)
{
	uint32_t nr = load_relaxed(&g->nr_started), i;

	store_relaxed(&g->nr_started, 0);
	store_relaxed(&g->nr_alive, 0);
	for (i = 0; i < nr; i++)
		worker_free(g->workers[i]);
}

/*
 * retry: retries after a while what failed for want of memory or threads
 */

#define RETRY_NS	(10 * 1000 * 1000)

void (*pl__retry_stacks)(void);

static void retry_deferred(void);

void pl__retry_deferred_in(uint64_t ns)
{
	pl__timers_remind(pl__rt.timers, pl__now_ns() + ns, retry_deferred);
}

/*
 * Runs in the timer thread: a blocked worker cannot retry, and a worker that is
 * about to park should not spend its time on giving stacks back.
 */
static void retry_deferred(void)
{
	struct pl__group *g;
	uint64_t ns;
	uint32_t i;

	if (!pl__rt_enter()) {
		pl__retry_later();
		return;
	}
	pl__retry_stacks();
	pl__for_each_group(g, i)
		pl__notify_if_work(g);
	ns = pl__stacks_age(&pl__rt.stacks, pl__now_ns());
	if (ns != UINT64_MAX)
		pl__retry_deferred_in(ns);
	pl__rt_exit();
}

void pl__retry_later(void)
{
	pl__retry_deferred_in(RETRY_NS);
}
