/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "wait/wait_lone.h"
#include "base/sys.h"
#include "wait/wait_impl.h"
#include "wait/wait.h"
#include "base/inject.h"

/* The word of a task that fell asleep; NULL: what it waits for is done. */
static _Atomic uint32_t *fall_asleep(struct pl__wait_entry *wt)
{
	_Atomic uint32_t *word = load_acquire(&wt->word), *asleep;

	PL_INJECT("lone-a");
	asleep = pl__wait_with_bits(word, PL__WAIT_ASLEEP);
	/*
	 * [lone-a] pairs with [lone-b] in pl__wait_lone_done().
	 * [intr-a] pairs with [intr-b] in interrupt_mark().
	 */
	if (!word || !atomic_compare_exchange_strong(&wt->word, &word, asleep))
		return NULL;
	PL_INJECT("intr-a");
	return asleep;
}

static bool take_self(struct pl__task *t, _Atomic uint32_t *word)
{
	int reason;

	if (!pl__wait_lone_take(&t->waiter, word))
		return false;
	reason = pl__wait_pending_of(t);
	if (reason)
		t->waiter.reason = reason;
	return true;
}

/* Once it sleeps the task may run and end, so all that it has is read first. */
void pl__wait_lone_sleep(struct pl__worker *w, void *arg)
{
	struct pl__wait_lone_args *a = arg;
	struct pl__timer *timer = a->timer;
	struct pl__task *t = a->t;
	bool uninterruptible = t->waiter.uninterruptible, is_awake;
	_Atomic uint32_t *word;

	if (timer) {
		pl__wait_timer_set(w, t, timer, a->deadline_ns);
		a->timer = NULL;
	}
	word = fall_asleep(&t->waiter);
	is_awake = !word;
	if (word && !uninterruptible && unlikely(pl__is_interrupted(t)))
		is_awake = take_self(t, word);
	if (timer)
		pl__wait_timer_list(w, timer);
	if (is_awake)
		pl__ready(t);
}

int pl__wait_lone_until(struct pl__task *t, uint64_t deadline_ns,
			 uint32_t flags)
{
	struct pl__wait_lone_args args = { t, NULL, deadline_ns };

	if (deadline_ns <= pl__now_ns())
		return pl__wait_expired();
	args.timer = pl__timer_reserve(pl__rt.timers, &pl__self()->timers);
	if (!args.timer)
		return -ENOMEM;
	pl__wait_lone_prepare(t, flags);
	pl__block(pl__wait_lone_sleep, &args);
	pl__wait_timer_end(&t->waiter, args.timer, deadline_ns);
	return t->waiter.reason;
}

/* Once it is in its slot the task may run and end, so @arg is copied first. */
void pl__wait_single_publish(struct pl__worker *w, void *arg)
{
	struct pl__wait_single_args a = *(struct pl__wait_single_args *)arg;
	struct pl__wait_entry *wt = &a.t->waiter;
	uintptr_t empty = 0;

	(void)w;
	store_before_rmw(&wt->word, pl__wait_slot_word(a.slot));
	PL_INJECT("single-a");
	/* [single-a] pairs with [single-b] in pl__wait_single_take(). */
	if (atomic_compare_exchange_strong(a.slot, &empty, (uintptr_t)wt)) {
		PL_INJECT("single-a");
		if (likely(load_acquire(a.word) == a.expected &&
			   (a.uninterruptible || !pl__is_interrupted(a.t))))
			return;
		if (pl__wait_single_withdraw(a.slot, wt, -EAGAIN))
			pl__ready(a.t);
		return;
	}
	wt->reason = -EBUSY;
	store_release(&wt->word, NULL);
	pl__ready(a.t);
}
