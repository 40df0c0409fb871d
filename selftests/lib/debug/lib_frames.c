/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * frames: a walk along frame pointers, as profilers make it, passes the library
 *
 * A hook runs below all that the library does between a call that waits and the
 * switch: it walks from there, by the caller, to the task's first function.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include <sys/socket.h>

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

static bool has_frame_in(void (*fn)(void *arg))
{
	const char *from = (const char *)fn;
	int i;

	for (i = 0; i < nr_frames; i++)
		if ((const char *)frames[i] > from &&
		    (const char *)frames[i] < from + LENGTH)
			return true;
	return false;
}

/* ---- what waits ---- */

static struct pl_mutex mutex;
static struct pl_cond cond;
static struct pl_sem sem;
static struct pl_chan *chan;
static struct pl_latch over;
static pl_task_t other;
static int fds[2];

static void end(void *arg)
{
	(void)arg;
}

static __attribute__((noinline)) void call_yield(void *arg)
{
	(void)arg;
	FRAME();
	/* So that there is a task to yield to. */
	pl_spawn(NULL, end, NULL, NULL);
	pl_yield();
	FRAME();
}

static __attribute__((noinline)) void call_sleep(void *arg)
{
	(void)arg;
	FRAME();
	pl_sleep_until(PL_FOREVER);
	FRAME();
}

static __attribute__((noinline)) void call_lock(void *arg)
{
	(void)arg;
	FRAME();
	pl_mutex_lock(&mutex);
	FRAME();
	pl_mutex_unlock(&mutex);
}

static __attribute__((noinline)) void call_cond(void *arg)
{
	(void)arg;
	FRAME();
	pl_mutex_lock(&mutex);
	pl_cond_wait_until(&cond, &mutex, PL_FOREVER);
	FRAME();
	pl_mutex_unlock(&mutex);
}

static __attribute__((noinline)) void call_sem(void *arg)
{
	(void)arg;
	FRAME();
	pl_sem_wait_until(&sem, PL_FOREVER);
	FRAME();
}

static __attribute__((noinline)) void call_chan(void *arg)
{
	void *item;

	(void)arg;
	FRAME();
	pl_chan_recv_until(chan, &item, PL_FOREVER);
	FRAME();
}

static __attribute__((noinline)) void call_recv(void *arg)
{
	char c;

	(void)arg;
	FRAME();
	pl_recv_until(fds[0], &c, 1, 0, PL_FOREVER);
	FRAME();
}

static __attribute__((noinline)) void call_join(void *arg)
{
	(void)arg;
	FRAME();
	pl_join_until(other, PL_FOREVER);
	FRAME();
}

static void (*const calls[])(void *arg) = {
	call_yield, call_sleep, call_lock, call_cond, call_sem, call_chan,
	call_recv, call_join,
};

static __attribute__((noinline)) void first(void *arg)
{
	void (*const *call)(void *arg) = arg;

	FRAME();
	is_walking = true;
	(*call)(NULL);
	FRAME();
}

static void wait_until_over(void *arg)
{
	(void)arg;
	pl_latch_wait(&over);
}

RT_FIXTURE(frames);

static void set_up(void)
{
	/* No other worker runs the task that pl_yield() is to yield to. */
	start_with(1, 1);
	ASSERT_EQ(0, pl_hook_add(walking_save, walking_restore, NULL));
	ASSERT_EQ(0, pl_sem_init(&sem, 0));
	ASSERT_EQ(0, pl_chan_create(&chan, 0));
	ASSERT_EQ(0, pl_latch_init(&over, 1));
	ASSERT_EQ(0, pl_spawn(&other, wait_until_over, NULL, NULL));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}

TEST_F(frames, walk_below_a_call_that_waits_finds_all_callers)
{
	pl_task_t t;
	size_t i;

	if (!HAS_FRAMES)
		SKIP(return, "no frame records in this build");
	set_up();
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		has_ended = false;
		has_walked = false;
		if (calls[i] == call_lock)
			pl_mutex_lock(&mutex);
		ASSERT_EQ(0, pl_spawn(&t, first, (void *)&calls[i], NULL));
		EXPECT_TRUE(UNTIL(has_walked));
		if (calls[i] == call_lock)
			pl_mutex_unlock(&mutex);
		/* That of pl_yield() may have ended. */
		pl_interrupt(t);
		EXPECT_EQ(0, pl_join(t));
		EXPECT_TRUE(has_ended);
		EXPECT_TRUE(has_frame_in(calls[i]))
			TH_LOG("call %zu", i);
		EXPECT_TRUE(has_frame_in(first))
			TH_LOG("call %zu", i);
	}
	pl_latch_done(&over);
	EXPECT_EQ(0, pl_join(other));
}

TEST_HARNESS_MAIN
