/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * once: the first caller calls a function, the others wait for its end
 *
 *	waiter				runner
 *	RUNNING -> WAITED_FOR	[once-a]	old = word := DONE	[once-b]
 *	wait while WAITED_FOR		if (old is WAITED_FOR)
 *						wake all
 *
 * Invariant: no waiter sleeps after DONE.  Changes of one word have one order:
 * either the runner's comes second and it sees WAITED_FOR, or the waiter's
 * comes second, fails and sees DONE.  Otherwise the waiter sleeps for ever.
 *
 * A task that leaves the function by pl_exit() has not done it: the word
 * becomes NEW again, all waiters are woken, and one of them calls its own
 * function.
 */
#include "wait/wait.h"
#include "base/inject.h"

enum { NEW, RUNNING, WAITED_FOR, DONE };

/*
 * Identifies the caller among all tasks and threads; a task's version is odd.
 */
static uint64_t caller(void)
{
	pl_task_t t = pl_self();

	return t ? t : pl__self_number() | 2ULL << 32;
}

static bool once_cas(struct pl_once *o, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&o->word.value, &from,
						       to,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/* Publishes @state; another thread may free *@o from here on. */
static void settle(struct pl_once *o, uint32_t state)
{
	/* [once-b] pairs with [once-a] in wait_for_it(). */
	uint32_t old = atomic_exchange_explicit(&o->word.value, state,
						memory_order_release);

	PL_INJECT("once-b");
	if (old == WAITED_FOR)
		pl__wake(&o->word.value, UINT32_MAX);
}

/* pl_exit() in the function returns here, and then the task exits. */
static void run_in(struct pl__task *t, struct pl_once *o,
		   void (*fn)(void *arg), void *arg)
{
	jmp_buf here, *volatile outer = t->stack->user.exit_to;

	t->stack->user.exit_to = &here;
	if (setjmp(here)) {
		pl__current()->stack->user.exit_to = outer;
		__atomic_store_n(&o->runner, 0, __ATOMIC_RELAXED);
		settle(o, NEW);
		pl_exit();
	}
	fn(arg);
	t->stack->user.exit_to = outer;
}

static void once_run(struct pl_once *o, void (*fn)(void *arg), void *arg)
{
	struct pl__task *t = pl__current();

	__atomic_store_n(&o->runner, caller(), __ATOMIC_RELAXED);
	if (t)
		run_in(t, o, fn, arg);
	else
		fn(arg);
	settle(o, DONE);
}

static void wait_for_it(struct pl_once *o)
{
	/* [once-a] pairs with [once-b] in settle(). */
	if (!once_cas(o, RUNNING, WAITED_FOR) &&
	    load_relaxed(&o->word.value) != WAITED_FOR)
		return;
	PL_INJECT("once-a");
	/* The wait cannot fail for want of memory: try again. */
	if (pl__wait(&o->word.value, WAITED_FOR, PL_FOREVER,
		     PL__WAIT_UNINTERRUPTIBLE | PL__FOR_ONCE) == -ENOMEM)
		pl_yield();
}

int pl_once(struct pl_once *o, void (*fn)(void *arg), void *arg)
{
	if (!o || !fn)
		return -EINVAL;
	while (unlikely(load_acquire(&o->word.value) != DONE)) {
		if (once_cas(o, NEW, RUNNING)) {
			once_run(o, fn, arg);
			return 0;
		}
		/*
		 * Only this caller, further up its stack, wrote its own number.
		 */
		if (__atomic_load_n(&o->runner, __ATOMIC_RELAXED) == caller())
			return -EDEADLK;
		wait_for_it(o);
	}
	return 0;
}
