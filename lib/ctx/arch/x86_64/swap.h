/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The way into switch.S: by a jump, with the address to continue at in %rdx.
 *
 * A call would leave a return address on the processor's return stack that the
 * ret on the other side does not match, unless both sides switch in the same
 * line: 11 ns instead of 4 (Zen 5).  And here the compiler knows which
 * registers are in use, and saves no others.  switch.S keeps %rbx and %rbp,
 * which compilers may reserve and then do not take as clobbered.
 */
#ifndef PL_ARCH_X86_64_SWAP_H
#define PL_ARCH_X86_64_SWAP_H

#include "base/base.h"

struct pl__ctx;

#define PL__MXCSR_DEFAULT	0x1f80
#define PL__FPUCW_DEFAULT	0x037f

#ifdef __AVX512F__
# define PL__CLOBBER_AVX512						\
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", \
	"xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29",	\
	"xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
# define PL__CLOBBER_AVX512
#endif

static inline __attribute__((always_inline))
void pl__ctx_swap(struct pl__ctx *from, struct pl__ctx *to)
{
	__asm__ volatile(
		"leaq	1f(%%rip), %%rdx\n\t"
		"jmp	pl__ctx_swap\n"
		"1:	endbr64"
		: "+D"(from), "+S"(to)
		:
		: "memory", "cc", "rax", "rcx", "rdx", "r8", "r9", "r10",
		  "r11", "r12", "r13", "r14", "r15", "st", "st(1)", "st(2)",
		  "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "xmm0", "xmm1",
		  "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
		  "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
		  PL__CLOBBER_AVX512);
}

/*
 * A context starts with the ABI's defaults, not with the maker's settings: how
 * a task rounds must not depend on the task that ran before it.  A context that
 * passes to another task as it is gets the defaults by this.
 */
static inline void pl__ctx_reset_fp(void)
{
	uint32_t mxcsr = PL__MXCSR_DEFAULT;
	uint16_t fpucw = PL__FPUCW_DEFAULT;

	__asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(fpucw));
}

#endif /* PL_ARCH_X86_64_SWAP_H */
