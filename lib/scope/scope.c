/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * scope: a block of code, the tasks that it started, and their common end
 *
 * A scope lists its children that run.  A table lists the scopes by the slot of
 * their owner, the innermost first: so what cancels a task finds the scopes
 * that the task has entered, and from there all tasks below.
 *
 *	owner that enters		task that cancels the owner
 *	in its bucket's lock		state |= CANCELLED	[scope-b]
 *		list the scope		if (state was IN_SCOPE)
 *		state |= IN_SCOPE	[scope-a]	lock the bucket
 *		if (state was CANCELLED)	cancel all scopes that it finds
 *			cancel the scope
 *
 * Invariant: a scope of a cancelled task is cancelled.  Both change the task's
 * state, and such changes have one order: either the canceller's comes second
 * and it sees IN_SCOPE, then takes the lock and finds the scope; or the owner's
 * comes second and it sees CANCELLED.  Otherwise the children of a cancelled
 * task wait on, and it waits for them.
 *
 * A scope lies on its owner's stack.  It stays while it has children, since the
 * owner waits for the last; and while it is pinned: by a thread that cancels
 * what is in it, which pins the scopes that it finds in the table before it
 * unlocks the bucket.  The last to go wakes the owner by address.
 *
 * A child lists itself when it starts, in the scope's lock, and then looks
 * whether the scope is cancelled; a canceller notes the error, and then takes
 * the lock and cancels what is listed.  So no child escapes.
 */
#include "run/run.h"
#include "base/atfork.h"
#include "base/inject.h"
#include "base/list.h"
#include "base/sys.h"
#include "wait/wait.h"

#define ENTERED		0x70c3e5c0U
#define BUCKET_BITS	12

/* Of a task: what its scopes decide. */
#define SCOPE_FLAGS	(PL__TASK_IN_SCOPE | PL__TASK_SCOPE_CANCELLED | \
			 PL__TASK_SHIELDED)

/*
 * What a struct pl_scope contains.  O: the owner.  I: set when it is entered.
 * L: under the lock.  B: under the lock of its owner's bucket.  A: atomic.
 */
struct scope {
	struct pl__lock		lock;
	_Atomic uint32_t	entered;	/* A: ENTERED, or not */
	struct pl__list		children;	/* L: started, not ended */
	struct pl__list		by_owner;	/* B: in the bucket */
	struct pl__task		*owner;		/* I */
	_Atomic uint32_t	nr_children;	/* A: not ended */
	_Atomic uint32_t	nr_pins;	/* A: cancellers at work */
	_Atomic int		error;		/* A: the reason, or 0 */
	bool			is_shield;	/* I */
	_Atomic uint32_t	is_timed_out;	/* A: the timer has fired */
	pl_timer_t		timer;		/* O: 0: no deadline */
	/* the next that its canceller looks at, which alone has marked it */
	struct scope		*next;
} __attribute__((may_alias));

/* What a struct pl_child contains. */
struct child {
	intptr_t		result;
	pl_task_t		task;
	struct pl__list		list;		/* L: of its scope */
	struct scope		*scope;		/* I */
	intptr_t		(*fn)(void *arg); /* I */
	void			*arg;		/* I */
	bool			is_ours;	/* I: allocated here */
} __attribute__((may_alias));

_Static_assert(sizeof(struct scope) <= sizeof(struct pl_scope), "fits");
_Static_assert(sizeof(struct child) <= sizeof(struct pl_child), "fits");
_Static_assert(offsetof(struct child, result) ==
	       offsetof(struct pl_child, result), "the same");
_Static_assert(offsetof(struct child, task) ==
	       offsetof(struct pl_child, task), "the same");

struct bucket {
	struct pl__lock		lock;
	struct pl__list		scopes;		/* L: last entered first */
} __pl_aligned(32);

static struct bucket buckets[1U << BUCKET_BITS];

/* The parent's tasks are none of the child's. */
static void scope_atfork_child(void)
{
	pl__atfork_zero(buckets, sizeof(buckets));
}

PL_ATFORK_CHILD(scope_atfork_child);

static struct bucket *lock_owners_bucket(const struct pl__task *t)
{
	struct bucket *b = &buckets[t->obj.slot % ARRAY_SIZE(buckets)];

	pl__lock(&b->lock);
	if (unlikely(!b->scopes.next))
		list_init(&b->scopes);
	return b;
}

static bool is_error(intptr_t result)
{
	return result < 0 && result >= PL_ERROR_MIN;
}

static bool is_entered(const struct scope *s)
{
	return s && load_acquire(&s->entered) == ENTERED;
}

/* Waits until *@word, which only the last to go wakes, is 0. */
static void wait_until_0(_Atomic uint32_t *word)
{
	uint32_t nr;

	while ((nr = load_acquire(word)))
		pl__wait(word, nr, PL_FOREVER,
			 PL__WAIT_UNINTERRUPTIBLE | PL__FOR_SCOPE);
}

/* The owner may return, and free @word, once it is 0. */
static void sub_and_wake(_Atomic uint32_t *word)
{
	if (atomic_fetch_sub(word, 1) == 1)
		pl__wake(word, 1);
}

/* ---- cancelling ---- */

/* True: the scope was not cancelled before, and the caller is to do it. */
static bool mark(struct scope *s, int error)
{
	int none = 0;

	return atomic_compare_exchange_strong(&s->error, &none, error);
}

static void pin(struct scope *s, struct scope **todo)
{
	atomic_fetch_add_explicit(&s->nr_pins, 1, memory_order_relaxed);
	s->next = *todo;
	*todo = s;
}

/*
 * B: Marks and pins the scopes that @t has entered after @outer, or all that it
 * has entered: from the outermost to the first shield, which it does not touch.
 * False: @t is in such a shield.
 */
static bool pin_inner(struct bucket *b, const struct pl__task *t,
		      struct scope *outer, struct scope **todo)
{
	struct pl__list *pos = outer ? &outer->by_owner : &b->scopes;
	struct scope *s;

	for (pos = pos->prev; pos != &b->scopes; pos = pos->prev) {
		s = list_entry(pos, struct scope, by_owner);
		if (s->owner != t)
			continue;
		if (s->is_shield)
			return false;
		if (mark(s, -ECANCELED))
			pin(s, todo);
	}
	return true;
}

/* If the task has ended, the slot may be another task's. */
static void pin_scopes_of(pl_task_t h, struct scope **todo)
{
	struct pl__task *t = pl__task_slot(h);
	struct bucket *b = lock_owners_bucket(t);

	if (load_relaxed(&t->version) == pl__task_version(h))
		pin_inner(b, t, NULL, todo);
	pl__unlock(&b->lock);
}

static void cancel_children(struct scope *s, struct scope **todo)
{
	struct pl__list *pos, *n;
	struct child *c;

	pl__lock(&s->lock);
	list_for_each_safe(pos, n, &s->children) {
		c = list_entry(pos, struct child, list);
		if (pl__cancel_task(c->task) > 0)
			pin_scopes_of(c->task, todo);
	}
	pl__unlock(&s->lock);
}

/* The scope is pinned, so its owner does not leave it meanwhile. */
static void cancel_owner(struct scope *s, struct scope **todo)
{
	struct bucket *b = lock_owners_bucket(s->owner);
	bool is_reached = !list_empty(&s->by_owner) &&
			  pin_inner(b, s->owner, s, todo);

	if (is_reached)
		atomic_fetch_or(&s->owner->state, PL__TASK_SCOPE_CANCELLED);
	pl__unlock(&b->lock);
	if (is_reached)
		pl__wait_cancel_in_scope(s->owner);
}

/* Cancels what is in the scopes, which are marked and pinned, and below. */
static void cancel_all(struct scope *todo)
{
	struct scope *s;

	while (todo) {
		s = todo;
		todo = s->next;
		cancel_children(s, &todo);
		cancel_owner(s, &todo);
		sub_and_wake(&s->nr_pins);
	}
}

static void scope_cancel(struct scope *s, int error)
{
	struct scope *todo = NULL;

	if (!mark(s, error))
		return;
	pin(s, &todo);
	cancel_all(todo);
}

static void cancel_scopes_of(pl_task_t h)
{
	struct scope *todo = NULL;

	pin_scopes_of(h, &todo);
	cancel_all(todo);
}

int pl_scope_cancel(struct pl_scope *scope, int error)
{
	struct scope *s = (struct scope *)scope;

	if (!is_entered(s) || !is_error(error))
		return -EINVAL;
	scope_cancel(s, error);
	return 0;
}

int pl_scope_error(struct pl_scope *scope)
{
	struct scope *s = (struct scope *)scope;

	return is_entered(s) ? load_acquire(&s->error) : -EINVAL;
}

/* ---- children ---- */

static void child_begin(struct scope *s, struct child *c, struct pl__task *t)
{
	pl__lock(&s->lock);
	list_add_tail(&c->list, &s->children);
	if (load_relaxed(&s->error))
		atomic_fetch_or(&t->state, PL__TASK_CANCELLED);
	pl__unlock(&s->lock);
}

/* With the last child the owner may return, and free the scope. */
static void child_end(struct scope *s, struct child *c)
{
	intptr_t result = c->result;

	pl__lock(&s->lock);
	list_del_init(&c->list);
	pl__unlock(&s->lock);
	if (is_error(result))
		scope_cancel(s, (int)result);
	if (c->is_ours)
		pl__free(c);
	sub_and_wake(&s->nr_children);
}

/*
 * The destructors of the child's values run before the scope counts it as
 * ended.  pl_exit() comes back here.
 */
static __pl_entry void child_main(void *arg)
{
	struct child *c = arg;
	struct scope *s = c->scope;
	jmp_buf here;

	child_begin(s, c, pl__current());
	pl__current()->stack->user.exit_to = &here;
	if (!setjmp(here))
		c->result = c->fn(c->arg);
	pl__self_end_orphan();
	pl__current()->stack->user.exit_to = NULL;
	pl__task_end_locals(pl__current());
	child_end(s, c);
}

static int child_spawn(struct scope *s, struct child *c,
		       const struct pl_spawn_opts *opts)
{
	int ret;

	c->scope = s;
	c->result = 0;
	list_init(&c->list);
	atomic_fetch_add_explicit(&s->nr_children, 1, memory_order_relaxed);
	ret = pl_spawn(&c->task, child_main, c, opts);
	if (ret)
		sub_and_wake(&s->nr_children);
	return ret;
}

int pl_scope_spawn(struct pl_scope *scope, struct pl_child *child,
		   intptr_t (*fn)(void *arg), void *arg,
		   const struct pl_spawn_opts *opts)
{
	struct scope *s = (struct scope *)scope;
	struct child *c = (struct child *)child;
	int ret;

	if (!is_entered(s) || !fn)
		return -EINVAL;
	if (load_acquire(&s->error))
		return -ECANCELED;
	if (!c)
		c = pl__alloc(sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->is_ours = !child;
	c->fn = fn;
	c->arg = arg;
	ret = child_spawn(s, c, opts);
	if (ret && !child)
		pl__free(c);
	return ret;
}

/* ---- the deadline ---- */

static void scope_time_out(void *arg)
{
	struct scope *s = arg;

	scope_cancel(s, -ETIMEDOUT);
	/* From here on the owner may return, and free the scope. */
	store_release(&s->is_timed_out, 1);
	pl__wake(&s->is_timed_out, 1);
}

static int timer_arm(struct scope *s, uint64_t deadline_ns)
{
	if (deadline_ns == PL_FOREVER)
		return 0;
	if (deadline_ns > pl__now_ns())
		return pl_timer_add(&s->timer, deadline_ns,
				    scope_time_out, s);
	scope_cancel(s, -ETIMEDOUT);
	return 0;
}

static void timer_disarm(struct scope *s)
{
	if (!s->timer || pl_timer_del(s->timer) != -EBUSY)
		return;
	while (!load_acquire(&s->is_timed_out))
		pl__wait(&s->is_timed_out, 0, PL_FOREVER,
			 PL__WAIT_UNINTERRUPTIBLE | PL__FOR_SCOPE);
}

/* ---- the owner ---- */

/* Of the task in the scopes around the one that it enters. */
static bool was_cancelled(uint64_t state)
{
	return state & PL__TASK_SCOPE_CANCELLED ||
	       (state & PL__TASK_CANCELLED && !(state & PL__TASK_SHIELDED));
}

static void scope_list(struct scope *s, struct pl__task *t)
{
	struct bucket *b = lock_owners_bucket(t);
	uint64_t old, new = PL__TASK_IN_SCOPE;

	list_add(&s->by_owner, &b->scopes);
	if (s->is_shield)
		new |= PL__TASK_SHIELDED;
	/* [scope-a] pairs with [scope-b] in pl__cancel_task(). */
	old = atomic_fetch_or(&t->state, new);
	PL_INJECT("scope-a");
	if (s->is_shield)
		atomic_fetch_and(&t->state, ~PL__TASK_SCOPE_CANCELLED);
	else if (was_cancelled(old))
		mark(s, -ECANCELED);
	pl__unlock(&b->lock);
}

/* B: The flags of @t by the scopes that it is in. */
static uint64_t flags_of(struct bucket *b, const struct pl__task *t)
{
	uint64_t flags = 0;
	struct pl__list *pos;
	struct scope *s;

	for (pos = b->scopes.next; pos != &b->scopes; pos = pos->next) {
		s = list_entry(pos, struct scope, by_owner);
		if (s->owner != t)
			continue;
		flags |= PL__TASK_IN_SCOPE;
		if (load_acquire(&s->error))
			flags |= PL__TASK_SCOPE_CANCELLED;
		if (s->is_shield)
			return flags | PL__TASK_SHIELDED;
	}
	return flags;
}

/*
 * No canceller finds it from now on.  One that has cancelled the owner, and
 * comes for the owner's scopes next, may not have found it yet.
 */
static void scope_unlist(struct scope *s, struct pl__task *t)
{
	struct bucket *b = lock_owners_bucket(t);
	uint64_t flags;

	if (!s->is_shield && was_cancelled(load_relaxed(&t->state)))
		mark(s, -ECANCELED);
	list_del_init(&s->by_owner);
	flags = flags_of(b, t);
	atomic_fetch_or(&t->state, flags);
	atomic_fetch_and(&t->state, flags | ~SCOPE_FLAGS);
	pl__unlock(&b->lock);
}

/* The scope that @t entered last; NULL: it is in none. */
static struct scope *innermost(const struct pl__task *t)
{
	struct scope *s = NULL;
	struct pl__list *pos;
	struct bucket *b;

	if (!t || !(load_relaxed(&t->state) & PL__TASK_IN_SCOPE))
		return NULL;
	b = lock_owners_bucket(t);
	for (pos = b->scopes.next; !s && pos != &b->scopes; pos = pos->next)
		if (list_entry(pos, struct scope, by_owner)->owner == t)
			s = list_entry(pos, struct scope, by_owner);
	pl__unlock(&b->lock);
	return s;
}

int pl_scope_enter(struct pl_scope *scope, uint64_t deadline_ns,
		   uint32_t flags)
{
	struct scope *s = (struct scope *)scope;
	struct pl__task *t = pl__current();
	int ret;

	if (!s || flags & ~PL_SCOPE_SHIELD || is_entered(s))
		return -EINVAL;
	if (!t)
		t = pl__thread_task();
	if (!t)
		return -ENOMEM;
	*s = (struct scope){
		.owner = t, .is_shield = flags & PL_SCOPE_SHIELD,
	};
	list_init(&s->children);
	scope_list(s, t);
	ret = timer_arm(s, deadline_ns);
	if (ret) {
		scope_unlist(s, t);
		wait_until_0(&s->nr_pins);
		return ret;
	}
	store_release(&s->entered, ENTERED);
	return 0;
}

static int scope_leave(struct scope *s, struct pl__task *t)
{
	wait_until_0(&s->nr_children);
	timer_disarm(s);
	scope_unlist(s, t);
	wait_until_0(&s->nr_pins);
	store_relaxed(&s->entered, 0);
	return load_acquire(&s->error);
}

int pl_scope_leave(struct pl_scope *scope)
{
	struct scope *s = (struct scope *)scope;
	struct pl__task *t = pl__current();

	if (!t)
		t = pl__self_thread();
	if (!is_entered(s) || s != innermost(t))
		return -EINVAL;
	return scope_leave(s, t);
}

/* The task exits, and its frames are there still. */
static void leave_all(struct pl__task *t)
{
	struct scope *s;

	while ((s = innermost(t))) {
		scope_cancel(s, -ECANCELED);
		scope_leave(s, t);
	}
}

static void __attribute__((constructor)) scope_hook_in(void)
{
	pl__cancel_scopes = cancel_scopes_of;
	pl__leave_scopes = leave_all;
}
