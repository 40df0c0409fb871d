/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * frame: what a walk along frame pointers finds in the library
 *
 * Profilers such as perf follow a register from record to record.  A record in
 * each function would take up to 10 % more instructions of a hot path.  So only
 * public functions make one, and all others leave the register as it is, by
 * -ffixed-rbp.  The walk goes from where the processor is to the public
 * function's caller, and on to the task's first function.
 *
 * A jump in place of the last call would take the record away before.
 *
 * The Makefile includes this first in the library's files, where the compiler
 * has the flag.
 */
#ifndef PL_FRAME_H
#define PL_FRAME_H

#define PL_API \
	__attribute__((visibility("default"), \
		       optimize("no-omit-frame-pointer", \
				"no-optimize-sibling-calls")))

/* A public function without: its caller is not seen, the caller's caller is. */
#define __pl_no_frame \
	__attribute__((optimize("omit-frame-pointer", \
				"optimize-sibling-calls")))

#endif /* PL_FRAME_H */
