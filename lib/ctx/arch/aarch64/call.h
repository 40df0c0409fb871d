/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The instruction before a return address.
 */
#ifndef PL_ARCH_AARCH64_CALL_H
#define PL_ARCH_AARCH64_CALL_H

#include "base/base.h"

#include <string.h>

#define PL__CALL_SIZE_MAX	4

/* True: the bytes that end at @end may be a call: bl, blr or blraa. */
static inline bool pl__is_call(const uint8_t *end)
{
	uint32_t insn;

	memcpy(&insn, end - sizeof(insn), sizeof(insn));
	return (insn & 0xfc000000) == 0x94000000 ||
	       (insn & 0xfffffc1f) == 0xd63f0000 ||
	       (insn & 0xfefff800) == 0xd63f0800;
}

#endif /* PL_ARCH_AARCH64_CALL_H */
