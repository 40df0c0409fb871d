/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * valgrind: tells valgrind of stacks, if its header is there
 *
 * Valgrind takes a stack pointer that moves a little for calls and returns:
 * after a switch to a stack nearby it would take the other stack's frames for
 * invalid.  And its search for leaks reads all memory that may be read: so a
 * stack that no task uses, and that is as the kernel gave it, may not.
 */
#ifndef PL_VALGRIND_H
#define PL_VALGRIND_H

#include "base/base.h"

#if defined(__has_include)
# if __has_include(<valgrind/memcheck.h>)
#  include <valgrind/memcheck.h>
# endif
#endif

#ifdef RUNNING_ON_VALGRIND

static inline bool pl__valgrind_is_on(void)
{
	return RUNNING_ON_VALGRIND;
}

/* Registers a stack; returns its id, for the removal. */
static inline uint32_t pl__valgrind_add(const char *low, size_t size)
{
	return (uint32_t)VALGRIND_STACK_REGISTER(low, low + size - 1);
}

static inline void pl__valgrind_del(uint32_t id)
{
	VALGRIND_STACK_DEREGISTER(id);
}

static inline void pl__valgrind_no_access(char *low, size_t size)
{
	(void)VALGRIND_MAKE_MEM_NOACCESS(low, size);
}

static inline void pl__valgrind_undefined(char *low, size_t size)
{
	(void)VALGRIND_MAKE_MEM_UNDEFINED(low, size);
}

#else

static inline bool pl__valgrind_is_on(void)
{
	return false;
}

static inline uint32_t pl__valgrind_add(const char *low, size_t size)
{
	(void)low;
	(void)size;
	return 0;
}

static inline void pl__valgrind_del(uint32_t id)
{
	(void)id;
}

static inline void pl__valgrind_no_access(char *low, size_t size)
{
	(void)low;
	(void)size;
}

static inline void pl__valgrind_undefined(char *low, size_t size)
{
	(void)low;
	(void)size;
}

#endif

#endif /* PL_VALGRIND_H */
