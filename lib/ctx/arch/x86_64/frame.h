/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The frame on top of the stack of a context that does not run, lowest address
 * first: pl__ctx_swap() in switch.S writes and reads it, switch.c makes the
 * first one.  It has those registers that the System V ABI has a callee keep
 * and that a compiler may reserve; the compiler saves the others itself, if
 * they are in use (swap.h).
 */
#ifndef PL_ARCH_X86_64_FRAME_H
#define PL_ARCH_X86_64_FRAME_H

#define PL__FRAME_MXCSR		0
#define PL__FRAME_FPUCW		4
#define PL__FRAME_RBX		8
#define PL__FRAME_RBP		16
#define PL__FRAME_RIP		24
#define PL__FRAME_RED_ZONE	32
#define PL__FRAME_SIZE		160

/* Unwinders read the byte before a return address: leave room for it. */
#define PL__BOOT_PAD		4

#ifndef __ASSEMBLER__

#include "ctx/arch/x86_64/swap.h"
#include "base/base.h"

struct pl__frame {
	uint32_t	mxcsr;
	uint16_t	fpucw;
	uint16_t	pad;
	uint64_t	rbx;	/* of a new context: the entry */
	uint64_t	rbp;	/* of a new context: the argument */
	uint64_t	rip;
	uint8_t		red_zone[128];	/* of the function that switches */
};

#define PL__FRAME_AT(field, offset) \
	_Static_assert(offsetof(struct pl__frame, field) == (offset), #field)

PL__FRAME_AT(mxcsr, PL__FRAME_MXCSR);
PL__FRAME_AT(fpucw, PL__FRAME_FPUCW);
PL__FRAME_AT(rbx, PL__FRAME_RBX);
PL__FRAME_AT(rbp, PL__FRAME_RBP);
PL__FRAME_AT(rip, PL__FRAME_RIP);
PL__FRAME_AT(red_zone, PL__FRAME_RED_ZONE);
_Static_assert(sizeof(struct pl__frame) == PL__FRAME_SIZE, "size");
_Static_assert(PL__FRAME_SIZE % 16 == 0, "boot calls with an aligned stack");

void pl__ctx_boot(void);

static inline void pl__frame_init(struct pl__frame *f, void (*entry)(void *),
				  void *arg)
{
	f->mxcsr = PL__MXCSR_DEFAULT;
	f->fpucw = PL__FPUCW_DEFAULT;
	f->rbx = (uintptr_t)entry;
	f->rbp = (uintptr_t)arg;
	f->rip = (uintptr_t)pl__ctx_boot + PL__BOOT_PAD;
}

static inline struct pl__ctx_left pl__frame_left(const struct pl__frame *f,
						 uintptr_t at)
{
	return (struct pl__ctx_left){ f->rip, f->rbp, at + sizeof(*f) };
}

static inline uintptr_t pl__frame_return(uintptr_t saved)
{
	return saved;
}

#endif /* !__ASSEMBLER__ */
#endif /* PL_ARCH_X86_64_FRAME_H */
