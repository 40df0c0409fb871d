/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Near workers are stolen from first, in any order within a level, and none is
 * left out; the machine's topology is followed.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "queue/place.h"

#include <sys/syscall.h>

#define NR	16

/* ---- the order, without a runtime ---- */

static _Atomic uint64_t locations[NR];

/* Worker i on CPU i: 2 nodes of 2 clusters of 2 cores of 2 CPUs. */
static void place_workers(void)
{
	uint32_t i;

	for (i = 0; i < NR; i++)
		locations[i] = pl__location(i / 8 * 8, i / 4 * 4, i / 2 * 2);
	pl__rt.main.locations = locations;
	store_relaxed(&pl__rt.levels, 0xf);
}

FIXTURE(victims) { char unused; };
FIXTURE_SETUP(victims)
{
	rt_begin(_metadata);
	place_workers();
}

FIXTURE_TEARDOWN(victims)
{
	pl__rt.main.locations = NULL;
	store_relaxed(&pl__rt.levels, 0);
}

static int visit(uint32_t thief, uint32_t first, uint32_t *visited)
{
	struct pl__worker w = { .group = &pl__rt.main, .index = thief };
	struct pl__victims v;
	uint32_t i;
	int nr = 0;

	pl__victims_begin(&v, &w, locations[thief], NR, first);
	while (nr < NR + 1 && (i = pl__victims_next(&v)) != PL__NO_VICTIM)
		visited[nr++] = i;
	return nr;
}

/* By the numbers of the CPUs: 0, the same core; 3, another node. */
static int level_of(uint32_t a, uint32_t b)
{
	return (a / 2 != b / 2) + (a / 4 != b / 4) + (a / 8 != b / 8);
}

TEST_F(victims, near_ones_come_first_and_each_once)
{
	uint32_t visited[NR + 1], thief, first, seen;
	int i, nr, level, last;

	for (thief = 0; thief < NR; thief++) {
		for (first = 0; first < NR; first++) {
			nr = visit(thief, first + 1000 * NR, visited);
			ASSERT_EQ(NR - 1, nr);
			seen = 1U << thief;
			last = 0;
			for (i = 0; i < nr; i++) {
				EXPECT_FALSE(seen >> visited[i] & 1);
				seen |= 1U << visited[i];
				level = level_of(thief, visited[i]);
				EXPECT_LE(last, level);
				last = level;
			}
		}
	}
}

TEST_F(victims, first_one_of_a_level_is_any)
{
	uint32_t visited[NR + 1], first, firsts = 0;

	for (first = 0; first < NR; first++) {
		visit(0, first, visited);
		firsts |= 1U << visited[7];
	}
	/* All of the other node. */
	EXPECT_EQ(0xff00, firsts);
}

TEST_F(victims, level_that_lacks_is_passed_with_the_next)
{
	uint32_t visited[NR + 1], first;
	int i;

	store_relaxed(&pl__rt.levels,
		      1U << PL__SAME_NODE | 1U << PL__OTHER_NODE);
	for (first = 0; first < NR; first++) {
		ASSERT_EQ(NR - 1, visit(9, first, visited));
		for (i = 0; i < 7; i++)
			EXPECT_LE(8, visited[i]);
		for (; i < NR - 1; i++)
			EXPECT_GT(8, visited[i]);
	}
}

TEST_F(victims, unknown_location_is_far)
{
	uint32_t visited[NR + 1], first;

	locations[1] = PL__LOCATION_UNKNOWN;
	for (first = 0; first < NR; first++) {
		ASSERT_EQ(NR - 1, visit(0, first, visited));
		EXPECT_LT(1, visited[0]);
		/* A thief with none has all at one level. */
		ASSERT_EQ(NR - 1, visit(1, first, visited));
		EXPECT_EQ(first == 1 ? 2 : first, visited[0]);
	}
}

TEST_F(victims, workers_on_one_cpu_are_found_without_cores_of_two)
{
	uint32_t visited[NR + 1];

	locations[15] = locations[2];
	store_relaxed(&pl__rt.levels,
		      1U << PL__SAME_CLUSTER | 1U << PL__OTHER_NODE);
	ASSERT_EQ(NR - 1, visit(2, 8, visited));
	EXPECT_EQ(15, visited[0]);
}

/* ---- a runtime ---- */

RT_FIXTURE(steal)

static atomic_int nr_nodes;

static void tree(void *arg)
{
	intptr_t depth = (intptr_t)arg;
	pl_task_t child[2];
	int i;

	atomic_fetch_add(&nr_nodes, 1);
	if (!depth)
		return;
	for (i = 0; i < 2; i++)
		child[i] = spawn(tree, (void *)(depth - 1));
	for (i = 0; i < 2; i++)
		join(child[i]);
}

static atomic_int nr_stolen;

static void note_stolen(void *arg)
{
	atomic_fetch_add(&nr_stolen, 1);
}

/* Keeps its worker until a thief has run its child. */
static void hold_until_stolen(void *arg)
{
	int before = atomic_load(&nr_stolen);

	spawn(note_stolen, NULL);
	EXPECT_TRUE(UNTIL_BUSY(atomic_load(&nr_stolen) > before));
}

static bool is_any_located(void)
{
	uint32_t i;

	for (i = 0; i < load_acquire(&pl__rt.main.nr_started); i++)
		if (load_relaxed(&pl__rt.main.locations[i]) !=
		    PL__LOCATION_UNKNOWN)
			return true;
	return false;
}

/* A thief may have begun to look before there were levels. */
static bool has_thief_noted_location(void)
{
	run_in_task(hold_until_stolen, NULL);
	return is_any_located();
}

/* As on a machine with all levels, though this one may be flat. */
TEST_TIMED(tree_is_run_by_thieves_that_look_near_first,
	   "both ends of a race must be seen")
TEST_F(steal, tree_is_run_by_thieves_that_look_near_first)
{
	int round;

	start_with(4, 0);
	store_relaxed(&pl__rt.levels, 0xf);
	for (round = 1; round <= 20; round++) {
		run_in_task(tree, (void *)10);
		EXPECT_EQ(round * 2047, atomic_load(&nr_nodes));
	}
	EXPECT_TRUE(UNTIL(has_thief_noted_location()));
	EXPECT_LT(0, rt_stat().steals);
}

static void clear_locations(void)
{
	uint32_t i;

	for (i = 0; i < load_acquire(&pl__rt.main.nr_started); i++)
		store_relaxed(&pl__rt.main.locations[i], PL__LOCATION_UNKNOWN);
}

TEST_TIMED(flat_machine_notes_no_location, "both ends of a race must be seen")
TEST_F(steal, flat_machine_notes_no_location)
{
	start_with(4, 0);
	store_relaxed(&pl__rt.levels, 0);
	/* This machine may have levels, and some worker looked by them. */
	ASSERT_TRUE(UNTIL(is_all_parked()));
	clear_locations();
	run_in_task(tree, (void *)10);
	run_in_task(hold_until_stolen, NULL);
	EXPECT_LT(0, rt_stat().steals);
	EXPECT_FALSE(is_any_located());
}

TEST_HARNESS_MAIN
