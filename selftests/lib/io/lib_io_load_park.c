/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The same as lib_io_load.c where the device polls the rings.
 */
#define RT_WAIT	"park"

#include "lib_io_load.c"
