/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: children that share more with their parent than those of fork():
 * the memory, and so the space, the table of descriptors, or both. Such a child
 * parks, wakes, joins, closes, and then exits or runs another program. The
 * thread that made it waits for it.
 *
 * A close in a table of the child's own is no close of the parent's: no sleeper
 * of the parent returns. The child's results are in shared memory; its errno is
 * the parent's too, so the parent uses no other result meanwhile.
 */
#ifndef SELFTESTS_FUZZ_CLONE_H
#define SELFTESTS_FUZZ_CLONE_H

#include "procs.h"

#define NR_CHILD_STEPS	3
#define CHILD_PARK_NS	20000

struct child {
	struct player	*p;
	struct dice	dice;
	bool		shares_memory, shares_files, is_vfork;
};

/* Operations of the child on descriptors. */
static inline void child_close(struct child *c, struct dice *d)
{
	uint32_t how = pick(d, 4), fdno = pick(d, NR_FDS);
	uint32_t other = pick(d, NR_FDS);
	struct team *team = c->p->team;

	/* The home stays open, except in a table of the child's own. */
	if (!fdno && c->shares_files)
		fdno = 1;
	if (c->shares_files) {
		close_own(team, fdno_fd(fdno));
		return;
	}
	if (how == 0)
		dup3(fdno_fd(other), fdno_fd(fdno), 0);
	else if (how == 1)
		syscall(SYS_close_range, FIRST_FD, ~0U, 0);
	else
		close(fdno_fd(fdno));
}

static inline void child_park(struct child *c, struct dice *d)
{
	uint32_t lot = pick(d, nr_home_lots(c->p));
	struct team *team = c->p->team;
	unsigned long ended = closes_ended(team);
	int ret = dev_park(fdno_fd(0), lot, seq_read(&team->home, lot),
			   now_ns() + CHILD_PARK_NS);

	if (ret == PARKLOT_WOKEN)
		atomic_fetch_add(&team->seen, 1);
	if (ret == PARKLOT_INTERRUPTED)
		check_interrupt(c->p, 0, ended);
}

static inline void child_wake(struct child *c, struct dice *d)
{
	int woken = dev_wake(fdno_fd(0), pick(d, nr_home_lots(c->p)), 1);

	if (woken > 0)
		atomic_fetch_add(&c->p->team->said, woken);
}

static inline void child_step(struct child *c, struct dice *d)
{
	struct parklot_worker worker = { .slot = pick(d, NR_WORKERS) };

	switch (pick(d, 8)) {
	case 0 ... 2:
		child_close(c, d);
		break;
	case 3:
	case 4:
		if (c->shares_memory)
			child_park(c, d);
		break;
	case 5:
		if (c->shares_memory)
			child_wake(c, d);
		break;
	case 6:
		dev_ioctl(fdno_fd(0), PARKLOT_IOC_WORKER_JOIN, &worker);
		break;
	case 7:
		dev_ioctl(fdno_fd(0), PARKLOT_IOC_WORKER_LEAVE, &worker);
		break;
	}
}

static inline int child_main(void *arg)
{
	struct child *c = arg;
	struct dice d = c->dice;
	bool runs_another = once_in(&d, 8);
	int i;

	for (i = 0; i < NR_CHILD_STEPS; i++) {
		struct dice own = dice_of(d.state, i);

		child_step(c, &own);
	}
	if (runs_another)
		exec_self();
	_exit(0);
}

/* Only the end of the child ends this: errno may be the child's. */
static inline int child_wait(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, __WALL) != pid)
		;
	return status;
}

static inline uint32_t clone_flags(const struct child *c)
{
	return (c->shares_memory ? CLONE_VM : 0) |
	       (c->shares_files ? CLONE_FILES : 0) |
	       (c->is_vfork ? CLONE_VFORK : 0) | SIGCHLD;
}

static void do_clone(struct player *p, struct dice *d)
{
	uint32_t how = pick(d, 8);
	struct child c = {
		.p = p, .dice = dice_of(d->state, 0),
		.shares_memory = how != 7, .shares_files = how > 4,
		.is_vfork = how < 3,
	};
	pid_t pid = clone(child_main, p->stack + CHILD_STACK, clone_flags(&c),
			  &c);
	int status = 0;

	count(PROCESSES);
	if (pid < 0)
		foul(p, "clone: error %d", errno);
	else
		status = child_wait(pid);
	if (status)
		foul(p, "child ended with status %#x", status);
}

#endif /* SELFTESTS_FUZZ_CLONE_H */
