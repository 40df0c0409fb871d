/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The frame on top of the stack of a context that does not run, lowest address
 * first: pl__ctx_swap() in switch.S writes and reads it, switch.c makes the
 * first one.  It has those registers that AAPCS64 has a callee keep and that a
 * compiler may reserve; the compiler saves the others itself, if they are in
 * use (swap.h).
 *
 * AAPCS64 calls FPCR global, changed only by functions meant for that: a task
 * that calls one must not change how other tasks round, so the context keeps
 * FPCR, as it keeps the control words on x86-64.
 */
#ifndef PL_ARCH_AARCH64_FRAME_H
#define PL_ARCH_AARCH64_FRAME_H

#define PL__FRAME_X19		0
#define PL__FRAME_X29		8
#define PL__FRAME_PC		16
#define PL__FRAME_FPCR		24
#define PL__FRAME_SIZE		32

/*
 * Unwinders read the instruction before a return address: leave room for one.
 */
#define PL__BOOT_PAD		4

#ifndef __ASSEMBLER__

#include "ctx/arch/aarch64/swap.h"
#include "base/base.h"

struct pl__frame {
	uint64_t	x19;	/* of a new context: the entry */
	uint64_t	x29;	/* of a new context: the argument */
	uint64_t	pc;
	uint64_t	fpcr;
};

#define PL__FRAME_AT(field, offset) \
	_Static_assert(offsetof(struct pl__frame, field) == (offset), #field)

PL__FRAME_AT(x19, PL__FRAME_X19);
PL__FRAME_AT(x29, PL__FRAME_X29);
PL__FRAME_AT(pc, PL__FRAME_PC);
PL__FRAME_AT(fpcr, PL__FRAME_FPCR);
_Static_assert(sizeof(struct pl__frame) == PL__FRAME_SIZE, "size");
_Static_assert(PL__FRAME_SIZE % 16 == 0, "sp must be aligned");

void pl__ctx_boot(void);

static inline void pl__frame_init(struct pl__frame *f, void (*entry)(void *),
				  void *arg)
{
	f->x19 = (uintptr_t)entry;
	f->x29 = (uintptr_t)arg;
	f->pc = (uintptr_t)pl__ctx_boot + PL__BOOT_PAD;
	f->fpcr = PL__FPCR_DEFAULT;
}

static inline struct pl__ctx_left pl__frame_left(const struct pl__frame *f,
						 uintptr_t at)
{
	return (struct pl__ctx_left){ f->pc, f->x29, at + sizeof(*f) };
}

/* A return address without its signature, if it has one. */
static inline uintptr_t pl__frame_return(uintptr_t saved)
{
	return saved & ((1UL << 48) - 1);
}

#endif /* !__ASSEMBLER__ */
#endif /* PL_ARCH_AARCH64_FRAME_H */
