/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a player of lib_stress does that keeps its worker from other tasks: it
 * blocks in the kernel, said before or not, or computes.  Included by
 * stress_player.h alone.
 *
 * It leaves tasks behind first, and goes on only once all of these have run.
 * So it ends if others run its queue, and never if one task is left there.
 */
#ifndef SELFTESTS_STRESS_BLOCK_H
#define SELFTESTS_STRESS_BLOCK_H

#include "queue/rt.h"

#include <fcntl.h>

#define NR_GATES	16
#define NR_COMPUTE	2	/* players that compute at a time */
#define MAX_BEHIND	8

/* A task that was left behind. */
struct behind {
	struct gate	*gate;
	atomic_int	nr_runs;
};

/* A pipe, of which the last that was left behind writes a byte. */
static struct gate {
	int		fd[2];
	atomic_int	is_taken;
	atomic_int	nr_waited_for;	/* those behind, and the player */
	char		sign, read;
	struct behind	behind[MAX_BEHIND];
} gates[NR_GATES];

/* No more may be taken, or there were no worker for those left behind. */
static uint32_t nr_gates, max_computing;
static atomic_uint nr_computing_now;
static atomic_long nr_left, nr_found, nr_read_gates, nr_computed;
static atomic_long nr_calls, nr_called;
static bool has_spares;

/* ---- gates ---- */

static struct gate *take_gate(struct player *p)
{
	struct gate *g;

	if (!nr_gates || is_over || !pl_self())
		return NULL;
	g = &gates[pick(p, nr_gates)];
	if (atomic_exchange(&g->is_taken, 1))
		return NULL;
	g->sign = (char)('a' + pick(p, 26));
	atomic_store(&g->nr_waited_for, 1);
	return g;
}

static void pass_gate(struct gate *g)
{
	char sign = g->sign;

	if (atomic_fetch_sub(&g->nr_waited_for, 1) == 1)
		EXPECT_EQ(1, write(g->fd[1], &sign, 1));
}

static void read_gate(void *arg)
{
	struct gate *g = arg;

	EXPECT_EQ(1, read(g->fd[0], &g->read, 1));
	atomic_fetch_add(&nr_read_gates, 1);
}

static void give_gate(struct gate *g, uint32_t nr)
{
	uint32_t i;

	EXPECT_EQ(g->sign, g->read);
	EXPECT_EQ(0, g->nr_waited_for);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(1, g->behind[i].nr_runs);
	g->read = 0;
	atomic_store(&g->is_taken, 0);
}

/* ---- those that are left behind ---- */

static void run_behind(void *arg)
{
	struct behind *b = arg;
	struct gate *g = b->gate;

	switch ((b - g->behind) % 4) {
	case 1:
		pl_yield();
		break;
	case 2:
		EXPECT_SANE(pl_sleep(20 * NSEC_PER_USEC));
		break;
	}
	EXPECT_EQ(0, atomic_fetch_add(&b->nr_runs, 1));
	atomic_fetch_add(&nr_found, 1);
	pass_gate(g);
}

static bool leave_one(struct gate *g, uint32_t nr, uint32_t flags)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	struct behind *b = &g->behind[nr];
	int ret;

	opts.flags = flags;
	opts.name = "behind";
	b->gate = g;
	atomic_store(&b->nr_runs, 0);
	atomic_fetch_add(&g->nr_waited_for, 1);
	ret = pl_spawn(NULL, run_behind, b, &opts);
	if (!ret) {
		atomic_fetch_add(&nr_left, 1);
		atomic_fetch_add(&nr_said, !!(flags & PL_SPAWN_BLOCKING));
		return true;
	}
	atomic_fetch_sub(&g->nr_waited_for, 1);
	EXPECT_SANE(ret);
	return false;
}

/* Returns how many; @flags: PL_SPAWN_NOSIGNAL or 0. */
static uint32_t leave_behind(struct player *p, struct gate *g, uint32_t flags)
{
	uint32_t i, nr = 0, most = pick(p, MAX_BEHIND + 1);

	for (i = 0; i < most; i++)
		nr += leave_one(g, nr, pick(p, 16) ? flags :
						     PL_SPAWN_BLOCKING);
	pass_gate(g);
	return nr;
}

/* ---- blocking and computing ---- */

static void do_read_gate(struct player *p)
{
	struct gate *g = take_gate(p);
	uint32_t nr;

	if (!g)
		return;
	nr = leave_behind(p, g, 0);
	read_gate(g);
	give_gate(g, nr);
}

/* Nothing is signalled but by the call. */
static void do_call_read_gate(struct player *p)
{
	struct gate *g = take_gate(p);
	uint32_t nr;

	if (!g)
		return;
	nr = leave_behind(p, g, pick(p, 2) * PL_SPAWN_NOSIGNAL);
	EXPECT_EQ(0, pl_blocking(read_gate, g));
	give_gate(g, nr);
}

static bool may_compute(void)
{
	if (atomic_fetch_add(&nr_computing_now, 1) < max_computing)
		return true;
	atomic_fetch_sub(&nr_computing_now, 1);
	return false;
}

/* As long as the others get on: it keeps its worker to itself. */
static void spin_until_passed(struct gate *g)
{
	struct patience patience = { 0, 0 };
	long before = nr_found + nr_ended, now;

	while (g->nr_waited_for && is_patient(&patience)) {
		sched_yield();
		now = nr_found + nr_ended;
		if (now != before)
			patience.spent_ns = 0;
		before = now;
	}
	EXPECT_EQ(0, g->nr_waited_for);
}

/* Up to twice as long as it takes to be stalled, or as those behind take. */
static void do_compute(struct player *p)
{
	struct gate *g;
	uint32_t nr;

	if (pick(p, 4) || !may_compute())
		return;
	g = take_gate(p);
	if (g) {
		nr = leave_behind(p, g, 0);
		spin_ns(pick(p, (uint32_t)pl__rt.stall_ns * 2));
		spin_until_passed(g);
		read_gate(g);
		give_gate(g, nr);
		atomic_fetch_add(&nr_computed, 1);
	}
	atomic_fetch_sub(&nr_computing_now, 1);
}

/* Its worker is stalled when it blocks. */
static void do_compute_and_read(struct player *p)
{
	struct gate *g;
	uint32_t nr;

	if (pick(p, 4) || !may_compute())
		return;
	g = take_gate(p);
	if (g) {
		spin_ns(pick(p, (uint32_t)pl__rt.stall_ns * 2));
		nr = leave_behind(p, g, 0);
		read_gate(g);
		give_gate(g, nr);
		atomic_fetch_add(&nr_computed, 1);
	}
	atomic_fetch_sub(&nr_computing_now, 1);
}

/* ---- functions that may block ---- */

struct call {
	struct player	*p;
	pl_task_t	self;
	uint64_t	asked, answer;
	bool		is_inner;
};

static void do_call_with(struct player *p, bool is_inner);

static void called(void *arg)
{
	struct call *c = arg;

	atomic_fetch_add(&nr_called, 1);
	EXPECT_EQ(c->self, pl_self());
	switch (pick(c->p, 6)) {
	case 0:
		usleep(pick(c->p, 100));
		break;
	case 1:
		do_sleep(c->p);
		break;
	case 2:
		do_mutex(c->p);
		break;
	case 3:
		pl_yield();
		break;
	case 4:
		if (!c->is_inner)
			do_call_with(c->p, true);
		break;
	}
	EXPECT_EQ(c->self, pl_self());
	c->answer = ~c->asked;
}

static void do_call_with(struct player *p, bool is_inner)
{
	struct call c = { p, pl_self(), next_random(&p->seed), 0, is_inner };

	atomic_fetch_add(&nr_calls, 1);
	EXPECT_EQ(0, pl_blocking(called, &c));
	EXPECT_EQ(~c.asked, c.answer);
	EXPECT_EQ(c.self, pl_self());
}

static void do_call(struct player *p)
{
	do_call_with(p, false);
}

static void exit_in_call(void *arg)
{
	atomic_fetch_add(&nr_called, 1);
	pl_exit();
}

/* In a task it does not return. */
static void end_in_call(void)
{
	atomic_fetch_add(&nr_calls, 1);
	pl_blocking(exit_in_call, NULL);
}

/* ---- tasks of routines that are learned ---- */

static void end_player(struct player *p);

static void block_always(void *arg)
{
	struct player p = { (uintptr_t)arg, true };

	do_read_gate(&p);
	if (pick(&p, 2))
		pl_yield();
	do_read_gate(&p);
	end_player(&p);
}

/* What is expected of the next one is wrong half of the time. */
static void block_at_times(void *arg)
{
	struct player p = { (uintptr_t)arg, true };

	if (pick(&p, 2))
		do_read_gate(&p);
	else
		do_sleep(&p);
	end_player(&p);
}

static void do_spawn_blocking(struct player *p)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.stack = pick(p, 16) ? pick(p, 3) : PL_STACK_WORKER;
	opts.flags = pick(p, 2) * PL_SPAWN_BLOCKING |
		     pick(p, 2) * PL_SPAWN_NOSIGNAL;
	opts.name = "block";
	spawn_player(p, pick(p, 2) ? block_always : block_at_times, &opts);
}

/* ---- all of it ---- */

static void do_block(struct player *p)
{
	static void (*const ways[])(struct player *p) = {
		do_read_gate, do_call_read_gate, do_compute,
		do_compute_and_read, do_call, do_call, do_spawn_blocking,
		do_spawn_blocking,
	};

	ways[pick(p, ARRAY_SIZE(ways))](p);
}

/*
 * Once the runtime has started: half of the workers beyond the target may be
 * blocked, so that others run what those left behind.  Where few run, which
 * visit the queues of others in turn, only a few are blocked; beside one, which
 * tasks that yield may keep busy, none.
 */
static void open_block(void)
{
	uint32_t target = pl__rt.main.target, room, i;

	if (target < most_workers)
		target = most_workers;
	has_spares = pl__rt.main.max_workers > target;
	room = has_spares ? pl__rt.main.max_workers - target : 0;
	if (pl__rt.main.target < 2 || !rt_has_sysmon())
		room = 0;
	nr_gates = 3 + target < NR_GATES ? 3 + target : NR_GATES;
	if (nr_gates > room / 2)
		nr_gates = room / 2;
	max_computing = room / 4 < NR_COMPUTE ? room / 4 : NR_COMPUTE;
	for (i = 0; i < nr_gates; i++)
		ASSERT_EQ(0, pipe2(gates[i].fd, O_CLOEXEC));
}

static uint64_t nr_ended_by_workers(void)
{
	struct pl_stat_worker st = PL_STAT_WORKER_INIT;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; !pl_stat_worker(i, &st); i++)
		sum += st.tasks_ended;
	return sum;
}

/* Once all players but the caller have ended. */
static void check_block(void)
{
	struct pl_stat st;
	uint32_t i;

	for (i = 0; i < nr_gates; i++) {
		EXPECT_EQ(0, gates[i].is_taken);
		EXPECT_EQ(0, close(gates[i].fd[0]));
		EXPECT_EQ(0, close(gates[i].fd[1]));
	}
	EXPECT_EQ(nr_left, nr_found);
	EXPECT_EQ(nr_calls, nr_called);
	EXPECT_TRUE(UNTIL(is_all_parked()));
	EXPECT_TRUE(UNTIL(!rt_stat().workers_blocked));
	EXPECT_TRUE(UNTIL(!rt_stat().workers_stalled));
	st = rt_stat();
	EXPECT_EQ(st.tasks_ended, nr_ended_by_workers());
	if (has_spares)
		EXPECT_LE((uint64_t)nr_said, st.set_aside);
	TH_LOG("%ld in the kernel, %ld computed, %ld behind, %ld calls; %llu found blocked, %llu stalled, %llu set aside, %llu spares",
	       (long)nr_read_gates, (long)nr_computed, (long)nr_found,
	       (long)nr_called, (unsigned long long)st.blocks,
	       (unsigned long long)st.stalls,
	       (unsigned long long)st.set_aside,
	       (unsigned long long)st.spares);
}

#endif /* SELFTESTS_STRESS_BLOCK_H */
