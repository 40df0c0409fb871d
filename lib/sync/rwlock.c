/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * rwlock: many readers or one writer, passed from phase to phase
 *
 * A word: WRITER or the number of READERS that have the lock, and WAITED_FOR
 * exactly while a waiter is queued, in one of two queues under a lock of their
 * own.  While WAITED_FOR is set no thread enters, and the last to leave does
 * not free the lock but passes it on, so that it is never free while a thread
 * waits:
 *
 * - a writer passes it to all readers that are queued, else to a writer;
 * - the last reader passes it to the writer that has waited longest;
 * - readers are queued behind readers only while a writer is queued: when the
 *   last queued writer gives up, all of them enter.
 *
 * So no thread starves: once the owner has left, a reader waits for one writer
 * at most; a writer for the writers before it, and for the readers that were
 * queued as each of these left.  Only a new owner is ever woken.
 *
 *	waiter, in the queues' lock	last owner
 *	if it is locked, add		free the lock, if there	[rwlock-b]
 *		WAITED_FOR	[rwlock-a]	is no WAITED_FOR;
 *	be queued			else, in the queues' lock:
 *					take the new owner off,
 *					word = the new owner's
 *
 * Invariant: no waiter is queued for a free lock.  Changes of one word have one
 * order: either the owner that leaves sees WAITED_FOR, or the waiter finds the
 * lock free.  Otherwise the waiter sleeps for ever.  Then, outside of the
 * queues' lock:
 *
 *	waiter				last owner
 *	wait while QUEUED		state = HAS_IT		[rwlock-c]
 *	return			[rwlock-d]	wake, by address
 *
 * The last owner drops the queues' lock before that, and does not access *@l
 * again: the new owners are still within their calls, so none frees it earlier.
 * A new owner that times out now notices it in the queues' lock, and waits
 * for HAS_IT all the same, as its rw_waiter has to stay until then.
 */
#include "wait/wait.h"
#include "base/inject.h"
#include "base/sys.h"

#define WRITER		(1U << 31)
#define WAITED_FOR	(1U << 30)

enum { QUEUED, HAS_IT };

/* A waiter, on its own stack.  Q: the queues' lock is held.  A: atomic. */
struct rw_waiter {
	struct pl__list		list;	/* Q: in a queue, or the new owners */
	uint32_t		phase;	/* Q: phase in which a reader came */
	bool			is_taken; /* Q: a writer, off its queue */
	_Atomic uint32_t	state;	/* A: QUEUED or HAS_IT */
};

/* The word's bits that a reader or writer adds, and those that keep it out. */
struct share {
	uint32_t		mine;
	uint32_t		against;
};

static const struct share reader = { 1, WRITER | WAITED_FOR };
static const struct share writer = { WRITER, UINT32_MAX };

/* ---- queues: circular lists, of which the lock knows the first entry ---- */

static struct pl__lock *queues_of(struct pl_rwlock *l)
{
	return container_of(&l->lock, struct pl__lock, state);
}

static struct rw_waiter *waiter_of(struct pl__list *list)
{
	return list_entry(list, struct rw_waiter, list);
}

static void enqueue(struct pl__list **first, struct rw_waiter *wt)
{
	list_init(&wt->list);
	if (*first)
		list_add_tail(&wt->list, *first);
	else
		*first = &wt->list;
}

static void dequeue(struct pl__list **first, struct rw_waiter *wt)
{
	if (*first == &wt->list)
		*first = list_empty(&wt->list) ? NULL : wt->list.next;
	list_del_init(&wt->list);
}

/*
 * Moves all queued readers to @taken, which is empty, in one step: their phase
 * is over.  Returns how many.
 */
static uint32_t take_readers(struct pl_rwlock *l, struct pl__list *taken)
{
	uint32_t nr = l->nr_readers;

	if (nr) {
		/* From now on @taken is the head of their list. */
		list_add_tail(taken, l->readers);
		l->readers = NULL;
		l->nr_readers = 0;
		l->phase++;
	}
	return nr;
}

static void take_writer(struct pl_rwlock *l, struct pl__list *taken)
{
	struct rw_waiter *wt = waiter_of(l->writers);

	dequeue(&l->writers, wt);
	wt->is_taken = true;
	list_add_tail(&wt->list, taken);
}

static void rwlock_wake(struct pl__list *taken)
{
	struct rw_waiter *wt;

	while (!list_empty(taken)) {
		wt = waiter_of(taken->next);
		list_del_init(&wt->list);
		/* [rwlock-c] pairs with [rwlock-d] in is_let_in(). */
		store_release(&wt->state, HAS_IT);
		PL_INJECT("rwlock-c");
		pl__wake(&wt->state, 1);
	}
}

/* ---- locking ---- */

/* Changes the word from *@from to @to; false: *@from is the value found. */
static bool rwlock_cas(struct pl_rwlock *l, uint32_t *from, uint32_t to)
{
	return atomic_compare_exchange_weak(&l->word.value, from, to);
}

static bool rwlock_take(struct pl_rwlock *l, const struct share *s)
{
	uint32_t v = load_relaxed(&l->word.value);

	do {
		if (v & s->against)
			return false;
	} while (!rwlock_cas(l, &v, v + s->mine));
	return true;
}

/* In the queues' lock: takes the lock, or makes sure that it is passed on. */
static bool take_or_mark(struct pl_rwlock *l, const struct share *s)
{
	uint32_t v = load_relaxed(&l->word.value);

	/* [rwlock-a] pairs with [rwlock-b] in rwlock_leave(). */
	while (!rwlock_cas(l, &v,
			   v & s->against ? v | WAITED_FOR : v + s->mine))
		;
	PL_INJECT("rwlock-a");
	return !(v & s->against);
}

/* True: the caller has the lock; else it is queued as @wt. */
static bool take_or_queue(struct pl_rwlock *l, const struct share *s,
			  struct rw_waiter *wt)
{
	bool took;

	pl__lock(queues_of(l));
	took = take_or_mark(l, s);
	if (!took && s == &writer) {
		enqueue(&l->writers, wt);
	} else if (!took) {
		wt->phase = l->phase;
		l->nr_readers++;
		enqueue(&l->readers, wt);
	}
	pl__unlock(queues_of(l));
	return took;
}

static bool is_let_in(struct rw_waiter *wt)
{
	/* [rwlock-d] pairs with [rwlock-c] in rwlock_wake(). */
	return load_acquire(&wt->state) == HAS_IT;
}

static void wait_through(struct rw_waiter *wt)
{
	/* The lock cannot fail for want of memory to wait with: try again. */
	while (!is_let_in(wt))
		if (pl__wait(&wt->state, QUEUED, PL_FOREVER,
			     PL__WAIT_UNINTERRUPTIBLE |
			     PL__FOR_RWLOCK) == -ENOMEM)
			pl_yield();
}

/* ---- giving up ---- */

/* In the queues' lock: takes @wt off its queue, but leaves WAITED_FOR. */
static bool unqueue(struct pl_rwlock *l, const struct share *s,
		    struct rw_waiter *wt)
{
	if (s == &writer) {
		if (wt->is_taken)
			return false;
		dequeue(&l->writers, wt);
	} else {
		if (wt->phase != l->phase)
			return false;
		dequeue(&l->readers, wt);
		l->nr_readers--;
	}
	return true;
}

/*
 * In the queues' lock: clears WAITED_FOR after the last waiter; lets readers
 * enter that no longer wait for a writer.
 */
static void after_unqueue(struct pl_rwlock *l, struct pl__list *taken)
{
	bool is_writing = load_relaxed(&l->word.value) & WRITER;

	if (l->writers || (is_writing && l->readers))
		return;
	atomic_fetch_add(&l->word.value, take_readers(l, taken) - WAITED_FOR);
}

/* False: too late, the caller has the lock. */
static bool rwlock_give_up(struct pl_rwlock *l, const struct share *s,
			   struct rw_waiter *wt)
{
	struct pl__list taken = PL__LIST_INIT(taken);
	bool was_queued;

	pl__lock(queues_of(l));
	was_queued = unqueue(l, s, wt);
	if (was_queued)
		after_unqueue(l, &taken);
	pl__unlock(queues_of(l));
	rwlock_wake(&taken);
	return was_queued;
}

static int wait_until(struct pl_rwlock *l, const struct share *s,
		      struct rw_waiter *wt, uint64_t deadline_ns)
{
	int ret;

	do {
		ret = pl__wait(&wt->state, QUEUED, deadline_ns, PL__FOR_RWLOCK);
	} while (!is_let_in(wt) && (!ret || ret == -EAGAIN));

	if (!ret || ret == -EAGAIN)
		return 0;
	if (rwlock_give_up(l, s, wt))
		return ret;
	wait_through(wt);
	pl__interrupt_restore(ret);
	return 0;
}

/* ---- unlocking ---- */

/*
 * In the queues' lock, by the last owner: no other thread changes the word now.
 */
static void hand_on(struct pl_rwlock *l, const struct share *s,
		    struct pl__list *taken)
{
	uint32_t v = WRITER;

	if (s == &writer && l->readers)
		v = take_readers(l, taken);
	else
		take_writer(l, taken);
	if (l->readers || l->writers)
		v |= WAITED_FOR;
	atomic_store(&l->word.value, v);
}

/* False: by now no waiter is left, or other readers have the lock too. */
static bool hand_on_if_last(struct pl_rwlock *l, const struct share *s)
{
	struct pl__list taken = PL__LIST_INIT(taken);
	bool is_last;

	pl__lock(queues_of(l));
	is_last = atomic_load(&l->word.value) == (s->mine | WAITED_FOR);
	if (is_last)
		hand_on(l, s, &taken);
	pl__unlock(queues_of(l));
	PL_INJECT("rwlock-b");
	rwlock_wake(&taken);
	return is_last;
}

static void rwlock_leave(struct pl_rwlock *l, const struct share *s)
{
	uint32_t v = load_relaxed(&l->word.value);

	for (;;) {
		if (v == (s->mine | WAITED_FOR)) {
			if (hand_on_if_last(l, s))
				return;
			v = load_relaxed(&l->word.value);
		/* [rwlock-b] pairs with [rwlock-a] in take_or_mark(). */
		} else if (rwlock_cas(l, &v, v - s->mine)) {
			PL_INJECT("rwlock-b");
			return;
		}
	}
}

/* ---- public functions ---- */

static void rwlock_lock(struct pl_rwlock *l, const struct share *s)
{
	struct rw_waiter wt = { .state = QUEUED };

	if (!rwlock_take(l, s) && !take_or_queue(l, s, &wt))
		wait_through(&wt);
}

static int rwlock_lock_until(struct pl_rwlock *l, const struct share *s,
			     uint64_t deadline_ns)
{
	struct rw_waiter wt = { .state = QUEUED };
	int ret = l ? pl__wait_pending() : -EINVAL;

	if (ret || rwlock_take(l, s))
		return ret;
	/*
	 * A caller that only tries, with a deadline in the past, keeps no other
	 * out.
	 */
	if (deadline_ns != PL_FOREVER && deadline_ns <= pl__now_ns())
		return pl__wait_expired();
	if (take_or_queue(l, s, &wt))
		return 0;
	return wait_until(l, s, &wt, deadline_ns);
}

static int rwlock_trylock(struct pl_rwlock *l, const struct share *s)
{
	if (!l)
		return -EINVAL;
	return rwlock_take(l, s) ? 0 : -EBUSY;
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
