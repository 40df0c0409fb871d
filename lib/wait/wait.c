/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "wait/wait.h"
#include "base/atfork.h"
#include "base/inject.h"
#include "base/sys.h"
#include "queue/aside.h"
#include "run/run.h"
#include "wait/wait_impl.h"
#include "wait/wait_lone.h"

#define EXPIRED_EVERY	16	/* a yield for so many; a power of 2 */

/*
 * Waiters off their lists after their deadlines.  T: the timer thread.  A line
 * of its own, as the linker might place beside it what workers read.
 */
static struct timed_out {
	struct pl__link		*newest;	/* T: head of the chain */
	struct pl__link		*oldest;	/* T: tail of the chain */
} __pl_cacheline timed_out;

static void wait_atfork_child(void)
{
	timed_out = (struct timed_out){ NULL, NULL };
}

PL_ATFORK_CHILD(wait_atfork_child);

static struct pl__task *task_of(struct pl__wait_entry *wt)
{
	return container_of(wt, struct pl__task, waiter);
}

/* ---- waking ---- */

/* Removes @wt from its list; under its bucket's lock. */
static void dequeue_waiter(struct pl__wait_entry *wt, int reason)
{
	list_del_init(&wt->list);
	wt->is_listed = false;
	wt->reason = reason;
	/*
	 * A thread that aborts the wait checks the word again under the lock.
	 */
	store_release(&wt->word, NULL);
}

/*
 * Outside of the bucket's lock: the waiter runs from here on.  True: @w, the
 * caller or NULL, is to notify its group.
 */
static bool wake_waiter(struct pl__worker *w, struct pl__wait_entry *wt)
{
	if (!wt->is_thread)
		return pl__ready_quietly(w, task_of(wt));
	pl__parker_unpark(&wt->parker);
	return false;
}

static uint32_t wake_all_taken(struct pl__worker *w, struct pl__list *taken)
{
	struct pl__wait_entry *wt;
	bool is_to_notify = false;
	uint32_t nr = 0;

	while (!list_empty(taken)) {
		wt = list_entry(taken->next, struct pl__wait_entry, list);
		list_del_init(&wt->list);
		is_to_notify |= wake_waiter(w, wt);
		nr++;
	}
	if (is_to_notify)
		pl__notify_one(pl__own_group(w));
	return nr;
}

/* Moves up to @nr waiters of @word from @b to @taken. */
static void take_some(struct pl__bucket *b, _Atomic uint32_t *word, uint32_t nr,
		      struct pl__list *taken)
{
	struct pl__list *pos, *n;
	struct pl__wait_entry *wt;

	list_for_each_safe(pos, n, &b->waiters) {
		if (!nr)
			break;
		wt = list_entry(pos, struct pl__wait_entry, list);
		if (load_relaxed(&wt->word) != word)
			continue;
		dequeue_waiter(wt, 0);
		list_add_tail(&wt->list, taken);
		nr--;
	}
}

/* Removes the first waiter of @word from @b, with @reason; or NULL. */
static struct pl__wait_entry *take_one(struct pl__bucket *b,
				       _Atomic uint32_t *word, int reason)
{
	struct pl__wait_entry *wt;
	struct pl__list *pos;

	for (pos = b->waiters.next; pos != &b->waiters; pos = pos->next) {
		wt = list_entry(pos, struct pl__wait_entry, list);
		if (load_relaxed(&wt->word) == word) {
			dequeue_waiter(wt, reason);
			return wt;
		}
	}
	return NULL;
}

/*
 * The runtime must stay while tasks are made ready; without one there are none.
 */
static uint32_t wake_one(struct pl__wait_entry *wt)
{
	struct pl__worker *w = pl__self();
	bool outside = !w && pl__rt_enter();

	if (wake_waiter(w, wt))
		pl__notify_one(pl__own_group(w));
	if (outside)
		pl__rt_exit();
	return 1;
}

/* The same for more than one. */
static uint32_t wake_taken(struct pl__list *taken)
{
	struct pl__worker *w = pl__self();
	bool outside = !w && pl__rt_enter();
	uint32_t nr = wake_all_taken(w, taken);

	if (outside)
		pl__rt_exit();
	return nr;
}

uint32_t pl__wake(_Atomic uint32_t *word, uint32_t nr)
{
	struct pl__list taken = PL__LIST_INIT(taken);
	struct pl__wait_entry *one = NULL;
	/* [word-b] pairs with [word-a] in wait_link(). */
	struct pl__bucket *b = pl__bucket_lock(word);

	if (likely(nr == 1))
		one = take_one(b, word, 0);
	else
		take_some(b, word, nr, &taken);
	pl__unlock(&b->lock);
	PL_INJECT("word-b");
	if (one)
		return wake_one(one);
	return list_empty(&taken) ? 0 : wake_taken(&taken);
}

void pl__wake_owner(_Atomic uint32_t *word, uint32_t unowned)
{
	struct pl__bucket *b = pl__bucket_lock(word);
	struct pl__wait_entry *wt = take_one(b, word, PL__WAIT_OWNS);

	/* A waiter that is not listed yet compares the word under this lock. */
	if (!wt)
		store_release(word, unowned);
	pl__unlock(&b->lock);
	if (wt)
		wake_one(wt);
}

static void wake_by_event(struct pl__wait_entry *wt, bool quiet)
{
	struct pl__worker *w;

	if (wt->is_thread) {
		pl__parker_unpark(&wt->parker);
		return;
	}
	w = pl__self();
	if (pl__ready_event(w, task_of(wt)) && !quiet)
		pl__notify_one(pl__own_group(w));
}

void pl__wake_by_event(_Atomic uint32_t *word, bool quiet)
{
	/* [word-b] pairs with [word-a] in wait_link(). */
	struct pl__bucket *b = pl__bucket_lock(word);
	struct pl__wait_entry *wt = take_one(b, word, 0);

	pl__unlock(&b->lock);
	PL_INJECT("word-b");
	if (wt)
		wake_by_event(wt, quiet);
}

uint32_t pl__nr_waiting(_Atomic uint32_t *word)
{
	struct pl__bucket *b = pl__bucket_lock(word);
	struct pl__list *pos, *n;
	uint32_t nr = 0;

	list_for_each_safe(pos, n, &b->waiters)
		nr += load_relaxed(&list_entry(pos, struct pl__wait_entry,
					       list)->word) == word;
	pl__unlock(&b->lock);
	return nr;
}

/* ---- moving ---- */

static void lock_two(_Atomic uint32_t *w1, _Atomic uint32_t *w2)
{
	struct pl__bucket *b1 = pl__bucket_of(w1), *b2 = pl__bucket_of(w2);

	/* Locks in order of address, so that two calls cannot deadlock. */
	pl__bucket_lock(b1 < b2 ? w1 : w2);
	if (b1 != b2)
		pl__bucket_lock(b1 < b2 ? w2 : w1);
}

static uint32_t move_some(_Atomic uint32_t *from, _Atomic uint32_t *to,
			  uint32_t nr)
{
	struct pl__bucket *src = pl__bucket_of(from), *dst = pl__bucket_of(to);
	struct pl__list moved = PL__LIST_INIT(moved);
	struct pl__list *pos, *n;
	struct pl__wait_entry *wt;
	uint32_t nr_moved = 0;

	list_for_each_safe(pos, n, &src->waiters) {
		if (nr_moved == nr)
			break;
		wt = list_entry(pos, struct pl__wait_entry, list);
		if (load_relaxed(&wt->word) != from)
			continue;
		list_del_init(&wt->list);
		list_add_tail(&wt->list, &moved);
		atomic_store(&wt->word, to);
		nr_moved++;
	}
	list_for_each_safe(pos, n, &moved) {
		list_del_init(pos);
		list_add_tail(pos, &dst->waiters);
	}
	return nr_moved;
}

uint32_t pl__requeue(_Atomic uint32_t *from, _Atomic uint32_t *to,
		     uint32_t nr_wake, uint32_t nr_move)
{
	struct pl__bucket *src = pl__bucket_of(from), *dst = pl__bucket_of(to);
	struct pl__list taken = PL__LIST_INIT(taken);
	uint32_t nr;

	lock_two(from, to);
	take_some(src, from, nr_wake, &taken);
	nr = move_some(from, to, nr_move);
	if (src != dst)
		pl__unlock(&dst->lock);
	pl__unlock(&src->lock);
	return nr + (list_empty(&taken) ? 0 : wake_taken(&taken));
}

/* ---- ending waits ---- */

/* Without a bucket: the waiter in a slot, or one that waits alone. */
static bool take_out(struct pl__task *t, _Atomic uint32_t *word)
{
	if (pl__wait_is_lone(word))
		return pl__wait_lone_take(&t->waiter, word);
	return pl__wait_single_withdraw(pl__wait_slot_of(word), &t->waiter,
					-EAGAIN);
}

/*
 * Takes the waiter out first, then asks @may; if that refuses, the waiter
 * checks its condition again.
 */
static bool take_first(struct pl__task *t, _Atomic uint32_t *word, int reason,
		       pl__wait_may_fn *may, uint64_t arg)
{
	if (!take_out(t, word))
		return false;
	if (may(t, arg))
		t->waiter.reason = reason;
	return true;
}

/*
 * Takes @t off its word or slot with @reason, if @may, called under the lock,
 * allows it.  True: taken off, and the caller wakes it.  Retries if the wait is
 * moved or ends meanwhile.
 */
static bool wait_take(struct pl__task *t, int reason, pl__wait_may_fn *may,
		      uint64_t arg)
{
	struct pl__wait_entry *wt = &t->waiter;
	_Atomic uint32_t *word;
	struct pl__bucket *b;
	bool same, taken;

	do {
		word = atomic_load(&wt->word);
		if (!word)
			return false;
		if (!pl__wait_has_bucket(word))
			return take_first(t, word, reason, may, arg);
		b = pl__bucket_lock(word);
		PL_INJECT("intr-b");
		same = atomic_load(&wt->word) == word;
		/*
		 * A waiter that is not listed yet reads its state later, under
		 * this lock.
		 */
		taken = same && wt->is_listed && may(t, arg);
		if (taken)
			dequeue_waiter(wt, reason);
		pl__unlock(&b->lock);
	} while (!same);
	return taken;
}

void pl__wait_abort(struct pl__task *t, int reason, pl__wait_may_fn *may,
		    uint64_t arg)
{
	if (wait_take(t, reason, may, arg))
		wake_one(&t->waiter);
}

static bool may_time_out(struct pl__task *t, uint64_t nr)
{
	return t->waiter.nr == nr;
}

int pl__wait_pending_of(struct pl__task *t)
{
	uint64_t state = atomic_load(&t->state);

	if (unlikely(t->is_ending))
		return 0;
	if (pl__state_is_cancelled(state))
		return -ECANCELED;
	if (pl__state_is_interrupted(state) && pl__interrupt_consume(t))
		return -EINTR;
	return 0;
}

int pl__wait_pending(void)
{
	struct pl__task *t = pl__current();

	if (!t)
		t = pl__self_thread();
	if (!t)
		return pl__rt_is_stopping() ? -ECANCELED : 0;
	return pl__wait_pending_of(t);
}

void pl__interrupt_restore(int reason)
{
	struct pl__task *t = pl__current();

	if (t && reason == -EINTR)
		atomic_fetch_or(&t->state, t->waiter.interrupts);
}

/* ---- waiting ---- */

/* The task of which the wait has ended by its deadline, or NULL. */
static struct pl__task *take_timed_out(void *arg)
{
	uint64_t a = (uintptr_t)arg;
	struct pl__task *t = pl__slab_get(&pl__rt.tasks, (uint32_t)a);

	return wait_take(t, -ETIMEDOUT, may_time_out, a >> 32) ? t : NULL;
}

void pl__wait_time_out(void *arg)
{
	struct pl__task *t = take_timed_out(arg);

	if (!t)
		return;
	if (t->waiter.place) {
		pl__ready(t);
		return;
	}
	t->link.next = timed_out.newest;
	timed_out.newest = &t->link;
	if (!timed_out.oldest)
		timed_out.oldest = &t->link;
}

/* By the worker that keeps the timer; it notifies. */
static void time_out_kept(void *arg)
{
	struct pl__task *t = take_timed_out(arg);

	if (t)
		pl__ready_event(pl__self(), t);
}

/* The runtime does not stop before its timer thread: no need to enter it. */
static void wake_timed_out(void)
{
	if (timed_out.newest)
		pl__ready_chain(timed_out.newest, timed_out.oldest);
	timed_out = (struct timed_out){ NULL, NULL };
}

void pl__wait_start(struct pl__timers *t)
{
	pl__timers_batch(t, pl__wait_time_out, wake_timed_out);
	pl__timers_keep(t, time_out_kept);
}

/* A wait, on the waiter's stack. */
struct wait {
	struct pl__task		*t;
	_Atomic uint32_t	*word;
	uint32_t		expected;
	uint64_t		deadline_ns;
	struct pl__timer	*timer;		/* to be armed, or NULL */
	uint32_t		flags;		/* of pl__wait() */
};

/*
 * Arms the timer of a waiter that was listed, and drops the lock.  The timer is
 * set before, so that the waiter finds it once it is removed; it is listed
 * after, since that may free others and wake their thread.  By then the waiter
 * may have been woken and have deleted it, and its stack be in use again.
 */
static int wait_arm(struct wait *w, struct pl__bucket *b)
{
	struct pl__worker *self = pl__self();
	struct pl__timer *timer = w->timer;

	pl__wait_timer_set(self, w->t, timer, w->deadline_ns);
	w->timer = NULL;
	/* [word-a] pairs with [word-b] in pl__wake(). */
	pl__unlock(&b->lock);
	pl__wait_timer_list(self, timer);
	return 0;
}

/*
 * Lists the waiter.  Or returns why it need not wait, which becomes its reason.
 */
static int wait_link(struct wait *w)
{
	struct pl__wait_entry *wt = &w->t->waiter;
	struct pl__bucket *b;
	int reason = 0;

	/* [intr-a] pairs with [intr-b] in interrupt_mark(). */
	store_before_rmw(&wt->word, w->word);
	PL_INJECT("intr-a");
	b = pl__bucket_lock(w->word);
	if (load_relaxed(w->word) != w->expected)
		reason = -EAGAIN;
	else if (!wt->uninterruptible)
		reason = pl__wait_pending_of(w->t);
	wt->reason = reason;
	wt->is_listed = !reason;
	if (reason) {
		store_release(&wt->word, NULL);
	} else {
		if (unlikely(w->flags & PL__WAIT_FIRST))
			list_add(&wt->list, &b->waiters);
		else
			list_add_tail(&wt->list, &b->waiters);
		if (w->timer)
			return wait_arm(w, b);
	}
	/* [word-a] pairs with [word-b] in pl__wake(). */
	pl__unlock(&b->lock);
	return reason;
}

/* Called after the switch: only from now on may a waker make the task ready. */
static void wait_link_after(struct pl__worker *w, void *arg)
{
	struct wait *wait = arg;
	struct pl__task *t = wait->t;

	(void)w;
	/* Once the task is listed, its stack may be in use again. */
	if (wait_link(wait))
		pl__ready(t);
}

static int wait_task(struct wait *wait)
{
	struct pl__wait_entry *wt = &wait->t->waiter;
	struct pl__worker *w = pl__self();

	wt->is_thread = false;
	wt->timer = 0;
	if (wait->deadline_ns != PL_FOREVER) {
		wait->timer = pl__timer_reserve(pl__rt.timers, &w->timers);
		if (!wait->timer)
			return -ENOMEM;
	}

	pl__block(wait_link_after, wait);

	pl__wait_timer_end(wt, wait->timer, wait->deadline_ns);
	return wt->reason;
}

static int wait_thread(struct wait *wait)
{
	struct pl__wait_entry *wt = &wait->t->waiter;
	struct pl__worker *w = pl__self();

	wt->is_thread = true;
	pl__parker_arm(&wt->parker, pl__sleep_bell(w));
	if (wait_link(wait))
		return wt->reason;
	if (pl__sleep(w, &wt->parker, wait->deadline_ns))
		return wt->reason;

	/*
	 * The deadline has passed, unless a waker is just about to wake this
	 * thread.
	 */
	pl__wait_abort(wait->t, -ETIMEDOUT, may_time_out, wt->nr);
	pl__sleep(w, &wt->parker, PL_FOREVER);
	return wt->reason;
}

int pl__wait_expired(void)
{
	struct pl__worker *w = pl__self();

	if (w && !(++w->nr_expired % EXPIRED_EVERY))
		pl_yield();
	return -ETIMEDOUT;
}

int pl__wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns,
	     uint32_t flags)
{
	struct wait wait = { pl__current(), word, expected, deadline_ns, NULL,
			     flags };
	bool is_thread = !wait.t || wait.t->cls == PL_STACK_WORKER;
	struct pl__wait_entry *wt;

	if (!wait.t)
		wait.t = pl__thread_task();
	if (!wait.t)
		return -ENOMEM;
	if (load_acquire(word) != expected)
		return -EAGAIN;
	if (deadline_ns != PL_FOREVER && deadline_ns <= pl__now_ns())
		return pl__wait_expired();

	wt = &wait.t->waiter;
	wt->uninterruptible = flags & PL__WAIT_UNINTERRUPTIBLE ||
			      wait.t->is_ending;
	wt->what = flags & PL__WAIT_FOR;
	wt->nr++;
	return is_thread ? wait_thread(&wait) : wait_task(&wait);
}

struct pl__bucket pl__buckets[1U << PL__BUCKET_BITS];

static void bucket_atfork_child(void)
{
	pl__atfork_zero(pl__buckets, sizeof(pl__buckets));
}

PL_ATFORK_CHILD(bucket_atfork_child);
