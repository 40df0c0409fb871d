/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Task-local storage: values that each task, or thread, has of its own.
 */
#ifndef PARKLOT_KEY_H
#define PARKLOT_KEY_H

#include "base.h"

PL_BEGIN_DECLS

typedef uint64_t pl_key_t;	/* index | version << 32; 0 is no key */

/* The maximal number of keys at a time. */
#define PL_KEYS_MAX		1024

/* The maximal number of rounds of destructors, which may set values again. */
#define PL_KEY_ROUNDS		4

/**
 * pl_key_create() - a key under which each task and thread has its own value
 * @out:  where to put the key
 * @dtor: called with each value but NULL in the task that has it, when that
 *        ends; or NULL
 *
 * Every value is NULL at first, whatever an earlier key of the same index
 * held.
 *
 * A destructor may do everything that a task may do.  It is no point of
 * interruption or cancellation: its blocking calls ignore pl_interrupt(),
 * pl_cancel() and the stop of the runtime, which waits for it.  pl_exit() ends
 * the destructor; the others are still run.
 *
 * Context: any thread.
 * Return: 0; -EAGAIN if there are PL_KEYS_MAX keys; -EINVAL.
 */
PL_API int pl_key_create(pl_key_t *out, void (*dtor)(void *value));

/**
 * pl_key_delete() - delete the key, and not the values
 *
 * The values are no longer accessible, and no destructor is called for them
 * from now on; a destructor that has begun may still be running.
 *
 * Return: 0; -EINVAL if there is no such key any more.
 */
PL_API int pl_key_delete(pl_key_t key);

/**
 * pl_key_set() - set the value of the calling task, or thread, to @value
 *
 * The previous value is overwritten, not destroyed.
 *
 * Return: 0; -EINVAL if there is no such key any more; -ENOMEM.
 */
PL_API int pl_key_set(pl_key_t key, void *value);

/** pl_key_get() - the value; NULL: none was set, or there is no such key */
PL_API void *pl_key_get(pl_key_t key);

PL_END_DECLS

#endif /* PARKLOT_KEY_H */
