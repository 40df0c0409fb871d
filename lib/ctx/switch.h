/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * switch: from one stack to another
 *
 * A context that does not run is one pointer: to the frame on top of its stack
 * (arch/<arch>/frame.h).  A switch keeps the registers that the ABI has a
 * callee keep, floating-point control included, and nothing else: neither the
 * signal mask nor other state of the thread.  A context may be resumed on
 * another thread than it left, if the two are ordered; after that switch every
 * address of a thread-local variable taken before it is another thread's.
 *
 * No other file of the library knows registers or sanitizers' fibres.
 */
#ifndef PL_SWITCH_H
#define PL_SWITCH_H

#include "base/base.h"

#if defined(__x86_64__)
# include "ctx/arch/x86_64/swap.h"
#elif defined(__aarch64__)
# include "ctx/arch/aarch64/swap.h"
#else
# error "parklot has no stack switch for this architecture"
#endif

struct pl__ctx {
	/* stack pointer; switch.S relies on its offset, 0 */
	void		*sp;
#ifdef PL_ASAN
	void		*fake_stack;	/* ASan's, while it does not run */
	const void	*base;
	size_t		size;
	void		(*entry)(void *arg);
	void		*arg;
#endif
#ifdef PL_TSAN
	void		*fiber;
#endif
};

_Static_assert(offsetof(struct pl__ctx, sp) == 0, "known to switch.S");

/*
 * Makes a context that starts in @entry(@arg), which must not return, on the
 * stack [@base, @base + @size), of at least PL__CTX_SIZE_MIN bytes.
 */
void pl__ctx_init(struct pl__ctx *ctx, void *base, size_t size,
		  void (*entry)(void *arg), void *arg);

/*
 * Called when a context made by pl__ctx_init() will not run again, before its
 * stack has another use.  Not from that stack.
 */
void pl__ctx_fini(struct pl__ctx *ctx);

/*
 * Makes the context of the calling thread's own stack, to switch from and back
 * to.
 */
void pl__ctx_thread(struct pl__ctx *ctx);

#define PL__CTX_SIZE_MIN	1024

/* Where a context left, for unwinding it. */
struct pl__ctx_left {
	uintptr_t	pc;
	uintptr_t	fp;	/* frame pointer, if the caller had one */
	uintptr_t	sp;
};

/*
 * Reads where the context left that saved @sp; it may run meanwhile, and its
 * stack be unmapped.  False: it is unmapped.
 */
bool pl__ctx_look(const void *sp, struct pl__ctx_left *left);

/* The address that a return address in memory stands for. */
uintptr_t pl__ctx_return(uintptr_t saved);

#if defined(PL_ASAN) || defined(PL_TSAN)

void pl__ctx_switch(struct pl__ctx *from, struct pl__ctx *to);
void pl__ctx_switch_last(struct pl__ctx *from, struct pl__ctx *to)
	__attribute__((noreturn));

#else

/*
 * Saves the caller into @from and resumes @to; returns when a thread, this or
 * another, switches to @from.
 */
static inline void pl__ctx_switch(struct pl__ctx *from, struct pl__ctx *to)
{
	pl__ctx_swap(from, to);
}

/* Resumes @to; @from is never resumed. */
static inline void __attribute__((noreturn))
pl__ctx_switch_last(struct pl__ctx *from, struct pl__ctx *to)
{
	pl__ctx_swap(from, to);
	__builtin_trap();
}

#endif

#endif /* PL_SWITCH_H */
