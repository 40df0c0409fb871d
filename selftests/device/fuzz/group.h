/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: a team, from its home to its books.
 *
 * A tame team plays to the end: its first thread wakes or interrupts threads
 * that park for ever, until all players have done their operations. Then no
 * thread may be parked or counted any more, and the wakers must have counted as
 * many wakeups as the sleepers saw. A wild team begins in the same way, and
 * ends at any moment in any way.
 */
#ifndef SELFTESTS_FUZZ_GROUP_H
#define SELFTESTS_FUZZ_GROUP_H

#include "clone.h"
#include "fds.h"
#include "fail.h"
#include "procs.h"

#include <sys/eventfd.h>
#include <sys/prctl.h>

#define NR_OPS		240		/* of a player in a round */
#define NUDGE_NS	500000
#define NR_WILD		8		/* teams in a round */
#define WILD_NS		(200 * NSEC_PER_MSEC)

static const struct {
	const char	*name;
	uint32_t	weight;
	void		(*fn)(struct player *p, struct dice *d);
} ops[] = {
	{ "park", 24, do_park },
	{ "wake", 24, do_wake },
	{ "wake_park", 16, do_wake_park },
	{ "scribble", 12, do_scribble },
	{ "crew", 8, do_crew },
	{ "join", 8, do_join },
	{ "leave", 6, do_leave },
	{ "block", 6, do_block },
	{ "map", 6, do_map },
	{ "open", 5, do_open },
	{ "bell", 5, do_ring_bell },
	{ "signal", 5, do_signal },
	{ "query", 4, do_query },
	{ "setup", 4, do_setup },
	{ "unknown", 4, do_unknown },
	{ "look", 4, do_look },
	{ "dup", 4, do_dup },
	{ "close", 3, do_close },
	{ "dup_and_close", 3, do_dup_and_close },
	{ "pass", 3, do_pass },
	{ "file", 3, do_file },
	{ "remap", 3, do_remap },
	{ "advise", 2, do_advise },
	{ "poke", 2, do_poke },
	{ "fdinfo", 2, do_fdinfo },
	{ "fork", 1, do_fork },
	{ "clone", 2, do_clone },
	{ "unshare", 1, do_unshare },
	{ "features", 1, do_features },
	{ "unload", 1, do_unload },
};

static inline size_t pick_op(struct dice *d)
{
	uint32_t sum = 0, at;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		sum += ops[i].weight;
	at = pick(d, sum);
	for (i = 0; at >= ops[i].weight; i++)
		at -= ops[i].weight;
	return i;
}

static inline void play_one(struct player *p)
{
	struct dice d = dice_of(p->seed, p->nr_op);
	struct dice fail = dice_of(d.state, 0);
	size_t i = pick_op(&d);

	p->op = ops[i].name;
	fail_begin(p, &fail);
	ops[i].fn(p, &d);
	fail_end(p);
	if (p->team->is_wild)
		atomic_fetch_add(&world->nr_wild_ops, 1);
	/* The number of throws must not depend on any result. */
	if (!p->team->is_wild)
		atomic_fetch_xor(&world->digest, mix(d.state ^ i));
}

/* Wakes all sleepers of the spaces on the fdnos of this thread. */
static inline void wake_fds(struct team *team)
{
	uint32_t fdno, lot;
	int woken;

	for (fdno = 0; fdno < NR_FDS; fdno++)
		for (lot = 0; lot < PARKLOT_MAX_LOTS; lot++) {
			woken = dev_wake(fdno_fd(fdno), lot, ~0U);
			if (woken < 0)
				break;
			atomic_fetch_add(&team->said, woken);
		}
}

/* Stays until all players are done, so that no WAKE comes after it has left. */
static inline void player_end(struct player *p)
{
	struct team *team = p->team;

	p->op = "end";
	atomic_store(&p->is_done, 1);
	atomic_fetch_add(&team->nr_done, 1);
	while (!atomic_load(&team->is_over)) {
		wake_fds(team);
		sleep_ns(NUDGE_NS);
	}
}

static inline void *player_main(void *arg)
{
	struct player *p = arg;

	fail_open(p);
	pthread_barrier_wait(&p->team->start);
	for (p->nr_op = 0; p->nr_op < NR_OPS; p->nr_op++)
		play_one(p);
	player_end(p);
	return NULL;
}

/* Another team may mask features, or offer them again, at any time. */
static inline int home_open(struct space *home, uint32_t nr_lots)
{
	int err = space_open_crew(home, nr_lots, NR_WORKERS);

	if (err != -EOPNOTSUPP)
		return err;
	close(home->fd);
	return space_open(home, nr_lots);
}

/* With the home on its fdno, and mapped. */
static inline void team_open(struct team *team, struct dice *d)
{
	struct space *home = &team->home;

	team->closes = mmap(NULL, sizeof(*team->closes), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, team->closes);
	ASSERT_EQ(0, home_open(home, 1 + pick(d, 8)));
	ASSERT_EQ(fdno_fd(0), dup3(home->fd, fdno_fd(0), 0));
	close(home->fd);
	home->fd = fdno_fd(0);
	team->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	pthread_mutex_init(&team->maps, NULL);
	pthread_barrier_init(&team->start, NULL, NR_PLAYERS + 1);
}

static inline void team_start(struct team *team, uint64_t seed)
{
	uint32_t i;

	take_signals();
	team->player = calloc(NR_PLAYERS, sizeof(*team->player));
	for (i = 0; i < NR_PLAYERS; i++) {
		player_init(&team->player[i], team, i, seed);
		ASSERT_EQ(0, pthread_create(&team->player[i].thread, NULL,
					    player_main, &team->player[i]));
	}
	pthread_barrier_wait(&team->start);
}

/* Wakes or interrupts, once, threads that would stay parked for ever. */
static inline void nudge(struct team *team, struct dice *d)
{
	struct player *p = &team->player[pick(d, NR_PLAYERS)];
	uint32_t lot = pick(d, team->home.setup.nr_lots), nr = pick(d, 3);
	uint32_t how = pick(d, 8);
	int woken;

	if (how == 0) {
		wake_fds(team);
	} else if (how < 4) {
		if (!atomic_load(&p->is_done))
			pthread_kill(p->thread, SIGUSR2);
	} else {
		woken = dev_wake(fdno_fd(0), lot, nr);
		EXPECT_LE(0, woken)
			note_fault();
		atomic_fetch_add(&team->said, woken);
	}
}

/* No sleeper, no counted thread and no unseen wake is left. */
static inline void check_books(struct team *team)
{
	long said = atomic_load(&team->said), seen = atomic_load(&team->seen);
	uint32_t lot;

	for (lot = 0; lot < team->home.setup.nr_lots; lot++)
		wait_parked(&team->home, lot, 0);
	/* A killed thread that had joined may not be gone yet. */
	UNTIL(!nr_running(&team->home) && !nr_blocked(&team->home));
	EXPECT_EQ(0, nr_idle_workers(&team->home))
		note_fault();
	EXPECT_EQ(said, seen)
		note_fault();
	EXPECT_EQ(0, fdinfo(getpid(), fdno_fd(0), "parked"))
		note_fault();
}

static inline void tame_main(int post, uint64_t seed)
{
	static struct team team;
	struct dice d = dice_of(seed, 0);
	uint32_t i;

	team.post = post;
	atomic_store(&world->team_pid, getpid());
	team_open(&team, &d);
	team_start(&team, d.state);
	while (atomic_load(&team.nr_done) < NR_PLAYERS) {
		sleep_ns(NUDGE_NS);
		nudge(&team, &d);
	}
	atomic_store(&team.is_over, 1);
	for (i = 0; i < NR_PLAYERS; i++)
		pthread_join(team.player[i].thread, NULL);
	check_books(&team);
	_exit(0);
}

/* ---- wild ones ---- */

static inline void wild_main(int post, uint64_t seed)
{
	static struct team team;	/* the first thread may exit */
	struct dice d = dice_of(seed, 0);
	uint32_t how = pick(&d, 8), ns = pick(&d, 20000000);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	team.is_failing = once_in(&d, 3) && world->is_ours;
	prctl(PR_SET_DUMPABLE, team.is_failing);
	team.is_wild = true;
	team.post = post;
	team_open(&team, &d);
	team_start(&team, d.state);
	if (how == 0)
		pthread_exit(NULL);
	sleep_ns(ns);
	if (how == 1)
		_exit(0);
	if (how == 2)
		exec_self();
	if (how == 3)
		abort();
	for (;;)
		pause();
}

static inline void wait_wild(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* The report of the program run by exec; any other end is allowed. */
	if (WIFEXITED(status))
		EXPECT_EQ(0, WEXITSTATUS(status))
			note_fault();
}

/* Waits until the team is ready, or has ended before. */
static inline void wait_ops(int nr, pid_t pid)
{
	uint64_t end = now_ns() + WILD_NS;
	siginfo_t info;

	do {
		sleep_ns(NSEC_PER_MSEC);
		info.si_pid = 0;
		waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT);
	} while (atomic_load(&world->nr_wild_ops) < nr && !info.si_pid &&
		 now_ns() < end);
}

/*
 * One wild team after the other, killed if it does not end before: during its
 * operations, on a slow machine as well.
 */
static inline void breeder_main(int post, uint64_t seed)
{
	struct dice d = dice_of(seed, 0);
	uint32_t i, ns, nr;
	bool stops;
	pid_t pid;

	for (i = 0; i < NR_WILD; i++) {
		ns = pick(&d, 20000000);
		nr = pick(&d, NR_OPS);
		stops = once_in(&d, 4);
		atomic_store(&world->nr_wild_ops, 0);
		pid = fork();
		if (!pid)
			wild_main(post, d.state);
		ASSERT_LT(0, pid);
		wait_ops(nr, pid);
		if (stops) {
			kill(pid, SIGSTOP);
			sleep_ns(ns / 4);
			kill(pid, SIGCONT);
			sleep_ns(ns / 4);
		}
		kill(pid, SIGKILL);
		wait_wild(pid);
		count(KILLED);
	}
	_exit(0);
}

#endif /* SELFTESTS_FUZZ_GROUP_H */
