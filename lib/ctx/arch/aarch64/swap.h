/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The way into switch.S: by a jump, with the address to continue at in x17
 * (from which a branch may land on any bti).
 *
 * A call would leave a return address on the processor's return stack that the
 * ret on the other side does not match, unless both sides switch in the same
 * line.  And here the compiler knows which registers are in use, and saves no
 * others.  switch.S keeps x19 and x29, which compilers may reserve and then do
 * not take as clobbered.
 */
#ifndef PL_ARCH_AARCH64_SWAP_H
#define PL_ARCH_AARCH64_SWAP_H

#include "base/base.h"

struct pl__ctx;

#define PL__FPCR_DEFAULT	0UL

#ifdef __ARM_FEATURE_SVE
# define PL__CLOBBER_SVE						\
	, "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9",	\
	"p10", "p11", "p12", "p13", "p14", "p15", "ffr"
#else
# define PL__CLOBBER_SVE
#endif

static inline __attribute__((always_inline))
void pl__ctx_swap(struct pl__ctx *from, struct pl__ctx *to)
{
	register struct pl__ctx *x0 __asm__("x0") = from;
	register struct pl__ctx *x1 __asm__("x1") = to;

	__asm__ volatile(
		"adr	x17, 1f\n\t"
		"b	pl__ctx_swap\n"
		"1:	hint	#36"	/* bti j */
		: "+r"(x0), "+r"(x1)
		:
		: "memory", "cc", "x2", "x3", "x4", "x5", "x6", "x7", "x8",
		  "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
		  "x17", "x18", "x20", "x21", "x22", "x23", "x24", "x25",
		  "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4",
		  "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",
		  "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",
		  "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
		  "v30", "v31" PL__CLOBBER_SVE);
}

/*
 * A context starts with the ABI's defaults, not with the maker's settings: how
 * a task rounds must not depend on the task that ran before it.  A context that
 * passes to another task as it is gets the defaults by this.
 */
static inline void pl__ctx_reset_fp(void)
{
	__asm__ volatile("msr fpcr, %0" : : "r"(PL__FPCR_DEFAULT));
}

#endif /* PL_ARCH_AARCH64_SWAP_H */
