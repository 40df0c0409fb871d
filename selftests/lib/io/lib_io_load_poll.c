/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The same as lib_io_load.c where there is no io_uring.
 */
#define RT_IO	"poll"

#include "lib_io_load.c"
