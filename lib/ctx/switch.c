/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * switch: the first frame of a context, and the calls for sanitizers
 *
 * ASan keeps a "fake stack" beside each stack: each switch passes it on, and a
 * context that leaves for good gives it up.  TSan takes each context for a
 * thread of its own, a "fibre", and a switch for an order between two of them.
 * TSan would book a call between the change of fibres and the change of stacks
 * on the wrong fibre: so no instrumented code is between the two.
 */
#include "ctx/switch.h"
#include "base/sys.h"

#include <string.h>

#if defined(__x86_64__)
# include "ctx/arch/x86_64/frame.h"
#else
# include "ctx/arch/aarch64/frame.h"
#endif

#ifdef PL_ASAN
# include <pthread.h>
# include <sanitizer/asan_interface.h>
# include <sanitizer/common_interface_defs.h>
#endif
#ifdef PL_TSAN
# include <sanitizer/tsan_interface.h>
#endif

/* Zeroes below the top, where a simple unwinder looks for a caller. */
#define NR_BOTTOM	16

#ifdef PL_ASAN

static void ctx_start(struct pl__ctx *to, void **fake_stack)
{
	__sanitizer_start_switch_fiber(fake_stack, to->base, to->size);
}

/* Not instrumented: otherwise its own frame would be on the fake stack. */
__attribute__((no_sanitize_address))
static void asan_entry(void *arg)
{
	struct pl__ctx *ctx = arg;

	__sanitizer_finish_switch_fiber(NULL, NULL, NULL);
	ctx->entry(ctx->arg);
}

#endif

static void *first_frame(void *base, size_t size, void (*entry)(void *arg),
			 void *arg)
{
	uintptr_t top = ((uintptr_t)base + size) & ~(uintptr_t)15;
	struct pl__frame *frame;

	PL_BUG_ON(size < PL__CTX_SIZE_MIN);
	top -= NR_BOTTOM;
	memset((void *)top, 0, NR_BOTTOM);
	frame = (struct pl__frame *)top - 1;
	pl__frame_init(frame, entry, arg);
	return frame;
}

void pl__ctx_init(struct pl__ctx *ctx, void *base, size_t size,
		  void (*entry)(void *arg), void *arg)
{
	*ctx = (struct pl__ctx){ .sp = NULL };
#ifdef PL_ASAN
	__asan_unpoison_memory_region(base, size);
	ctx->base = base;
	ctx->size = size;
	ctx->entry = entry;
	ctx->arg = arg;
	entry = asan_entry;
	arg = ctx;
#endif
#ifdef PL_TSAN
	ctx->fiber = __tsan_create_fiber(0);
#endif
	ctx->sp = first_frame(base, size, entry, arg);
}

void pl__ctx_fini(struct pl__ctx *ctx)
{
#ifdef PL_ASAN
	/* Frames that the task left without returning are still poisoned. */
	__asan_unpoison_memory_region(ctx->base, ctx->size);
#endif
#ifdef PL_TSAN
	__tsan_destroy_fiber(ctx->fiber);
	ctx->fiber = NULL;
#endif
	ctx->sp = NULL;
}

bool pl__ctx_look(const void *sp, struct pl__ctx_left *left)
{
	struct pl__frame frame;

	if (!pl__read_own_mem(&frame, sp, sizeof(frame)))
		return false;
	*left = pl__frame_left(&frame, (uintptr_t)sp);
	return true;
}

uintptr_t pl__ctx_return(uintptr_t saved)
{
	return pl__frame_return(saved);
}

#ifdef PL_ASAN

static void thread_bounds(struct pl__ctx *ctx)
{
	pthread_attr_t attr;
	void *base = NULL;
	size_t size = 0;

	PL_BUG_ON(pthread_getattr_np(pthread_self(), &attr));
	pthread_attr_getstack(&attr, &base, &size);
	pthread_attr_destroy(&attr);
	ctx->base = base;
	ctx->size = size;
}

#endif

void pl__ctx_thread(struct pl__ctx *ctx)
{
	*ctx = (struct pl__ctx){ .sp = NULL };
#ifdef PL_ASAN
	thread_bounds(ctx);
#endif
#ifdef PL_TSAN
	ctx->fiber = __tsan_get_current_fiber();
#endif
}

#if defined(PL_ASAN) || defined(PL_TSAN)

__attribute__((no_sanitize_address, no_sanitize_thread))
void pl__ctx_switch(struct pl__ctx *from, struct pl__ctx *to)
{
#ifdef PL_ASAN
	ctx_start(to, &from->fake_stack);
#endif
#ifdef PL_TSAN
	__tsan_switch_to_fiber(to->fiber, 0);
#endif
	pl__ctx_swap(from, to);
#ifdef PL_ASAN
	__sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}

__attribute__((no_sanitize_address, no_sanitize_thread))
void pl__ctx_switch_last(struct pl__ctx *from, struct pl__ctx *to)
{
#ifdef PL_ASAN
	ctx_start(to, NULL);
#endif
#ifdef PL_TSAN
	__tsan_switch_to_fiber(to->fiber, 0);
#endif
	pl__ctx_swap(from, to);
	__builtin_trap();
}

#endif
