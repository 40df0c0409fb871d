/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A player does what it may at random: a task or a thread of lib_stress and of
 * its trials, in which things go wrong.  The harness and rt.h are included
 * before this.
 */
#ifndef SELFTESTS_STRESS_PLAYER_H
#define SELFTESTS_STRESS_PLAYER_H

#include <sys/socket.h>

/* How long a load lasts; in the simulation it is short, and has many seeds. */
#ifdef PL_SIM
# define LOAD_NS(ns)	((ns) / 200)
#else
# define LOAD_NS(ns)	(ns)
#endif

/* Another one each time, but that of the simulation. */
static inline uint64_t new_seed(void)
{
#ifdef PL_SIM
	return __test_seed + 1;
#else
	return pl_now() / 1000;
#endif
}

#define NR_WORDS	8
#define NR_MUTEXES	4
#define NR_PAIRS	8
#define MAX_ALIVE	2000
#define MAX_ALIVE_SHORT	64

static struct pl_word word[NR_WORDS];
static struct pl_mutex mutex[NR_MUTEXES];
static struct pl_cond cond[NR_MUTEXES];
static long inside[NR_MUTEXES], entered[NR_MUTEXES];	/* under mutex */
static atomic_long nr_entered;
static int pair[NR_PAIRS][2];

static atomic_int is_over, has_io, may_change;
static uint32_t most_workers = 8;
static atomic_long nr_begun, nr_ended, nr_alive, nr_fired, nr_deleted, nr_added;
static atomic_long nr_written, nr_read;
static atomic_long nr_said;	/* spawned with PL_SPAWN_BLOCKING */

/* The latest handles, of which many are stale. */
static _Atomic pl_task_t recent[64];

/*
 * A task that runs on a worker's stack and waits keeps that worker.  If such
 * tasks waited without a deadline for what a ready task has, they could take
 * every worker there can be, and the ready task would never run.
 */
struct player {
	uint64_t	seed;
	bool		has_worker;	/* on its stack: no other runs there */
};

static uint32_t pick(struct player *p, uint32_t nr)
{
	return (uint32_t)(next_random(&p->seed) >> 20) % nr;
}

/* What goes wrong besides, in the trials; set before the first player. */
static struct {
	int	may_say;	/* any call that takes something */
	bool	is_short;	/* all deadlines: 0 to 5 us, tried again */
	bool	is_past;	/* with is_short: all over before they begin */
} trial;

/*
 * Those that try again and again run in turn, and each that holds something
 * waits for its turn: a crowd of them takes the square of its size.
 */
static long most_alive(void)
{
	return trial.is_short ? MAX_ALIVE_SHORT : MAX_ALIVE;
}

static bool is_expected(int ret)
{
	return !ret || ret == -ETIMEDOUT || ret == -EINTR ||
	       ret == -ECANCELED || ret == -EAGAIN || ret == trial.may_say;
}

#define EXPECT_SANE(call) do { \
	int __ret = (int)(call); \
	if (!is_expected(__ret)) \
		EXPECT_EQ(0, __ret); \
} while (0)

/* One of three is shorter than a switch, or over before the wait begins. */
static uint64_t soon(struct player *p)
{
	bool is_long = pick(p, 3) && !trial.is_short;

	if (trial.is_past)
		return pl_now();
	return pl_now() + pick(p, is_long ? 200000 : 5000);
}

/* Whether it may wait without a deadline. */
static bool is_patient_player(struct player *p)
{
	return !p->has_worker && !trial.is_short;
}

/* A lock that was not had in time is what others have to give back. */
static bool tries_again(struct player *p, int ret)
{
	return ret == -ETIMEDOUT && trial.is_short && !p->has_worker;
}

/* As long as that a waiter that others overtook is handed the mutex. */
static void hold_long(struct player *p)
{
	if (!p->has_worker && !pick(p, 100))
		EXPECT_SANE(pl_sleep(1200 * NSEC_PER_USEC));
}

/* ---- what a player may do ---- */

static void do_sleep(struct player *p)
{
	uint64_t deadline = soon(p);
	int ret = pl_sleep_until(deadline);

	EXPECT_SANE(ret);
	if (!ret)
		EXPECT_LE(deadline, pl_now());
}

static void do_word(struct player *p)
{
	struct pl_word *w = &word[pick(p, NR_WORDS)];
	struct pl_word *to = &word[pick(p, NR_WORDS)];

	switch (pick(p, 4)) {
	case 0:
		EXPECT_SANE(pl_word_wait(w, atomic_load(&w->value), soon(p)));
		break;
	case 1:
		EXPECT_LE(0, pl_word_wake(w, pick(p, 4)));
		break;
	case 2:
		atomic_fetch_add(&w->value, 1);
		EXPECT_LE(0, pl_word_wake(w, UINT32_MAX));
		break;
	case 3:
		EXPECT_EQ(w == to, pl_word_requeue(w, to, pick(p, 2),
						   pick(p, 4)) == -EINVAL);
		break;
	}
}

static int lock_mutex(struct player *p, struct pl_mutex *m)
{
	if (!pick(p, 4))
		return pl_mutex_trylock(m);
	if (!pick(p, 2) || !is_patient_player(p))
		return pl_mutex_lock_until(m, soon(p));
	pl_mutex_lock(m);
	return 0;
}

static void do_mutex(struct player *p)
{
	int i = (int)pick(p, NR_MUTEXES), ret;

	do {
		ret = lock_mutex(p, &mutex[i]);
	} while (tries_again(p, ret));
	if (ret == -EBUSY)
		return;
	EXPECT_SANE(ret);
	if (ret)
		return;
	EXPECT_EQ(0, inside[i]++);
	entered[i]++;
	atomic_fetch_add(&nr_entered, 1);
	if (!pick(p, 8))
		pl_yield();
	hold_long(p);
	EXPECT_EQ(1, inside[i]--);
	if (!pick(p, 4) && !p->has_worker)
		EXPECT_SANE(pl_cond_wait_until(&cond[i], &mutex[i], soon(p)));
	pl_mutex_unlock(&mutex[i]);
	if (pick(p, 2))
		pl_cond_signal(&cond[i]);
	else
		pl_cond_broadcast(&cond[i]);
}

static void fire(void *arg)
{
	atomic_fetch_add(&nr_fired, 1);
	pl_word_wake(&word[0], 1);
}

static void do_timer(struct player *p)
{
	pl_timer_t t;
	int ret;

	ret = pl_timer_add(&t, pick(p, 4) ? soon(p) : pl_now() + STUCK_NS * 60,
			   fire, NULL);
	EXPECT_SANE(ret);
	if (ret)
		return;
	atomic_fetch_add(&nr_added, 1);
	if (pick(p, 2))
		pl_yield();
	ret = pl_timer_del(t);
	if (!ret)
		atomic_fetch_add(&nr_deleted, 1);
	else
		EXPECT_TRUE(ret == -EBUSY || ret == -ENOENT);
}

static void do_io(struct player *p)
{
	char buf[64] = { 0 };
	int *fd = pair[pick(p, NR_PAIRS)];
	ssize_t n;

	if (!has_io)
		return;
	if (pick(p, 2)) {
		n = pl_write_until(fd[1], buf, 1 + pick(p, 64), soon(p));
		atomic_fetch_add(&nr_written, n > 0 ? n : 0);
	} else {
		n = pl_read_until(fd[0], buf, 1 + pick(p, 64), soon(p));
		atomic_fetch_add(&nr_read, n > 0 ? n : 0);
	}
	EXPECT_SANE(n > 0 ? 0 : n);
}

static void do_handle(struct player *p)
{
	pl_task_t t = recent[pick(p, ARRAY_SIZE(recent))];
	int ret;

	if (!t)
		return;
	switch (pick(p, 8)) {
	case 0:
		ret = pl_cancel(t);
		EXPECT_TRUE(!ret || ret == -ESRCH);
		break;
	case 1:
	case 2:
		ret = pl_interrupt(t);
		EXPECT_TRUE(!ret || ret == -ESRCH);
		break;
	default:
		ret = pl_join_until(t, soon(p));
		EXPECT_TRUE(is_expected(ret) || ret == -EDEADLK);
		break;
	}
}

static void live(void *arg);

/* In the seed that a task is given. */
#define SEED_OK		1ULL	/* it is not 0 */
#define SEED_WORKER	2ULL	/* on its worker's stack, or may be */

/* Counted in the books: @fn calls end_player() in the end. */
static void spawn_player(struct player *p, void (*fn)(void *arg),
			 struct pl_spawn_opts *opts)
{
	uint64_t seed = next_random(&p->seed) | SEED_OK;
	pl_task_t t;
	int ret;

	if (nr_alive >= most_alive() || is_over)
		return;
	if (opts->stack == PL_STACK_WORKER)
		seed |= SEED_WORKER;
	atomic_fetch_add(&nr_alive, 1);
	atomic_fetch_add(&nr_begun, 1);
	ret = pl_spawn(&t, fn, (void *)(uintptr_t)seed, opts);
	EXPECT_SANE(ret);
	if (ret) {
		atomic_fetch_sub(&nr_alive, 1);
		atomic_fetch_sub(&nr_begun, 1);
		return;
	}
	atomic_fetch_add(&nr_said, !!(opts->flags & PL_SPAWN_BLOCKING));
	recent[pick(p, ARRAY_SIZE(recent))] = t;
	if (pick(p, 2))
		pl_flush();
}

/* Some of them may block, for what is said. */
static void do_spawn(struct player *p)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.stack = pick(p, 16) ? pick(p, 3) : PL_STACK_WORKER;
	opts.flags = pick(p, 4);
	if (!pick(p, 32))
		opts.flags = PL_SPAWN_BLOCKING;
	opts.name = "stress";
	spawn_player(p, live, &opts);
}

/* Scopes nest: a child has players of its own. */
static intptr_t live_in_scope(void *arg)
{
	live(arg);
	return 0;
}

static void do_scope(struct player *p)
{
	struct pl_scope s = PL_SCOPE_INIT;
	uint32_t i, nr = pick(p, 4);
	int ret;

	/* To leave it is to wait for its children. */
	if (p->has_worker || nr_alive >= most_alive() || is_over)
		return;
	ret = pl_scope_enter(&s, pick(p, 2) ? soon(p) : PL_FOREVER,
			     pick(p, 2) * PL_SCOPE_SHIELD);
	EXPECT_SANE(ret);
	if (ret)
		return;
	for (i = 0; i < nr; i++) {
		uint64_t seed = next_random(&p->seed) | SEED_OK;

		atomic_fetch_add(&nr_alive, 1);
		atomic_fetch_add(&nr_begun, 1);
		ret = pl_scope_spawn(&s, NULL, live_in_scope,
				     (void *)(uintptr_t)(seed & ~SEED_WORKER),
				     NULL);
		if (ret) {
			atomic_fetch_sub(&nr_alive, 1);
			atomic_fetch_sub(&nr_begun, 1);
			EXPECT_SANE(ret);
		}
	}
	if (!pick(p, 4))
		EXPECT_EQ(0, pl_scope_cancel(&s, -ECANCELED));
	EXPECT_SANE(pl_scope_leave(&s));
}

#include "stress_sync.h"
#include "stress_block.h"

static void do_workers(struct player *p)
{
	if (may_change && !pick(p, 64))
		EXPECT_SANE(pl_runtime_set_workers(1 + pick(p, most_workers)));
}

static void (*const acts[])(struct player *p) = {
	do_sleep, do_word, do_word, do_mutex, do_mutex, do_timer, do_io,
	do_handle, do_spawn, do_spawn, do_rwlock, do_sem, do_latch, do_once,
	do_chan, do_key, do_queue, do_scope, do_workers, do_block,
};

static void act(struct player *p)
{
	uint32_t i = pick(p, ARRAY_SIZE(acts) + 1);

	if (i == ARRAY_SIZE(acts))
		pl_yield();
	else
		acts[i](p);
}

/* The last that a task does for @p. */
static void end_player(struct player *p)
{
	atomic_fetch_add(&nr_ended, 1);
	atomic_fetch_sub(&nr_alive, 1);
	switch (pick(p, 4)) {
	case 0:
	case 1:
		pl_exit();
		break;
	case 2:
		end_in_call();
		break;
	}
}

static void live(void *arg)
{
	struct player p = { (uintptr_t)arg, (uintptr_t)arg & SEED_WORKER };
	int i, nr = (int)pick(&p, 20);

	for (i = 0; i < nr; i++)
		act(&p);
	end_player(&p);
}

static atomic_int nr_threads_ended;

static void *thread_main(void *arg)
{
	struct player p = { (uintptr_t)arg, false };

	while (!is_over)
		act(&p);
	pl_flush();
	atomic_fetch_add(&nr_threads_ended, 1);
	return NULL;
}

#endif /* SELFTESTS_STRESS_PLAYER_H */
