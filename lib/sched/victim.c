/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/victim.h"

/* A level that the machine lacks is passed with the next. */
static bool victims_next_level(struct pl__victims *v)
{
	uint32_t level;

	if (!v->levels)
		return false;
	level = (uint32_t)__builtin_ctz(v->levels);
	v->levels &= v->levels - 1;
	v->from = v->end;
	v->end = pl__level_end(level);
	v->left = v->nr;
	return true;
}

void pl__victims_begin(struct pl__victims *v, uint32_t thief, uint64_t at,
		       uint32_t nr, uint32_t first)
{
	v->at = at;
	v->end = 0;
	v->levels = load_relaxed(&pl__rt.levels) | 1U << PL__OTHER_NODE;
	v->thief = thief;
	v->nr = nr;
	v->next = first % nr;
	victims_next_level(v);
}

uint32_t pl__victims_next(struct pl__victims *v)
{
	uint64_t distance;
	uint32_t i;

	do {
		while (v->left) {
			v->left--;
			i = v->next;
			v->next = i + 1 < v->nr ? i + 1 : 0;
			distance = load_relaxed(&pl__rt.locations[i]) ^ v->at;
			if (distance >= v->from && distance < v->end &&
			    i != v->thief)
				return i;
		}
	} while (victims_next_level(v));
	return PL__NO_VICTIM;
}
