/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sanitizer: tells a program with ThreadSanitizer of the library for it
 */
#ifndef PL_SANITIZER_H
#define PL_SANITIZER_H

#include "base/base.h"

/* Once in a process; nothing in the library that is for ThreadSanitizer. */
void pl__sanitizer_warn(void);

#endif /* PL_SANITIZER_H */
