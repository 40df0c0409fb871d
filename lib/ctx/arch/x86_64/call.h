/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The instruction before a return address.
 */
#ifndef PL_ARCH_X86_64_CALL_H
#define PL_ARCH_X86_64_CALL_H

#include "base/base.h"

#define PL__CALL_SIZE_MAX	7

/* True: the bytes that end at @end may be a call. */
static inline bool pl__is_call(const uint8_t *end)
{
	static const int8_t sizes[] = { 2, 3, 4, 6, 7 };
	size_t i;

	if (end[-5] == 0xe8)
		return true;
	/* ff /2, with the operand in a register or in memory. */
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		if (end[-sizes[i]] == 0xff &&
		    (end[-sizes[i] + 1] & 0x38) == 0x10)
			return true;
	return false;
}

#endif /* PL_ARCH_X86_64_CALL_H */
