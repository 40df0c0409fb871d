/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The same as lib_close.c where a ring waits on a futex.
 */
#define RT_WAIT	"futex"

#include "lib_close.c"
