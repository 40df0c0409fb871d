/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The features of this kernel and this module, as QUERY reports them. What
 * cannot be built is not called either: the compiler knows that
 * parklot_is_built() is false.
 */
#ifndef PARKLOT_FEATURE_H
#define PARKLOT_FEATURE_H

#include <linux/parklot.h>
#include <linux/types.h>

#ifdef PARKLOT_HAS_CREW
#define PARKLOT_BUILT_CREW	PARKLOT_FEAT_CREW
#else
#define PARKLOT_BUILT_CREW	0
#endif

#ifdef PARKLOT_HAS_HANDOFF
#define PARKLOT_BUILT_HANDOFF	PARKLOT_FEAT_HANDOFF
#else
#define PARKLOT_BUILT_HANDOFF	0
#endif

#define PARKLOT_BUILT		(PARKLOT_BUILT_CREW | PARKLOT_BUILT_HANDOFF | \
				 PARKLOT_FEAT_POLLFD)

u64 parklot_features(void);

static __always_inline bool parklot_is_built(u64 feature)
{
	return PARKLOT_BUILT & feature;
}

/* May the feature be used now? */
static __always_inline bool parklot_has(u64 feature)
{
	return parklot_is_built(feature) && parklot_features() & feature;
}

#endif /* PARKLOT_FEATURE_H */
