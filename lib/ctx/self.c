/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "ctx/self.h"
#include "base/inject.h"
#include "base/atfork.h"
#include "base/lock.h"
#include "base/sys.h"

#include <pthread.h>

static __thread struct pl__worker *self_worker PL_TLS_EARLY;
static __thread struct pl__task *self_thread PL_TLS_EARLY;
static __thread void *volatile self_locals PL_TLS_EARLY;
static __thread uint32_t self_number PL_TLS_EARLY;
static __thread uint32_t self_unsignalled PL_TLS_EARLY;
static __thread bool self_is_own PL_TLS_EARLY;
static __thread bool self_is_orphan PL_TLS_EARLY;

static struct pl__lock key_lock;
static pthread_key_t key;
static bool has_key;
static pthread_key_t guard;
static _Atomic bool has_guard;
static _Atomic uint32_t nr_numbers;

__pl_noinline struct pl__worker *pl__self(void)
{
	/* Makes the function impure: the compiler must not merge two calls. */
	__asm__ volatile("" ::: "memory");
	return self_worker;
}

__pl_noinline void pl__self_set(struct pl__worker *w)
{
	self_worker = w;
}

__pl_noinline struct pl__task *pl__self_thread(void)
{
	__asm__ volatile("" ::: "memory");
	return self_thread;
}

__pl_noinline int pl__self_set_thread(struct pl__task *t,
				      void (*gone)(void *t))
{
	int ret = 0;

	pl__lock(&key_lock);
	if (!has_key) {
		ret = PL_FAULTY(EAGAIN, pthread_key_create(&key, gone));
		has_key = !ret;
	}
	pl__unlock(&key_lock);
	if (!ret)
		ret = PL_FAULTY(ENOMEM, pthread_setspecific(key, t));
	if (!ret)
		self_thread = t;
	return -ret;
}

__pl_noinline void pl__self_keep(void *locals)
{
	self_locals = locals;
}

__pl_noinline void pl__self_guard(void *arg, void (*gone)(void *arg))
{
	pl__lock(&key_lock);
	if (!has_guard)
		has_guard = !PL_FAULTY(EAGAIN, pthread_key_create(&guard,
								  gone));
	pl__unlock(&key_lock);
	if (has_guard)
		pthread_setspecific(guard, arg);
}

__pl_noinline void pl__self_unguard(void)
{
	if (has_guard)
		pthread_setspecific(guard, NULL);
}

__pl_noinline void pl__self_is_own(void)
{
	self_is_own = true;
}

__pl_noinline void pl__self_end_orphan(void)
{
	if (unlikely(self_is_orphan))
		exit(0);
}

static void self_atfork_child(void)
{
	self_worker = NULL;
	self_thread = NULL;
	self_unsignalled = 0;
	key_lock = (struct pl__lock){ 0 };
	if (has_key)
		pthread_setspecific(key, NULL);
	pl__self_unguard();
	if (!self_is_own)
		return;
	self_is_own = false;
	self_is_orphan = true;
	pl__signals_restore();
}

PL_ATFORK_CHILD(self_atfork_child);

__pl_noinline uint32_t pl__self_number(void)
{
	__asm__ volatile("" ::: "memory");
	if (!self_number)
		self_number = 1 + atomic_fetch_add_explicit(&nr_numbers, 1,
							memory_order_relaxed);
	return self_number;
}

__pl_noinline void pl__self_add_unsignalled(uint32_t nr)
{
	self_unsignalled += nr;
}

__pl_noinline uint32_t pl__self_take_unsignalled(void)
{
	uint32_t nr = self_unsignalled;

	self_unsignalled = 0;
	return nr;
}
