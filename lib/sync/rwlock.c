/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * rwlock: many readers or one writer, and waiters that are overtaken for 1 ms
 *
 * A word: WRITER or the number of READERS that have the lock; WAITED_FOR
 * exactly while a waiter is queued, in one of two queues under a lock of their
 * own, and WRITER_WAITS while a writer is.  A thread that comes may take a free
 * lock before all waiters, since these need time to wake up; but readers do not
 * join readers while a writer waits, so that the lock gets free.
 *
 * At most one waiter is WOKEN at a time.  It stays queued until it has the
 * lock, and competes for it.  If it finds the lock taken, it waits on, before
 * all others of its queue, and the next owner to leave wakes a waiter again.
 * Having waited for PATIENCE_NS it leaves IMPATIENT behind: no thread enters
 * any more, and the last owner hands the lock over to it.
 *
 *	waiter, in the queues' lock	last owner
 *	if it is locked, add		free the lock, if it is	[rwlock-b]
 *		WAITED_FOR	[rwlock-a]	not WAITED_FOR, or WOKEN;
 *	be queued			else, in the queues' lock:
 *					if it is IMPATIENT
 *	woken waiter, likewise			word = the waiter's
 *	if it is locked, remove		else
 *		WOKEN	[rwlock-a]		free the lock, add WOKEN
 *
 * Invariant: if a waiter is queued for a free lock, one is WOKEN.  Changes of
 * one word have one order: either the owner that leaves finds WAITED_FOR
 * without WOKEN, or the waiter finds the lock free.  Otherwise all waiters
 * sleep for ever.  Then:
 *
 *	waiter				last owner
 *	wait while QUEUED		state = MAY_TRY		[rwlock-c]
 *	compete, or return	[rwlock-d]		or HAS_IT
 *					wake, by address
 *
 * An owner frees a lock in the queues' lock only while a waiter is queued; that
 * one cannot return before it has been in the queues' lock, too.  So *@l is not
 * freed before the owner has dropped that, after which it does not access *@l
 * again.  MAY_TRY is set in the queues' lock, as a waiter that competes may
 * return as soon as that is dropped.  HAS_IT is set after it, as a waiter that
 * was handed the lock may return, and free *@l, without the queues' lock; if it
 * times out now, it notices in the queues' lock, and waits for HAS_IT all the
 * same.
 *
 * Readers and writers take turns: a writer that leaves opens a phase of all
 * readers that are queued, unless queued writers have waited since the last
 * phase; the last reader wakes a writer.  Each reader of a phase wakes the next
 * one once it has the lock, so that readers that have not run yet keep no other
 * out.  So each waiter is woken at last, and then overtaken for 1 ms at most.
 */
#include "wait/wait.h"
#include "base/inject.h"
#include "base/sys.h"
#include "sync/mutex.h"

#define WRITER		(1U << 31)
#define WAITED_FOR	(1U << 30)
#define WRITER_WAITS	(1U << 29)
#define WOKEN		(1U << 28)
#define IMPATIENT	(1U << 27)
#define READERS		(IMPATIENT - 1)
#define HELD		(WRITER | READERS)

#define PATIENCE_NS	(1000 * 1000)

enum { QUEUED, MAY_TRY, HAS_IT };

/*
 * The word's bits that a reader or writer adds to have the lock, and to wait;
 * and those that keep it out of a lock that is not free: when it comes, and
 * when it was woken.
 */
struct share {
	uint32_t		mine;
	uint32_t		mark;
	uint32_t		against;
	uint32_t		against_woken;
};

/* A waiter, on its own stack.  Q: the queues' lock is held.  A: atomic. */
struct rw_waiter {
	struct pl__list		list;	/* Q: in a queue */
	const struct share	*share;
	uint64_t		patient_until_ns;
	uint32_t		phase;	/* Q: phase in which a reader came */
	bool			is_queued; /* Q: was not handed the lock */
	bool			is_heir; /* Q: has set IMPATIENT */
	_Atomic uint32_t	state;	/* A: QUEUED, MAY_TRY or HAS_IT */
};

static const struct share reader = {
	.mine		= 1,
	.mark		= WAITED_FOR,
	.against	= WRITER | IMPATIENT | WRITER_WAITS,
	.against_woken	= WRITER,
};

static const struct share writer = {
	.mine		= WRITER,
	.mark		= WAITED_FOR | WRITER_WAITS,
	.against	= HELD | IMPATIENT,
	.against_woken	= HELD,
};

/* ---- queues: circular lists, of which the lock knows the first entry ---- */

static struct pl__lock *queues_of(struct pl_rwlock *l)
{
	return container_of(&l->lock, struct pl__lock, state);
}

static struct pl__list **queue_of(struct pl_rwlock *l, const struct share *s)
{
	return s == &writer ? &l->writers : &l->readers;
}

static struct rw_waiter *first_waiter(struct pl__list *list)
{
	return list ? list_entry(list, struct rw_waiter, list) : NULL;
}

static void enqueue(struct pl_rwlock *l, struct rw_waiter *wt)
{
	struct pl__list **first = queue_of(l, wt->share);

	wt->phase = l->phase;
	wt->is_queued = true;
	list_init(&wt->list);
	if (*first)
		list_add_tail(&wt->list, *first);
	else
		*first = &wt->list;
}

static void dequeue(struct pl_rwlock *l, struct rw_waiter *wt)
{
	struct pl__list **first = queue_of(l, wt->share);

	if (*first == &wt->list)
		*first = list_empty(&wt->list) ? NULL : wt->list.next;
	list_del_init(&wt->list);
	wt->is_queued = false;
	if (!l->writers)
		l->turn = false;
}

/* The bits that say what is queued. */
static uint32_t queue_marks(struct pl_rwlock *l)
{
	return (l->readers ? reader.mark : 0) | (l->writers ? writer.mark : 0);
}

/* ---- the word ---- */

/* Changes the word from *@from to @to; false: *@from is the value found. */
static bool rwlock_cas(struct pl_rwlock *l, uint32_t *from, uint32_t to)
{
	return atomic_compare_exchange_weak(&l->word.value, from, to);
}

static bool rwlock_admits(uint32_t v, uint32_t against)
{
	return !(v & against) || !(v & (HELD | IMPATIENT));
}

static bool rwlock_take(struct pl_rwlock *l, uint32_t mine, uint32_t against)
{
	uint32_t v = load_relaxed(&l->word.value);

	do {
		if (!rwlock_admits(v, against))
			return false;
	} while (!rwlock_cas(l, &v, v + mine));
	return true;
}

/* The owner, on another processor, may be about to leave. */
static bool rwlock_spin(struct pl_rwlock *l, uint32_t mine, uint32_t against)
{
	int i;

	if (!pl__may_spin())
		return false;
	for (i = 0; i < PL__NR_BACKOFFS; i++) {
		pl__back_off(i);
		if (rwlock_take(l, mine, against))
			return true;
		if (load_relaxed(&l->word.value) & IMPATIENT)
			return false;
	}
	return false;
}

/*
 * In the queues' lock: takes the lock, or else changes the word's bits, so that
 * the last owner looks for waiters.
 */
static bool take_or_change(struct pl_rwlock *l, uint32_t mine, uint32_t against,
			   uint32_t add, uint32_t remove)
{
	uint32_t v = load_relaxed(&l->word.value);
	bool takes;

	/* [rwlock-a] pairs with [rwlock-b] in rwlock_leave(). */
	do {
		takes = rwlock_admits(v, against);
	} while (!rwlock_cas(l, &v, takes ? v + mine : (v & ~remove) | add));
	PL_INJECT("rwlock-a");
	return takes;
}

/* ---- waking ---- */

/*
 * In the queues' lock: the waiter to be woken while the word is @v, if any.
 * @last: as which the caller has left the lock.
 */
static struct rw_waiter *rwlock_next(struct pl_rwlock *l, uint32_t v,
				     const struct share *last)
{
	struct rw_waiter *r = first_waiter(l->readers);
	struct rw_waiter *w = first_waiter(l->writers);

	if (v & (WRITER | WOKEN | IMPATIENT))
		return NULL;
	/* No writer waits, or the phase is not over. */
	if (r && (!w || r->phase != l->phase))
		return r;
	if (v & READERS)
		return NULL;
	return r && last == &writer && !l->turn ? r : w;
}

/* In the queues' lock: has @wt compete. */
static void rwlock_let_try(struct pl_rwlock *l, struct rw_waiter *wt)
{
	if (wt->share == &reader && wt->phase == l->phase) {
		l->phase++;
		/* Queued writers have the next turn. */
		l->turn = l->writers != NULL;
	}
	/* [rwlock-c] pairs with [rwlock-d] in wait_step(). */
	store_release(&wt->state, MAY_TRY);
	PL_INJECT("rwlock-c");
}

/*
 * In the queues' lock: adds to the word and removes bits, and says in it what
 * is queued.  Returns the waiter that has to be woken, if any: by address, as
 * it may be gone by then.
 */
static struct rw_waiter *rwlock_settle(struct pl_rwlock *l, uint32_t add,
				       uint32_t remove,
				       const struct share *last)
{
	uint32_t v = load_relaxed(&l->word.value), to;
	struct rw_waiter *next;

	remove |= reader.mark | writer.mark;
	do {
		to = ((v & ~remove) | queue_marks(l)) + add;
		next = rwlock_next(l, to, last);
		if (next)
			to |= WOKEN;
	} while (!rwlock_cas(l, &v, to));
	PL_INJECT("rwlock-b");
	if (next)
		rwlock_let_try(l, next);
	return next;
}

static void rwlock_wake(struct rw_waiter *wt)
{
	if (wt)
		pl__wake(&wt->state, 1);
}

static void rwlock_wake_heir(struct rw_waiter *wt)
{
	/* [rwlock-c] pairs with [rwlock-d] in wait_step(). */
	store_release(&wt->state, HAS_IT);
	PL_INJECT("rwlock-c");
	pl__wake(&wt->state, 1);
}

/* ---- waiting ---- */

/* True: the caller has the lock; else it is queued as @wt. */
static bool take_or_queue(struct pl_rwlock *l, const struct share *s,
			  struct rw_waiter *wt)
{
	uint64_t patient_until_ns = pl__now_ns() + PATIENCE_NS;
	bool took;

	pl__lock(queues_of(l));
	took = take_or_change(l, s->mine, s->against, s->mark, 0);
	if (!took) {
		*wt = (struct rw_waiter){
			.share = s, .patient_until_ns = patient_until_ns,
		};
		enqueue(l, wt);
	}
	pl__unlock(queues_of(l));
	return took;
}

/*
 * In the queues' lock, with @wt woken: takes the lock, or else waits on.  The
 * first of its queue, since only that is woken.
 */
static bool take_or_wait_on(struct pl_rwlock *l, struct rw_waiter *wt)
{
	const struct share *s = wt->share;

	wt->is_heir = pl__now_ns() >= wt->patient_until_ns;
	if (take_or_change(l, s->mine, s->against_woken,
			   wt->is_heir ? IMPATIENT : 0, WOKEN))
		return true;
	store_relaxed(&wt->state, QUEUED);
	return false;
}

/* In the queues' lock, as an owner: @wt, which was woken, waits no longer. */
static struct rw_waiter *rwlock_enter(struct pl_rwlock *l, struct rw_waiter *wt)
{
	dequeue(l, wt);
	if (wt->share == &writer)
		l->turn = false;
	store_relaxed(&wt->state, HAS_IT);
	return rwlock_settle(l, 0, WOKEN, wt->share);
}

static void rwlock_compete(struct pl_rwlock *l, struct rw_waiter *wt)
{
	const struct share *s = wt->share;
	bool took = rwlock_spin(l, s->mine, s->against_woken);
	struct rw_waiter *next = NULL;

	pl__lock(queues_of(l));
	if (took || take_or_wait_on(l, wt))
		next = rwlock_enter(l, wt);
	pl__unlock(queues_of(l));
	rwlock_wake(next);
}

/* Waits, or competes if the caller was woken.  As pl__wait(). */
static int wait_step(struct pl_rwlock *l, struct rw_waiter *wt,
		     uint64_t deadline_ns, uint32_t flags)
{
	/* [rwlock-d] pairs with [rwlock-c] in rwlock_let_try(). */
	if (load_acquire(&wt->state) == MAY_TRY) {
		rwlock_compete(l, wt);
		return 0;
	}
	return pl__wait(&wt->state, QUEUED, deadline_ns,
			flags | PL__FOR_RWLOCK);
}

static bool has_it(struct rw_waiter *wt)
{
	return load_acquire(&wt->state) == HAS_IT;
}

static void wait_through(struct pl_rwlock *l, struct rw_waiter *wt)
{
	/* The lock cannot fail for want of memory to wait with: try again. */
	while (!has_it(wt))
		if (wait_step(l, wt, PL_FOREVER,
			      PL__WAIT_UNINTERRUPTIBLE) == -ENOMEM)
			pl_yield();
}

/* False: too late, the caller has the lock, or is about to be told so. */
static bool rwlock_give_up(struct pl_rwlock *l, struct rw_waiter *wt)
{
	struct rw_waiter *next = NULL;
	bool gives_up;

	pl__lock(queues_of(l));
	gives_up = wt->is_queued;
	if (gives_up && load_relaxed(&wt->state) == MAY_TRY &&
	    take_or_wait_on(l, wt)) {
		next = rwlock_enter(l, wt);
		gives_up = false;
	} else if (gives_up) {
		dequeue(l, wt);
		next = rwlock_settle(l, 0, wt->is_heir ? IMPATIENT : 0,
				     wt->share);
	}
	pl__unlock(queues_of(l));
	rwlock_wake(next);
	return gives_up;
}

static int wait_until(struct pl_rwlock *l, struct rw_waiter *wt,
		      uint64_t deadline_ns)
{
	int ret = 0;

	while (!has_it(wt) && (!ret || ret == -EAGAIN))
		ret = wait_step(l, wt, deadline_ns, 0);
	if (!ret || ret == -EAGAIN)
		return 0;
	if (rwlock_give_up(l, wt))
		return ret;
	wait_through(l, wt);
	pl__interrupt_restore(ret);
	return 0;
}

/* ---- unlocking ---- */

static bool is_last(uint32_t v, const struct share *s)
{
	return (v & HELD) == s->mine;
}

/* In the queues' lock: the waiter that lost its patience is a first one. */
static struct rw_waiter *take_heir(struct pl_rwlock *l)
{
	struct rw_waiter *wt = first_waiter(l->readers);

	if (!wt || !wt->is_heir)
		wt = first_waiter(l->writers);
	dequeue(l, wt);
	if (wt->share == &writer)
		l->turn = false;
	return wt;
}

/* False: by now no waiter is left, or other readers have the lock too. */
static bool leave_to_waiter(struct pl_rwlock *l, const struct share *s)
{
	struct rw_waiter *heir = NULL, *next;
	uint32_t v;

	pl__lock(queues_of(l));
	v = atomic_load(&l->word.value);
	if (!is_last(v, s) || !(v & WAITED_FOR)) {
		pl__unlock(queues_of(l));
		return false;
	}
	if (v & IMPATIENT)
		heir = take_heir(l);
	next = rwlock_settle(l, (heir ? heir->share->mine : 0) - s->mine,
			     heir ? IMPATIENT : 0, s);
	pl__unlock(queues_of(l));
	if (heir)
		rwlock_wake_heir(heir);
	rwlock_wake(next);
	return true;
}

static void rwlock_leave(struct pl_rwlock *l, const struct share *s)
{
	uint32_t v = load_relaxed(&l->word.value);

	for (;;) {
		if (unlikely(v & WAITED_FOR) &&
		    !(v & WOKEN) && is_last(v, s)) {
			if (leave_to_waiter(l, s))
				return;
			v = load_relaxed(&l->word.value);
		/* [rwlock-b] pairs with [rwlock-a] in take_or_change(). */
		} else if (rwlock_cas(l, &v, v - s->mine)) {
			PL_INJECT("rwlock-b");
			return;
		}
	}
}

/* ---- public functions ---- */

static void rwlock_lock(struct pl_rwlock *l, const struct share *s)
{
	struct rw_waiter wt;

	if (!rwlock_take(l, s->mine, s->against) &&
	    !rwlock_spin(l, s->mine, s->against) && !take_or_queue(l, s, &wt))
		wait_through(l, &wt);
}

static int rwlock_lock_until(struct pl_rwlock *l, const struct share *s,
			     uint64_t deadline_ns)
{
	struct rw_waiter wt;
	int ret = l ? pl__wait_pending() : -EINVAL;

	if (ret || rwlock_take(l, s->mine, s->against))
		return ret;
	/*
	 * A caller that only tries, with a deadline in the past, keeps no other
	 * out.
	 */
	if (deadline_ns != PL_FOREVER && deadline_ns <= pl__now_ns())
		return pl__wait_expired();
	if (rwlock_spin(l, s->mine, s->against) || take_or_queue(l, s, &wt))
		return 0;
	return wait_until(l, &wt, deadline_ns);
}

static int rwlock_trylock(struct pl_rwlock *l, const struct share *s)
{
	if (!l)
		return -EINVAL;
	return rwlock_take(l, s->mine, s->against) ? 0 : -EBUSY;
}

void pl_rwlock_rdlock(struct pl_rwlock *l)
{
	rwlock_lock(l, &reader);
}

int pl_rwlock_tryrdlock(struct pl_rwlock *l)
{
	return rwlock_trylock(l, &reader);
}

int pl_rwlock_rdlock_until(struct pl_rwlock *l, uint64_t deadline_ns)
{
	return rwlock_lock_until(l, &reader, deadline_ns);
}

void pl_rwlock_rdunlock(struct pl_rwlock *l)
{
	rwlock_leave(l, &reader);
}

void pl_rwlock_wrlock(struct pl_rwlock *l)
{
	rwlock_lock(l, &writer);
}

int pl_rwlock_trywrlock(struct pl_rwlock *l)
{
	return rwlock_trylock(l, &writer);
}

int pl_rwlock_wrlock_until(struct pl_rwlock *l, uint64_t deadline_ns)
{
	return rwlock_lock_until(l, &writer, deadline_ns);
}

void pl_rwlock_wrunlock(struct pl_rwlock *l)
{
	rwlock_leave(l, &writer);
}
