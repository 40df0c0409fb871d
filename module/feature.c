// SPDX-License-Identifier: GPL-2.0-only
/*
 * Features: those that were built, less those that the administrator, or a
 * test, does not want. If a bit is taken away, calls in progress go on.
 */
#include <linux/moduleparam.h>

#include "feature.h"

static unsigned long features = ~0UL;
module_param(features, ulong, 0644);
MODULE_PARM_DESC(features, "offer of PARKLOT_FEAT_* only these (bits)");

/**
 * parklot_features() - the PARKLOT_FEAT_* that may be used now
 *
 * Return: their bits.
 */
u64 parklot_features(void)
{
	return PARKLOT_BUILT & READ_ONCE(features);
}
