/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * frames: a walk along frame pointers, as profilers make it, passes the library
 *
 * A hook runs below all that the library does between a call that waits and the
 * switch: it walks from there, by the caller, to the task's first function, and
 * there it ends.  scripts/lint/frames.sh sees that all calls have a record.
 */
#include "kselftest_harness.h"

#include "rt.h"

#define NR_MAX		32
/* What the functions below are long, at most. */
#define LENGTH		512

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
# define HAS_FRAMES	1
#else
# define HAS_FRAMES	0
#endif

static void *frames[NR_MAX];
static int nr_frames;
static bool has_ended, is_walking;
static _Atomic bool has_walked;

struct record {
	struct record	*next;
	void		*caller;
};

static void walk(void)
{
	struct record *r = __builtin_frame_address(0);

	nr_frames = 0;
	while (r && nr_frames < NR_MAX) {
		frames[nr_frames++] = r->caller;
		r = r->next;
	}
	has_ended = !r;
	has_walked = true;
}

static void *walking_save(void)
{
	if (is_walking)
		walk();
	is_walking = false;
	return NULL;
}

static void walking_restore(void *state)
{
	(void)state;
}

/* A function that the compiler keeps, with a record. */
#define FRAME()		__asm__ volatile("" :: "r"(__builtin_frame_address(0)))

static bool has_frame_in(const char *from)
{
	int i;

	for (i = 0; i < nr_frames; i++)
		if ((const char *)frames[i] > from &&
		    (const char *)frames[i] < from + LENGTH)
			return true;
	return false;
}

/* ---- what waits ---- */

static __attribute__((noinline)) void call_sleep(void)
{
	FRAME();
	pl_sleep_until(PL_FOREVER);
	FRAME();
}

static __attribute__((noinline)) void first(void *arg)
{
	FRAME();
	is_walking = true;
	call_sleep();
	FRAME();
}

RT_FIXTURE(frames);

TEST_F(frames, walk_below_a_call_that_waits_finds_all_callers)
{
	pl_task_t t;

	if (!HAS_FRAMES)
		SKIP(return, "no frame records in this build");
	ASSERT_EQ(0, pl_hook_add(walking_save, walking_restore, NULL));
	t = spawn(first, NULL);
	EXPECT_TRUE(UNTIL(has_walked));
	EXPECT_EQ(0, pl_interrupt(t));
	join(t);
	EXPECT_TRUE(has_ended);
	EXPECT_TRUE(has_frame_in((const char *)call_sleep));
	EXPECT_TRUE(has_frame_in((const char *)first));
}

TEST_HARNESS_MAIN
