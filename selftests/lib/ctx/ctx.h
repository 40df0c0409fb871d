/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stacks for contexts in tests of the rooms below lib/mem/stack.
 */
#ifndef SELFTESTS_CTX_H
#define SELFTESTS_CTX_H

#include "ctx/switch.h"

#include <stdlib.h>
#include <sys/mman.h>

#define STACK_SIZE	(128 * 1024)

static inline void *stack_new(void)
{
	void *p = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static inline void stack_free(void *stack)
{
	munmap(stack, STACK_SIZE);
}

#endif /* SELFTESTS_CTX_H */
