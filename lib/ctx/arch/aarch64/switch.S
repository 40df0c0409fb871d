/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The swap of stacks.  Both sides have the same frame, so that the CFI holds
 * before and after the change of the stack pointer.
 *
 * All branches land on a bti, and the note at the end says so.  PAC needs
 * nothing here: return addresses are in the frames of the functions that
 * switch, and are signed for the stack that they are on.
 */
#include "ctx/arch/aarch64/frame.h"

	.text

/* From swap.h: x0 from, x1 to (both to a stack pointer), x17 back. */
	.globl	pl__ctx_swap
	.hidden	pl__ctx_swap
	.type	pl__ctx_swap, @function
	.p2align 6
pl__ctx_swap:
	.cfi_startproc
	.cfi_return_column x17
	hint	#34			/* bti c */
	sub	sp, sp, #PL__FRAME_SIZE
	.cfi_def_cfa_offset PL__FRAME_SIZE
	stp	x19, x29, [sp, #PL__FRAME_X19]
	.cfi_rel_offset x19, PL__FRAME_X19
	.cfi_rel_offset x29, PL__FRAME_X29
	mrs	x3, fpcr
	stp	x17, x3, [sp, #PL__FRAME_PC]
	.cfi_rel_offset x17, PL__FRAME_PC

	mov	x2, sp
	str	x2, [x0]
	ldr	x2, [x1]
	mov	sp, x2

	/* Writing FPCR may be slow, and it seldom differs. */
	ldp	x17, x4, [sp, #PL__FRAME_PC]
	cmp	x3, x4
	b.ne	.Lload
.Lloaded:
	ldp	x19, x29, [sp, #PL__FRAME_X19]
	add	sp, sp, #PL__FRAME_SIZE
	.cfi_remember_state
	.cfi_restore x19
	.cfi_restore x29
	.cfi_restore x17
	.cfi_def_cfa_offset 0
	br	x17
	.cfi_restore_state
.Lload:
	msr	fpcr, x4
	b	.Lloaded
	.cfi_endproc
	.size	pl__ctx_swap, . - pl__ctx_swap

/*
 * Where the first swap to a new context continues: the bottom of its stack,
 * which has no caller.  Unwinders read the instruction before a return address,
 * that is, the call.
 */
	.globl	pl__ctx_boot
	.hidden	pl__ctx_boot
	.type	pl__ctx_boot, @function
	.p2align 4
pl__ctx_boot:
	.cfi_startproc
	.cfi_undefined x30
	nop				/* PL__BOOT_PAD */
	hint	#36			/* bti j */
	mov	x0, x29
	mov	x29, xzr	/* ends a walk along frame pointers */
	blr	x19
	brk	#1
	.cfi_endproc
	.size	pl__ctx_boot, . - pl__ctx_boot

	.section .note.GNU-stack, "", @progbits

	.section .note.gnu.property, "a", @note
	.p2align 3
	.long	4, 16, 5		/* name, description, type 0 */
	.asciz	"GNU"
	.long	0xc0000000, 4, 1, 0	/* AARCH64_FEATURE_1_AND: BTI */
