/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sched/forecast.h"

#define SCORE_BITS	2

_Atomic bool pl__forecast_has_any;

/* Each entry is a routine's address, shifted, and its score. */
static _Atomic uint64_t routines[PL__FORECAST_ROUTINES];

static _Atomic uint64_t *forecast_of(void (*fn)(void *arg))
{
	uint64_t hash = PL_NUMBER_OF(fn) * 0x9e3779b97f4a7c15ULL;

	return &routines[(hash >> 32) % PL__FORECAST_ROUTINES];
}

static uint64_t forecast_key(void (*fn)(void *arg))
{
	return (uint64_t)(uintptr_t)fn << SCORE_BITS;
}

static uint8_t forecast_score(uint64_t entry)
{
	return entry & ((1U << SCORE_BITS) - 1);
}

uint8_t pl__forecast_score(uint8_t score, bool has_blocked)
{
	if (has_blocked)
		return score + 2 < PL__FORECAST_MOST ? (uint8_t)(score + 2) :
						       PL__FORECAST_MOST;
	return score ? (uint8_t)(score - 1) : 0;
}

/* A routine that has a score keeps its place, with less of it. */
void pl__forecast_add(void (*fn)(void *arg), bool has_blocked)
{
	_Atomic uint64_t *at = forecast_of(fn);
	uint64_t entry = load_relaxed(at), key = forecast_key(fn);
	uint8_t score = forecast_score(entry);

	if (entry - score == key)
		entry = key | pl__forecast_score(score, has_blocked);
	else if (!has_blocked)
		return;
	else if (score)
		entry--;
	else
		entry = key | pl__forecast_score(0, true);
	store_relaxed(at, entry);
	if (has_blocked && !load_relaxed(&pl__forecast_has_any))
		store_relaxed(&pl__forecast_has_any, true);
}

bool pl__forecast_of(void (*fn)(void *arg))
{
	uint64_t entry = load_relaxed(forecast_of(fn));
	uint8_t score = forecast_score(entry);

	return score >= PL__FORECAST_BLOCKS &&
	       entry - score == forecast_key(fn);
}

void pl__forecast_reset(void)
{
	size_t i;

	for (i = 0; i < PL__FORECAST_ROUTINES; i++)
		store_relaxed(&routines[i], 0);
	store_relaxed(&pl__forecast_has_any, false);
}
