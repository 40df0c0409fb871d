/* SPDX-License-Identifier: GPL-2.0-only */
#include "kselftest_harness.h"
