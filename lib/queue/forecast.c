/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "queue/forecast.h"

/*
 * A score has what it is of above its number.  Each entry of the table is a
 * routine's address, shifted, and its score.
 */
#define NUMBER_BITS	2
#define NUMBER		((1U << NUMBER_BITS) - 1)
#define SCORE_BITS	4
#define SCORE		((1U << SCORE_BITS) - 1)

_Atomic bool pl__forecast_has_any;

static _Atomic uint64_t routines[PL__FORECAST_ROUTINES];

/* ---- scores ---- */

static uint8_t score_of(enum pl__run run, unsigned int number)
{
	return (uint8_t)((unsigned int)run << NUMBER_BITS | number);
}

static unsigned int number_of(uint8_t score)
{
	return score & NUMBER;
}

uint8_t pl__forecast_score(uint8_t score, enum pl__run run)
{
	unsigned int number = number_of(score);

	if (run == PL__RUN_SHORT)
		return number ? score - 1 : 0;
	if (score >> NUMBER_BITS != run)
		number = 0;
	return score_of(run, number + 2 < PL__FORECAST_MOST ?
			     number + 2 : PL__FORECAST_MOST);
}

uint8_t pl__forecast_blocks(void)
{
	return score_of(PL__RUN_BLOCKS, PL__FORECAST_MOST);
}

enum pl__run pl__forecast_by(uint8_t score)
{
	return number_of(score) < PL__FORECAST_SURE ?
	       PL__RUN_SHORT : (enum pl__run)(score >> NUMBER_BITS);
}

/* ---- routines ---- */

static _Atomic uint64_t *routine_entry(void (*fn)(void *arg))
{
	uint64_t hash = PL_NUMBER_OF(fn) * 0x9e3779b97f4a7c15ULL;

	return &routines[(hash >> 32) % PL__FORECAST_ROUTINES];
}

static uint64_t key_of(void (*fn)(void *arg))
{
	return (uint64_t)(uintptr_t)fn << SCORE_BITS;
}

/* A routine that has a score keeps its place, with less of it. */
void pl__forecast_add(void (*fn)(void *arg), enum pl__run run)
{
	_Atomic uint64_t *at = routine_entry(fn);
	uint64_t entry = load_relaxed(at), key = key_of(fn);
	uint8_t score = entry & SCORE;

	if (entry - score == key)
		entry = key | pl__forecast_score(score, run);
	else if (run == PL__RUN_SHORT)
		return;
	else if (number_of(score))
		entry--;
	else
		entry = key | pl__forecast_score(0, run);
	store_relaxed(at, entry);
	if (run != PL__RUN_SHORT && !load_relaxed(&pl__forecast_has_any))
		store_relaxed(&pl__forecast_has_any, true);
}

enum pl__run pl__forecast_of(void (*fn)(void *arg))
{
	uint64_t entry = load_relaxed(routine_entry(fn));
	uint8_t score = entry & SCORE;

	return entry - score == key_of(fn) ? pl__forecast_by(score) :
					     PL__RUN_SHORT;
}

void pl__forecast_reset(void)
{
	size_t i;

	for (i = 0; i < PL__FORECAST_ROUTINES; i++)
		store_relaxed(&routines[i], 0);
	store_relaxed(&pl__forecast_has_any, false);
}
