/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The swap of stacks.  Both sides have the same frame, so that the CFI holds
 * before and after the change of the stack pointer.
 *
 * The caller jumps to it and it jumps back, so calls and returns are paired on
 * each stack, though not on the processor's: no program with it can run under
 * CET shadow stacks, which it does not switch.  The note at the end claims IBT
 * alone, from which the linker learns that.
 */
#include "ctx/arch/x86_64/frame.h"

	.text

/* From swap.h: %rdi from, %rsi to (both to a stack pointer), %rdx back. */
	.globl	pl__ctx_swap
	.hidden	pl__ctx_swap
	.type	pl__ctx_swap, @function
	.p2align 6
pl__ctx_swap:
	.cfi_startproc
	.cfi_def_cfa %rsp, 0
	.cfi_register %rip, %rdx
	leaq	-PL__FRAME_SIZE(%rsp), %rsp
	.cfi_def_cfa_offset PL__FRAME_SIZE
	movq	%rdx, PL__FRAME_RIP(%rsp)
	.cfi_rel_offset %rip, PL__FRAME_RIP
	movq	%rbp, PL__FRAME_RBP(%rsp)
	.cfi_rel_offset %rbp, PL__FRAME_RBP
	movq	%rbx, PL__FRAME_RBX(%rsp)
	.cfi_rel_offset %rbx, PL__FRAME_RBX
	stmxcsr	PL__FRAME_MXCSR(%rsp)
	fnstcw	PL__FRAME_FPUCW(%rsp)

	movq	%rsp, (%rdi)
	movq	(%rsi), %rsp

	/* Always loaded: to compare first, and load seldom, was 2 ns slower. */
	ldmxcsr	PL__FRAME_MXCSR(%rsp)
	fldcw	PL__FRAME_FPUCW(%rsp)
	movq	PL__FRAME_RBX(%rsp), %rbx
	.cfi_restore %rbx
	movq	PL__FRAME_RBP(%rsp), %rbp
	.cfi_restore %rbp
	movq	PL__FRAME_RIP(%rsp), %rdx
	.cfi_register %rip, %rdx
	leaq	PL__FRAME_SIZE(%rsp), %rsp
	.cfi_def_cfa_offset 0
	jmp	*%rdx
	.cfi_endproc
	.size	pl__ctx_swap, . - pl__ctx_swap

/*
 * Where the first swap to a new context continues: the bottom of its stack,
 * which has no caller.  Unwinders read the byte before a return address, that
 * is, into the call.
 */
	.globl	pl__ctx_boot
	.hidden	pl__ctx_boot
	.type	pl__ctx_boot, @function
	.p2align 4
pl__ctx_boot:
	.cfi_startproc
	.cfi_undefined %rip
	.nops	PL__BOOT_PAD
	endbr64
	movq	%rbp, %rdi
	xorl	%ebp, %ebp	/* ends a walk along frame pointers */
	call	*%rbx
	ud2
	.cfi_endproc
	.size	pl__ctx_boot, . - pl__ctx_boot

	.section .note.GNU-stack, "", @progbits

	.section .note.gnu.property, "a", @note
	.p2align 3
	.long	4, 16, 5		/* name, description, type 0 */
	.asciz	"GNU"
	.long	0xc0000002, 4, 1, 0	/* X86_FEATURE_1_AND: IBT */
