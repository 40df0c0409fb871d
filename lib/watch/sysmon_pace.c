/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "watch/sysmon_pace.h"
#include "pace/elastic.h"
#include "queue/rt.h"

#define LOOK_FIRST_NS	(50 * 1000ULL)
#define LOOK_LAST_NS	(5 * 1000 * 1000ULL)
#define LOOK_IO_NS	(1000 * 1000ULL) /* first interval if no task waits */
#define LIVELY_NS	(2 * 1000 * 1000ULL) /* longest, of a lively one */
#define LAST_LOOKS	6	/* at blocked workers, at growing intervals */
#define LOOK_COSTS	8	/* looks take at most this part of the time */

/* The only instance. */
static struct {
	uint64_t	interval_ns;	/* length of the next sleep */
	uint32_t	nr_last_looks;	/* since a task waited */
	uint32_t	ticks;	/* tasks taken, until the last look */
	bool		is_lively;	/* some were since the look before */
} pace;

void pl__pace_start(void)
{
	pace.interval_ns = LOOK_FIRST_NS;
	pace.nr_last_looks = 0;
	pace.ticks = 0;
	pace.is_lively = false;
}

void pl__pace_hurry(void)
{
	pace.interval_ns = LOOK_FIRST_NS;
}

void pl__pace_wake(uint64_t ns, bool has_work)
{
	if (ns > LOOK_LAST_NS)
		pace.interval_ns = has_work ? LOOK_FIRST_NS : LOOK_IO_NS;
}

bool pl__pace_may_sleep(bool has_none_to_look_at)
{
	uint32_t ticks = pl__nr_ticks();

	pace.is_lively = ticks != pace.ticks;
	pace.ticks = ticks;
	return !pace.is_lively &&
	       (has_none_to_look_at || pace.interval_ns >= LOOK_LAST_NS);
}

uint64_t pl__pace_next(uint64_t spent_ns, bool has_work)
{
	uint64_t least = spent_ns * LOOK_COSTS, ns;

	if (pace.interval_ns < least)
		pace.interval_ns = least;
	if (pace.interval_ns > LOOK_LAST_NS)
		pace.interval_ns = LOOK_LAST_NS;
	if (least > LOOK_LAST_NS)
		least = LOOK_LAST_NS;
	ns = pl__elastic_interval(pace.interval_ns, has_work);
	pace.interval_ns *= 2;
	if (pace.is_lively && ns > LIVELY_NS)
		ns = LIVELY_NS;
	return ns < least ? least : ns;
}

void pl__pace_renew(void)
{
	pace.nr_last_looks = 0;
}

uint64_t pl__pace_last_look(uint64_t now)
{
	if (!load_relaxed(&pl__rt.nr_seen) || pace.nr_last_looks == LAST_LOOKS)
		return UINT64_MAX;
	return now + (LOOK_LAST_NS << pace.nr_last_looks++);
}
