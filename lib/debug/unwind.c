/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "debug/unwind.h"
#include "debug/symbol.h"
#include "base/sys.h"

#define DEEP		(16 << 10)	/* bytes of a stack that are read */
#define NR_WORDS	64		/* words that are read at a time */

/* The section of what is marked __pl_entry, by the linker. */
extern const char entry_start[] __asm__("__start_pl_entry")
	__attribute__((visibility("hidden")));
extern const char entry_stop[] __asm__("__stop_pl_entry")
	__attribute__((visibility("hidden")));

static bool is_in_entry(uintptr_t pc)
{
	return pc > (uintptr_t)entry_start && pc <= (uintptr_t)entry_stop;
}

static void unwind_add(struct pl__unwind *tr, uintptr_t pc)
{
	if (tr->nr < PL__UNWIND_MAX)
		tr->pc[tr->nr++] = pc;
}

/*
 * Each frame has the address of the next one and, above it, a return address.
 * True: they lead down to the task's own function.  The library has frames of
 * its own where the program has none, and that of the outermost is no bottom.
 */
static bool follow(struct pl__unwind *tr, const struct pl__ctx_left *left,
		   uintptr_t high)
{
	uintptr_t frame[2], at = left->fp, low = left->sp;

	while (at >= low && at < high && !(at % sizeof(frame[0]))) {
		if (!pl__read_own_mem(frame, (void *)at, sizeof(frame)))
			return false;
		frame[1] = pl__ctx_return(frame[1]);
		if (!pl__symbol_is_return(frame[1]))
			return false;
		unwind_add(tr, frame[1]);
		if (is_in_entry(frame[1]))
			return true;
		low = at + sizeof(frame);
		at = frame[0];
	}
	return false;
}

static void scan_stack(struct pl__unwind *tr, uintptr_t at, uintptr_t high)
{
	uintptr_t words[NR_WORDS], pc;
	size_t i, nr;

	if (high - at > DEEP)
		high = at + DEEP;
	for (; at < high && tr->nr < PL__UNWIND_MAX;
	     at += nr * sizeof(*words)) {
		nr = (high - at + sizeof(*words) - 1) / sizeof(*words);
		nr = nr < NR_WORDS ? nr : NR_WORDS;
		if (!pl__read_own_mem(words, (void *)at, nr * sizeof(*words)))
			return;
		for (i = 0; i < nr; i++) {
			pc = pl__ctx_return(words[i]);
			/* An address within the stack is no code. */
			if ((pc < at || pc >= high) && pl__symbol_is_return(pc))
				unwind_add(tr, pc);
		}
	}
}

void pl__unwind_from(struct pl__unwind *tr, const void *sp, const void *high)
{
	struct pl__ctx_left left;

	tr->nr = 0;
	tr->is_guess = false;
	if (!pl__ctx_look(sp, &left) || left.sp >= (uintptr_t)high)
		return;
	unwind_add(tr, left.pc);
	if (follow(tr, &left, (uintptr_t)high))
		return;
	tr->nr = 1;
	tr->is_guess = true;
	scan_stack(tr, left.sp, (uintptr_t)high);
}
