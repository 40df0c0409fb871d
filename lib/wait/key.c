/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * key: values that a task keeps, by number and version
 *
 * A task's values are in an array of its own, allocated when it first sets one;
 * each value records for which version of its key it was set.  An ordinary
 * thread keeps them in the slot in which it waits.
 *
 *	task that ends			deleter, then creator
 *	version is the value's?	[key-a]	version++
 *	d = key.dtor		[key-b]	key.dtor = another	[key-b]
 *	version is unchanged?		version++		[key-a]
 *
 * Invariant: a value is destroyed by the destructor of its own key.  A task
 * that reads a version reads a destructor at least as new; a task that reads
 * the next key's destructor then finds the version changed, and does not call
 * it.
 */
#include "run/run.h"
#include "base/atfork.h"
#include "base/inject.h"
#include "base/sys.h"

#include <string.h>

/* A key is alive if its version is odd.  L: written under the lock. */
struct key {
	_Atomic uint32_t	version;		/* L */
	_Atomic(void (*)(void *)) dtor;			/* L */
};

struct value {
	uint32_t		version;
	void			*value;
};

/* The values of a task or thread.  O: that owner.  I: set when allocated. */
struct locals {
	struct pl__locals	base;
	uint32_t		round;	/* O: round of destructor calls */
	uint32_t		next;	/* O: index of the next to destroy */
	bool			has_called; /* O: called one in this round */
	uint32_t		nr;		/* I: length of values */
	struct value		values[];	/* O: by the key's index */
};

#define NR_VALUES_MIN	8	/* a power of 2 */

static struct key keys[PL_KEYS_MAX];
static struct pl__lock keys_lock;

/* The thread that held the lock at the fork does not exist in the child. */
static void key_atfork_child(void)
{
	keys_lock = (struct pl__lock){ 0 };
}

PL_ATFORK_CHILD(key_atfork_child);

/* ---- keys ---- */

static uint32_t index_of(pl_key_t key)
{
	return (uint32_t)key;
}

static uint32_t version_of(pl_key_t key)
{
	return (uint32_t)(key >> 32);
}

static bool is_key(pl_key_t key)
{
	return index_of(key) < PL_KEYS_MAX && version_of(key) & 1 &&
	       load_acquire(&keys[index_of(key)].version) == version_of(key);
}

/* L: a free key, or NULL; a key that has used up its versions is not free. */
static struct key *find_free(void)
{
	struct key *k;
	uint32_t version;

	for (k = keys; k < keys + PL_KEYS_MAX; k++) {
		version = load_relaxed(&k->version);
		if (!(version & 1) && version != UINT32_MAX - 1)
			return k;
	}
	return NULL;
}

int pl_key_create(pl_key_t *out, void (*dtor)(void *value))
{
	uint32_t version;
	struct key *k;

	if (!out)
		return -EINVAL;
	pl__lock(&keys_lock);
	k = find_free();
	if (k) {
		version = load_relaxed(&k->version) + 1;
		/* [key-b] pairs with [key-b] in dtor_of(). */
		store_release(&k->dtor, dtor);
		PL_INJECT("key-b");
		/* [key-a] pairs with [key-a] in dtor_of(). */
		store_release(&k->version, version);
		*out = (uint64_t)(k - keys) | (uint64_t)version << 32;
	}
	pl__unlock(&keys_lock);
	return k ? 0 : -EAGAIN;
}

int pl_key_delete(pl_key_t key)
{
	bool ok;

	pl__lock(&keys_lock);
	ok = is_key(key);
	if (ok)
		store_release(&keys[index_of(key)].version,
			      version_of(key) + 1);
	pl__unlock(&keys_lock);
	return ok ? 0 : -EINVAL;
}

static void (*dtor_of(uint32_t index, uint32_t version))(void *value)
{
	struct key *k = &keys[index];
	void (*dtor)(void *value);

	/* [key-a] pairs with [key-a] in pl_key_create(). */
	if (load_acquire(&k->version) != version)
		return NULL;
	PL_INJECT("key-a");
	/* [key-b] pairs with [key-b] in pl_key_create(). */
	dtor = load_acquire(&k->dtor);
	return load_relaxed(&k->version) == version ? dtor : NULL;
}

/* ---- values ---- */

static struct locals *locals_of(struct pl__task *t)
{
	return t->locals ? container_of(t->locals, struct locals, base) : NULL;
}

/* The next value that has a destructor; NULL: none left in this round. */
static void *take_next(struct locals *l, void (**dtor)(void *value))
{
	struct value *v;
	void *value;

	while (l->next < l->nr) {
		v = &l->values[l->next];
		value = v->value;
		v->value = NULL;
		*dtor = value ? dtor_of(l->next, v->version) : NULL;
		l->next++;
		if (*dtor)
			return value;
	}
	return NULL;
}

/* False: no value is left, or destructors have set values too often. */
static bool destroy_next(struct pl__task *t)
{
	struct locals *l = locals_of(t);
	void (*dtor)(void *value) = NULL;
	void *value = take_next(l, &dtor);

	if (value) {
		l->has_called = true;
		dtor(value);
		pl__self_end_orphan();
		return true;
	}
	if (!l->has_called || ++l->round == PL_KEY_ROUNDS)
		return false;
	l->has_called = false;
	l->next = 0;
	return true;
}

/*
 * A destructor may block and continue on another thread, set values so that the
 * array moves, and end by pl_exit().
 */
static void key_end(struct pl__task *t)
{
	jmp_buf here;

	t->is_ending = true;
	/* An ordinary thread does not end by pl_exit(). */
	if (t->stack)
		t->stack->user.exit_to = &here;
	(void)setjmp(here);
	while (destroy_next(t))
		;
	if (t->stack)
		t->stack->user.exit_to = NULL;
	t->is_ending = false;
	pl__free(locals_of(t));
	t->locals = NULL;
	if (!pl__current())
		pl__self_keep(NULL);
}

/* The values of @t, with room for one at @index. */
static struct locals *grow(struct pl__task *t, uint32_t index)
{
	struct locals *old = locals_of(t), *l;
	uint32_t nr = old ? old->nr : NR_VALUES_MIN;

	while (nr <= index)
		nr *= 2;
	l = pl__alloc(sizeof(*l) + nr * sizeof(l->values[0]));
	if (!l)
		return NULL;
	if (old)
		memcpy(l, old, sizeof(*l) + old->nr * sizeof(l->values[0]));
	pl__free(old);
	l->base.end = key_end;
	l->nr = nr;
	t->locals = &l->base;
	if (!pl__current())
		pl__self_keep(l);
	return l;
}

int pl_key_set(pl_key_t key, void *value)
{
	struct pl__task *t = pl__current();
	uint32_t index = index_of(key);
	struct locals *l;

	if (!is_key(key))
		return -EINVAL;
	if (!t)
		t = pl__thread_task();
	if (!t)
		return -ENOMEM;
	l = locals_of(t);
	if (!l || index >= l->nr) {
		if (!value)
			return 0;
		l = grow(t, index);
		if (!l)
			return -ENOMEM;
	}
	l->values[index] = (struct value){ version_of(key), value };
	return 0;
}

void *pl_key_get(pl_key_t key)
{
	struct pl__task *t = pl__current();
	struct locals *l;
	struct value *v;

	if (!t)
		t = pl__self_thread();
	l = t ? locals_of(t) : NULL;
	if (!l || index_of(key) >= l->nr || !is_key(key))
		return NULL;
	v = &l->values[index_of(key)];
	return v->version == version_of(key) ? v->value : NULL;
}
