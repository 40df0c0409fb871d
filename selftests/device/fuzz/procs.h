/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: other processes, and how a process disturbs another: signals, fork,
 * exec, descriptors over a socket. In a process that did not open it, a
 * descriptor always gives EIO; children that share the memory are in
 * clone.h.
 */
#ifndef SELFTESTS_FUZZ_PROCS_H
#define SELFTESTS_FUZZ_PROCS_H

#include "calls.h"
#include "send_fd.h"

#include <poll.h>

#define EXEC_ENV	"MOD_FUZZ_EXEC"

/* ---- descriptors of another process ---- */

/* Returns the first call with a result other than EIO; or NULL. */
static inline const char *not_foreign(int fd)
{
	static const struct { unsigned long cmd; const char *name; } calls[] = {
		{ PARKLOT_IOC_QUERY, "QUERY" },
		{ PARKLOT_IOC_SETUP, "SETUP" },
		{ PARKLOT_IOC_PARK, "PARK" },
		{ PARKLOT_IOC_WAKE, "WAKE" },
		{ PARKLOT_IOC_WAKE_PARK, "WAKE_PARK" },
		{ PARKLOT_IOC_CREW, "CREW" },
		{ PARKLOT_IOC_WORKER_JOIN, "WORKER_JOIN" },
		{ PARKLOT_IOC_WORKER_LEAVE, "WORKER_LEAVE" },
		{ _IO(PARKLOT_IOC_MAGIC, 0), "an unknown command" },
	};
	static uint64_t zeros[64];
	size_t i, page = sysconf(_SC_PAGESIZE);

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (dev_ioctl(fd, calls[i].cmd, zeros) != -EIO)
			return calls[i].name;
	/*
	 * The kernel itself refuses a descriptor that is open for writing only.
	 */
	if (mmap(NULL, page, PROT_READ, MAP_SHARED, fd, PARKLOT_OFF_COUNTERS) !=
	    MAP_FAILED || (errno != EIO && errno != EACCES))
		return "mmap";
	return NULL;
}

/* In a child, which does not know the fdnos that are free. */
static inline const char *any_not_foreign(void)
{
	const char *what = NULL;
	uint32_t fdno;

	for (fdno = 0; fdno < NR_FDS && !what; fdno++)
		if (fcntl(fdno_fd(fdno), F_GETFD) >= 0)
			what = not_foreign(fdno_fd(fdno));
	return what;
}

/* The program run by exec reports by its exit status, before any main(). */
static void __attribute__((constructor)) exec_main(void)
{
	if (getenv(EXEC_ENV))
		_exit(!!any_not_foreign());
}

static inline void exec_self(void)
{
	char *argv[] = { "mod_fuzz", NULL };
	char *envp[] = { EXEC_ENV "=1", NULL };

	execve("/proc/self/exe", argv, envp);
	_exit(1);
}

/* ---- children of a thread ---- */

static inline void wait_child(struct player *p, pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	if (status)
		foul(p, "child ended with status %#x", status);
}

/* A copy of one thread of many: it makes only system calls until it ends. */
static inline void forked_main(struct player *p, struct dice *d)
{
	uint32_t how = pick(d, 4), fdno = pick(d, NR_FDS);
	uint32_t ns = pick(d, 2000000);
	const char *what = any_not_foreign();

	if (what)
		foul(p, "%s does something in a child", what);
	if (how == 0)
		close(fdno_fd(fdno));
	if (how == 1)
		exec_self();
	if (how == 2)
		sleep_ns(ns);
	_exit(0);
}

static void do_fork(struct player *p, struct dice *d)
{
	struct dice own = dice_of(d->state, 0);
	pid_t pid = fork();

	if (!pid)
		forked_main(p, &own);
	count(PROCESSES);
	if (pid < 0)
		foul(p, "fork: error %d", errno);
	else
		wait_child(p, pid);
}

/* ---- signals, and blocking ---- */

static inline void on_signal(int sig)
{
	(void)sig;
}

/* SIGUSR1 restarts the call that it interrupts, SIGUSR2 does not. */
static inline void take_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGUSR2, &action, NULL);
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
}

static void do_signal(struct player *p, struct dice *d)
{
	uint32_t other = pick(d, NR_PLAYERS);
	int sig = once_in(d, 3) ? SIGUSR2 : SIGUSR1;

	pthread_kill(p->team->player[other].thread, sig);
	count(SIGNALS);
}

static void do_block(struct player *p, struct dice *d)
{
	uint32_t how = pick(d, 4), ns = pick(d, 200000);
	struct pollfd pollfd = { .fd = p->team->bell, .events = POLLIN };
	struct timespec ts = { .tv_nsec = ns };

	switch (how) {
	case 0:
		sleep_ns(ns);
		break;
	case 1:
		ppoll(&pollfd, 1, &ts, NULL);
		break;
	case 2:
		sched_yield();
		break;
	case 3:
		madvise(p->paper, PAPER_SIZE, MADV_DONTNEED);
		break;
	}
}

static void do_ring_bell(struct player *p, struct dice *d)
{
	uint64_t one = 1;
	ssize_t n;

	if (once_in(d, 2))
		n = write(p->team->bell, &one, sizeof(one));
	else
		n = read(p->team->bell, &one, sizeof(one));
	(void)n;
}

/* ---- over a socket ---- */

static void do_pass(struct player *p, struct dice *d)
{
	uint32_t fdno = pick_fdno(d);

	if (!send_fd(p->team->post, fdno_fd(fdno)))
		count(PASSED);
}

/*
 * A process of its own: receives descriptors, tries them, keeps some for a
 * while after their owners are dead, and leaves some in a socket that it
 * closes.
 */
static inline void stranger_main(int sock)
{
	struct team team = {};
	struct player p = { .team = &team, .op = "stranger" };
	int kept[4] = { -1, -1, -1, -1 }, pair[2], fd;
	const char *what;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		_exit(1);
	for (;; p.nr_op++) {
		fd = receive_fd(sock);
		if (fd == -ENOMSG)
			continue;
		if (fd < 0)
			break;
		what = not_foreign(fd);
		if (what)
			foul(&p, "%s does something", what);
		if (p.nr_op % 4 == 0)
			send_fd(pair[0], fd);
		close(kept[p.nr_op % 4]);
		kept[p.nr_op % 4] = fd;
	}
	_exit(0);
}

/* ---- what the administrator does meanwhile ---- */

static void do_features(struct player *p, struct dice *d)
{
	uint32_t bits = pick(d, 8);
	bool is_to_be = once_in(d, 4);

	(void)p;
	if (is_to_be)
		set_features(bits);
	else
		set_features(~0UL);
}

/* Not while a space is open, and the home always is. */
static void do_unload(struct player *p, struct dice *d)
{
	(void)d;
	if (!syscall(SYS_delete_module, "parklot", O_NONBLOCK))
		foul(p, "the module is gone");
}

#endif /* SELFTESTS_FUZZ_PROCS_H */
