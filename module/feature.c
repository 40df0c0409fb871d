// SPDX-License-Identifier: GPL-2.0-only
/*
 * Features: what was built, less what the administrator, or a test, does not
 * want. What is going on when a bit is taken away goes on.
 */
#include <linux/moduleparam.h>

#include "feature.h"

static unsigned long features = ~0UL;
module_param(features, ulong, 0644);
MODULE_PARM_DESC(features, "offer of PARKLOT_FEAT_* only these (bits)");

/**
 * parklot_features() - PARKLOT_FEAT_* that may be used now
 */
u64 parklot_features(void)
{
	return PARKLOT_BUILT & READ_ONCE(features);
}
