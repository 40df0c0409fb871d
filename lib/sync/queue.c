/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * queue: an inbox with a head that also says which thread has to look into it
 *
 * The head is a pointer to the newest entry, with two bits: BUSY, a task
 * executes entries, or is about to; CLOSED.  Each decision is an atomic change
 * of this one word.
 *
 *	pusher				the queue's task
 *	reserve a task, unless BUSY	take all entries	[queue-a]
 *	push the entry, BUSY on		execute them
 *	    [queue-a]	[queue-b]	no more entries: BUSY off [queue-b]
 *	was not BUSY: commit		else repeat
 *	    the task, else cancel it
 *
 * Invariant: after a push that returned 0 the entry is executed.  The pusher
 * that sets BUSY has reserved a task, and nothing can fail any more; so entries
 * that other pushers add behind it, which return 0, are executed, too.  A
 * pusher that fails to reserve has published nothing.  Otherwise an entry stays
 * in the queue without a task.
 *
 *	closer				the queue's task
 *	CLOSED on	[queue-c]	BUSY off	[queue-c]
 *	was not BUSY: the end		was CLOSED: the end
 *
 * Invariant: the end comes once.  It wakes the joiner, which frees the queue;
 * so no other thread accesses the queue after its own change of the head.
 * Otherwise the joiner waits for ever, or the queue is freed twice.
 *
 * The task takes all entries at once, newest first, as from every inbox of the
 * library, so a preempted pusher never delays it; bthread's pushers use an
 * unconditional exchange, and its consumer waits for them.  Urgent entries are
 * sorted out when they are taken.
 */
#include "base/inject.h"
#include "ds/mpsc.h"
#include "rt/runtime.h"
#include "base/sys.h"
#include "wait/wait.h"

#define CLOSED		((uintptr_t)1)
#define BUSY		((uintptr_t)2)
#define FLAGS		(CLOSED | BUSY)

#define BATCH_MAX	64

struct entry {
	struct pl__link		link;
	void			*item;
	bool			is_urgent;
};

_Static_assert(_Alignof(struct entry) > FLAGS, "flags lie below the pointer");

struct pl_queue {
	_Atomic uintptr_t	head;	/* A: newest entry | BUSY | CLOSED */
	_Atomic uint32_t	ended;	/* A: 1 at the end; the joiner waits */
	_Atomic pl_task_t	task;		/* A: the task that executes */
	void			(*fn)(void **, size_t, void *); /* I */
	void			*arg;		/* I */
	uint32_t		group;	/* I: index of that in which it runs */
};

/* Entries taken and not yet executed, oldest first. */
struct todo {
	struct pl__link		*first;
	struct pl__link		**last;	/* next of the last entry, or first */
};

/* The state of the queue's task, on its stack. */
struct batch {
	struct todo		todo[2]; /* urgent entries, other entries */
	size_t			nr;
	void			*items[BATCH_MAX];
};

static struct entry *entry_of(struct pl__link *l)
{
	return container_of(l, struct entry, link);
}

/* ---- executing ---- */

static void todo_init(struct todo *todo)
{
	todo->first = NULL;
	todo->last = &todo->first;
}

/* Sorts in @newest and all entries behind it, oldest first. */
static void sort_in(struct batch *b, struct pl__link *newest)
{
	struct pl__link *oldest = NULL, *next, **last;
	struct todo *todo;

	for (; newest; newest = next) {
		next = newest->next;
		newest->next = oldest;
		oldest = newest;
	}
	for (; oldest; oldest = next) {
		next = oldest->next;
		oldest->next = NULL;
		todo = &b->todo[!entry_of(oldest)->is_urgent];
		last = todo->last;
		todo->last = &oldest->next;
		*last = oldest;
	}
}

static void take_all(struct pl_queue *q, struct batch *b)
{
	uintptr_t head = load_relaxed(&q->head);

	if (!(head & ~FLAGS))
		return;
	/*
	 * [queue-a] pairs with [queue-a] in push_entry(): the entries are
	 * complete.
	 */
	head = atomic_fetch_and_explicit(&q->head, FLAGS, memory_order_acquire);
	PL_INJECT("queue-a");
	sort_in(b, (struct pl__link *)(head & ~FLAGS));
}

static void move_to_batch(struct batch *b, struct todo *todo)
{
	struct entry *e;

	while (todo->first && b->nr < BATCH_MAX) {
		e = entry_of(todo->first);
		todo->first = e->link.next;
		b->items[b->nr++] = e->item;
		pl__free(e);
	}
	if (!todo->first)
		todo->last = &todo->first;
}

static bool next_batch(struct pl_queue *q, struct batch *b)
{
	take_all(q, b);
	b->nr = 0;
	move_to_batch(b, &b->todo[0]);
	move_to_batch(b, &b->todo[1]);
	return b->nr;
}

/* Wakes the joiner, which may free the queue from here on. */
static void queue_end(struct pl_queue *q)
{
	store_release(&q->ended, 1);
	pl__wake(&q->ended, UINT32_MAX);
}

/* False: there are more entries.  After true *@q belongs to another thread. */
static bool go_idle(struct pl_queue *q)
{
	uintptr_t head = load_relaxed(&q->head) & FLAGS;

	/*
	 * [queue-b] pairs with [queue-b] in push_entry(): the next task sees
	 * what this one did.  [queue-c] pairs with [queue-c] in
	 * pl_queue_close(): the later of the two changes brings the end.
	 */
	if (!atomic_compare_exchange_strong(&q->head, &head, head & ~BUSY))
		return false;
	PL_INJECT("queue-b");
	if (head & CLOSED)
		queue_end(q);
	return true;
}

/*
 * Yields to other tasks of this worker after each full batch.  Not inlined, so
 * that pl_exit() finds *@b in memory.
 */
static __pl_entry void execute(struct pl_queue *q, struct batch *b)
{
	while (next_batch(q, b)) {
		q->fn(b->items, b->nr, q->arg);
		pl__self_end_orphan();
		if (b->nr == BATCH_MAX)
			pl_yield();
	}
}

static void queue_run(void *arg)
{
	struct pl__task *t = pl__current();
	struct pl_queue *q = arg;
	struct batch b;
	jmp_buf here;

	todo_init(&b.todo[0]);
	todo_init(&b.todo[1]);
	store_relaxed(&q->task, pl__task_handle(t));
	/* pl_exit() in fn ends that call, not the queue. */
	t->stack->user.exit_to = &here;
	(void)setjmp(here);
	do {
		execute(q, &b);
		/*
		 * A pusher on this worker may have more entries: to let it run
		 * once saves half of the spawns where the two alternate.
		 * Waiting for longer costs more than it saves.
		 */
		pl_yield();
	} while (!go_idle(q));
	t->stack->user.exit_to = NULL;
}

/* ---- pushing ---- */

/* That of a runtime which has ended may be no more. */
static struct pl__group *queue_group(struct pl_queue *q)
{
	struct pl__group *g = pl__group_at(q->group);

	return g ? g : &pl__rt.main;
}

/* Pushes @e; reserves *@t if needed, to be committed if *@is_first. */
static int push_entry(struct pl_queue *q, struct entry *e, struct pl__task **t,
		      bool *is_first)
{
	uintptr_t head = load_relaxed(&q->head);
	int ret;

	do {
		if (head & CLOSED)
			return -EPIPE;
		if (!(head & BUSY) && !*t) {
			ret = pl__spawn_reserve(t, queue_group(q), queue_run,
						q, "pl-queue");
			if (ret)
				return ret;
		}
		e->link.next = (struct pl__link *)(head & ~FLAGS);
		PL_INJECT("queue-a");
		/*
		 * [queue-a] pairs with [queue-a] in take_all(), [queue-b] with
		 * [queue-b] in go_idle().
		 */
	} while (!atomic_compare_exchange_weak(&q->head, &head,
					       (uintptr_t)&e->link | BUSY));
	*is_first = !(head & BUSY);
	return 0;
}

static int push(struct pl_queue *q, void *item, bool is_urgent)
{
	struct pl__task *t = NULL;
	bool is_first = false;
	struct entry *e;
	int ret;

	if (!q)
		return -EINVAL;
	if (!pl__self() && pl__rt_is_stopping())
		return -ECANCELED;
	e = pl__alloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->item = item;
	e->is_urgent = is_urgent;
	ret = push_entry(q, e, &t, &is_first);
	if (ret)
		pl__free(e);
	if (is_first)
		pl__spawn_commit(t);
	else if (t)
		pl__spawn_cancel(t);
	return ret;
}

int pl_queue_push(struct pl_queue *q, void *item)
{
	return push(q, item, false);
}

int pl_queue_push_urgent(struct pl_queue *q, void *item)
{
	return push(q, item, true);
}

/* ---- creation and end ---- */

int pl_queue_create(struct pl_queue **out,
		    void (*fn)(void **batch, size_t nr, void *arg), void *arg)
{
	struct pl_queue *q;

	if (!out || !fn)
		return -EINVAL;
	q = pl__alloc(sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->fn = fn;
	q->arg = arg;
	q->group = pl__own_group(pl__self())->index;
	*out = q;
	return 0;
}

int pl_queue_close(struct pl_queue *q)
{
	uintptr_t head;

	if (!q)
		return -EINVAL;
	/* [queue-c] pairs with [queue-c] in go_idle(). */
	head = atomic_fetch_or(&q->head, CLOSED);
	PL_INJECT("queue-c");
	if (head & CLOSED)
		return -EPIPE;
	if (!(head & BUSY))
		queue_end(q);
	return 0;
}

int pl_queue_join(struct pl_queue *q)
{
	pl_task_t self = pl_self();
	int ret = q ? pl__wait_pending() : -EINVAL;

	if (!ret && self && load_relaxed(&q->task) == self)
		ret = -EDEADLK;
	if (ret)
		return ret;
	while (!load_acquire(&q->ended)) {
		ret = pl__wait(&q->ended, 0, PL_FOREVER, PL__FOR_QUEUE);
		if (ret && ret != -EAGAIN)
			return ret;
	}
	pl__free(q);
	return 0;
}
