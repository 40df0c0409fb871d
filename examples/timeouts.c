// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Timeouts of very many sessions, each put off with every sign of life
 *
 * A timer wheel: a session is in the list of the tick at which it is to be
 * looked at.  A sign of life writes a number and moves nothing; when its tick
 * comes, a session that showed one meanwhile goes to a later list, and one that
 * did not has timed out.  One task turns the wheel.  That is for timeouts that
 * nearly never come, and may come a tick late; else take pl_timer_add(), or the
 * _until() form of the call that waits.
 *
 *	$ timeouts
 *	5000 of 10000 sessions were silent
 *	10000 of 10000 sessions timed out
 */
#include "usage.h"

#include <parklot.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_NS		(5 * 1000 * 1000ULL)
#define TIMEOUT		20		/* ticks */
#define NR_TICKS	32		/* of the wheel; more than TIMEOUT */
#define NR_SESSIONS	10000

struct session {
	struct session	*next;
	_Atomic uint64_t seen;		/* the tick of its last sign of life */
};

static struct {
	uint64_t	start_ns;
	struct session	*due[NR_TICKS];	/* by tick; the task's that turns it */
	struct pl_latch	alive;
	_Atomic uint32_t nr_timed_out;
} wheel;

static uint64_t now(void)
{
	return (pl_now() - wheel.start_ns) / TICK_NS;
}

/* Anybody, at any time: this is what is cheap. */
static void show_life(struct session *s)
{
	atomic_store_explicit(&s->seen, now(), memory_order_relaxed);
}

static void put(struct session *s, uint64_t tick)
{
	struct session **list = &wheel.due[tick % NR_TICKS];

	s->next = *list;
	*list = s;
}

static void look_at(struct session *s, uint64_t tick)
{
	const uint64_t due = TIMEOUT +
		atomic_load_explicit(&s->seen, memory_order_relaxed);

	if (due > tick) {
		put(s, due);
		return;
	}
	atomic_fetch_add(&wheel.nr_timed_out, 1);
	pl_latch_done(&wheel.alive);
}

/* One tick after the other, also those that it comes late to. */
static void turn(void *arg)
{
	struct session *s, *next;
	uint64_t tick = 0;

	(void)arg;
	while (!pl_sleep_until(wheel.start_ns + ++tick * TICK_NS)) {
		s = wheel.due[tick % NR_TICKS];
		wheel.due[tick % NR_TICKS] = NULL;
		for (; s; s = next) {
			next = s->next;
			look_at(s, tick);
		}
	}
}

/* The odd ones go on until the even ones have timed out. */
static void keep_alive(struct session *sessions)
{
	int i;

	while (atomic_load(&wheel.nr_timed_out) < NR_SESSIONS / 2) {
		for (i = 1; i < NR_SESSIONS; i += 2)
			show_life(&sessions[i]);
		pl_sleep(TICK_NS);
	}
}

int main(int argc, char **argv)
{
	struct session *sessions = calloc(NR_SESSIONS, sizeof(*sessions));
	pl_task_t task;
	int i;

	usage_arguments(argc, argv, 0, "timeouts");
	if (!sessions || pl_latch_init(&wheel.alive, NR_SESSIONS))
		return 1;
	wheel.start_ns = pl_now();
	for (i = 0; i < NR_SESSIONS; i++)
		put(&sessions[i], TIMEOUT);
	if (pl_spawn(&task, turn, NULL, NULL))
		return 1;

	keep_alive(sessions);
	printf("%u of %d sessions were silent\n",
	       atomic_load(&wheel.nr_timed_out), NR_SESSIONS);
	if (pl_latch_wait(&wheel.alive))
		return 1;
	printf("%u of %d sessions timed out\n",
	       atomic_load(&wheel.nr_timed_out), NR_SESSIONS);
	pl_cancel(task);
	pl_join(task);
	free(sessions);
	return pl_runtime_stop() ? 1 : 0;
}
