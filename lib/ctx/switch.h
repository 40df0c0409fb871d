/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * switch: from one stack to another
 *
 * A context that does not run is one pointer: to the frame on top of its
 * stack (arch/<arch>/frame.h).  A switch keeps what the ABI has a callee keep,
 * floating-point control included, and nothing else: not the signal mask, not
 * what is the thread's.  A context may be resumed on another thread than it
 * left, provided that the two are ordered; after that switch every address
 * of a thread-local variable taken before it is another thread's.
 *
 * Nothing else in the library knows registers or sanitizers' fibres.
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
	void		*sp;		/* first: all that switch.S knows */
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
 * Makes a context that will start in @entry(@arg), which must not return, on
 * the stack [@base, @base + @size).  At least PL__CTX_SIZE_MIN of it.
 */
void pl__ctx_init(struct pl__ctx *ctx, void *base, size_t size,
		  void (*entry)(void *arg), void *arg);

/*
 * The context made by pl__ctx_init() will not run again and its stack is to be
 * used otherwise.  Not from that stack.
 */
void pl__ctx_fini(struct pl__ctx *ctx);

/* The calling thread's own stack, to be switched away from and back to. */
void pl__ctx_thread(struct pl__ctx *ctx);

#define PL__CTX_SIZE_MIN	1024

/* Where a context left, for who looks at it. */
struct pl__ctx_left {
	uintptr_t	pc;
	uintptr_t	fp;	/* frame pointer, if its caller had one */
	uintptr_t	sp;
};

/*
 * Of the context whose sp was @sp: it may run meanwhile, and the stack be
 * unmapped.  False: it is.
 */
bool pl__ctx_look(const void *sp, struct pl__ctx_left *left);

/* A return address as it lies in memory, as an address. */
uintptr_t pl__ctx_return(uintptr_t saved);

#if defined(PL_ASAN) || defined(PL_TSAN)

void pl__ctx_switch(struct pl__ctx *from, struct pl__ctx *to);
void pl__ctx_switch_last(struct pl__ctx *from, struct pl__ctx *to)
	__attribute__((noreturn));

#else

/*
 * Saves the caller into @from and resumes @to; returns when somebody switches
 * to @from again, on whatever thread that is.
 */
static inline void pl__ctx_switch(struct pl__ctx *from, struct pl__ctx *to)
{
	pl__ctx_swap(from, to);
}

/* The same for good: @from is never resumed. */
static inline void __attribute__((noreturn))
pl__ctx_switch_last(struct pl__ctx *from, struct pl__ctx *to)
{
	pl__ctx_swap(from, to);
	__builtin_trap();
}

#endif

#endif /* PL_SWITCH_H */
