/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * proxy_call: calls are queued, and tasks that block their workers make them
 *
 * Each such task makes one call after the other, and ends when none is queued.
 * They are half as many as there may be workers beyond the target: if all of
 * them are blocked for long, as when a name server is down, workers are left
 * for other tasks that block, and for callers that give up.
 *
 * Invariant: while a call is queued, a task exists that will look in the queue.
 * A caller adds its call and counts the task, and a task that finds no call
 * takes itself from the count, each under the lock.  The task is reserved
 * before, so that a call that is queued does not fail for want of one.
 *
 *	caller that gives up		task, after the call
 *	lock				lock
 *	if done: take the result	if abandoned: destroy, unlocked
 *	else if begun: abandon		else: done
 *	else: unlink, destroy
 *
 * Invariant: a call is destroyed once.  Its caller does so unless it has
 * abandoned the call, and the task does only then.
 */
#include "io/proxy_call.h"
#include "base/atfork.h"
#include "base/lock.h"
#include "base/sys.h"
#include "rt/runtime.h"
#include "wait/wait.h"

#include <string.h>

/* Of a group: its tasks make the calls of its tasks. */
struct pl__proxies {
	struct pl__lock		lock;
	struct pl__list		queue;	/* L: calls to be made, oldest first */
	uint32_t		nr_tasks; /* L: tasks that make calls */
};

static struct pl__proxies proxies[PL_GROUPS_MAX];

static void proxies_atfork_child(void)
{
	memset(proxies, 0, sizeof(proxies));
}

PL_ATFORK_CHILD(proxies_atfork_child);

static uint32_t calls_max(struct pl__group *g)
{
	uint32_t target = load_relaxed(&g->target);
	uint32_t max = g->max_workers;
	uint32_t nr = max > target ? (max - target) / 2 : 0;

	return nr ? nr : 1;
}

uint32_t pl__proxy_calls_max(void)
{
	return calls_max(pl__own_group(pl__self()));
}

/* ---- the task ---- */

static struct pl__proxy_call *proxy_next(struct pl__proxies *p)
{
	struct pl__proxy_call *c = NULL;

	pl__lock(&p->lock);
	if (list_empty(&p->queue)) {
		p->nr_tasks--;
	} else {
		c = list_entry(p->queue.next, struct pl__proxy_call, link);
		list_del_init(&c->link);
		c->is_begun = true;
	}
	pl__unlock(&p->lock);
	return c;
}

static void proxy_end(struct pl__proxy_call *c)
{
	struct pl__proxies *p = c->of;
	bool is_abandoned;

	pl__lock(&p->lock);
	is_abandoned = c->is_abandoned;
	if (!is_abandoned)
		store_release(&c->done, 1);
	pl__unlock(&p->lock);
	/* The caller may have freed it: only the address is used. */
	if (is_abandoned)
		c->destroy(c);
	else
		pl__wake(&c->done, 1);
}

static void proxy_run(void *p)
{
	struct pl__proxy_call *c;

	while ((c = proxy_next(p))) {
		c->run(c);
		proxy_end(c);
	}
}

/* ---- the caller ---- */

static int proxy_queue(struct pl__proxy_call *c, const char *name)
{
	struct pl__group *g = pl__own_group(pl__self());
	struct pl__proxies *p = &proxies[g->index];
	struct pl__task *t;
	bool is_needed;
	int ret;

	ret = pl__spawn_reserve_blocking(&t, proxy_run, p, name);
	if (ret)
		return ret;
	c->of = p;
	pl__lock(&p->lock);
	if (!p->queue.next)
		list_init(&p->queue);
	list_add_tail(&c->link, &p->queue);
	is_needed = p->nr_tasks < calls_max(g);
	p->nr_tasks += is_needed;
	pl__unlock(&p->lock);
	if (is_needed)
		pl__spawn_commit_blocking(t);
	else
		pl__spawn_cancel(t);
	return 0;
}

/* False: the call is done after all. */
static bool proxy_give_up(struct pl__proxy_call *c)
{
	struct pl__proxies *p = c->of;
	bool is_done, is_begun;

	pl__lock(&p->lock);
	is_done = load_relaxed(&c->done);
	is_begun = c->is_begun;
	c->is_abandoned = !is_done;
	if (!is_begun)
		list_del_init(&c->link);
	pl__unlock(&p->lock);
	if (!is_begun)
		c->destroy(c);
	return !is_done;
}

static int proxy_wait(struct pl__proxy_call *c, enum pl__for what,
		      uint64_t deadline_ns)
{
	int ret;

	/* A wake may be of a call that was at this address before. */
	do {
		ret = pl__wait(&c->done, 0, deadline_ns, what);
	} while (!load_acquire(&c->done) && (!ret || ret == -EAGAIN));
	return ret;
}

int pl__proxy_call(struct pl__proxy_call *c, const char *name,
		   enum pl__for what, uint64_t deadline_ns)
{
	int ret = 0;

	if (deadline_ns <= pl__now_ns())
		ret = pl__wait_expired();
	if (!ret)
		ret = proxy_queue(c, name);
	if (ret) {
		c->destroy(c);
		return ret;
	}
	ret = proxy_wait(c, what, deadline_ns);
	if (!load_acquire(&c->done) && proxy_give_up(c))
		return ret;
	pl__interrupt_restore(ret);
	return 0;
}
