/* SPDX-License-Identifier: GPL-2.0-only */
/* What lots say of the workers; included after rt.h. */
#ifndef SELFTESTS_LOTS_H
#define SELFTESTS_LOTS_H

#include "park/lot.h"

#include <linux/parklot.h>

/* All are listed, so that the next signal wakes one of them. */
static inline bool is_all_listed(void)
{
	const struct pl__lots *lots = &pl__rt.main.lots;
	uint32_t nr = 0, i;

	for (i = 0; i < lots->nr; i++) {
		nr += atomic_load(&lots->lot[i].nr_parked);
		if (lots->counters)
			nr += __atomic_load_n(&lots->counters->lot[i].nr_parked,
					      __ATOMIC_SEQ_CST);
	}
	return nr == rt_stat().workers;
}

#endif /* SELFTESTS_LOTS_H */
