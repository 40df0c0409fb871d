/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stalled: finds workers that compute for long, beside which others are to run
 *
 * What follows from that is in relief.h.
 */
#ifndef PL_STALLED_H
#define PL_STALLED_H

#include "base/base.h"

/*
 * sysmon: marks stalled workers; returns how many.  @has_work: tasks wait that
 * a worker may take.
 */
uint32_t pl__stalled_scan(uint64_t now, bool has_work);

#endif /* PL_STALLED_H */
