/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What a process asks the system about: processors, threads, and files that say
 * so.  The simulation answers in its place, the same on each machine.
 */
#include "sim/device.h"
#include "sim/io.h"
#include "sim/sim.h"
#include "sim/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- files ---- */

#define FDINFO		"/proc/self/fdinfo/"
#define DEVICE		"/dev/parklot"

#define CGROUP		"/proc/self/cgroup"
#define CPU_MAX		"/sys/fs/cgroup/cpu.max"

/* The simulated machine lacks these, and the library can do without. */
static bool is_hidden(const char *path)
{
	return !strncmp(path, "/sys/", 5) || !strcmp(path, DEVICE) ||
	       !strcmp(path, CGROUP);
}

/* With a quota the process is in a group of its own; -1: another file. */
static int quota_open(const char *path)
{
	char text[64];

	if ((strcmp(path, CGROUP) && strcmp(path, CPU_MAX)) ||
	    !pl__sim_machine_cpu_max(text, sizeof(text)))
		return -1;
	return pl__sim_io_text(strcmp(path, CGROUP) ? text : "0::/\n");
}

/* The simulated thread of a path "PREFIX/task/TID/...", and where TID ends. */
static struct pl__sim_thread *thread_of_path(const char *path, char **end)
{
	const char *task = strstr(path, "/task/");

	if (strncmp(path, "/proc/", 6) || !task)
		return NULL;
	return pl__sim_thread_by_tid((int)strtol(task + 6, end, 10));
}

PL__SIM_API int open(const char *path, int flags, ...)
{
	struct pl__sim_thread *t;
	char room[128], *end;
	mode_t mode = 0;
	va_list ap;
	int fd;

	va_start(ap, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!pl__sim_is_on)
		return PL__SIM_REAL(open)(path, flags, mode);
	pl__sim_point("open");
	pl__sim_io_changed();
	if (!strcmp(path, DEVICE) && pl__sim_has_device())
		return pl__sim_device_open(flags);
	fd = quota_open(path);
	if (fd >= 0)
		return fd;
	if (is_hidden(path)) {
		errno = ENOENT;
		return -1;
	}
	if (!strncmp(path, FDINFO, sizeof(FDINFO) - 1)) {
		fd = pl__sim_uring_fdinfo(atoi(path + sizeof(FDINFO) - 1));
		if (fd >= 0)
			return fd;
	}
	t = thread_of_path(path, &end);
	if (t) {
		snprintf(room, sizeof(room), "/proc/self/task/%d%s",
			 t->real_tid, end);
		path = room;
	}
	return PL__SIM_REAL(open)(path, flags, mode);
}

PL__SIM_API int access(const char *path, int mode)
{
	if (!pl__sim_is_on || !is_hidden(path))
		return PL__SIM_REAL(access)(path, mode);
	pl__sim_point("access");
	if (!strcmp(path, DEVICE) && pl__sim_has_device())
		return 0;
	errno = ENOENT;
	return -1;
}

PL__SIM_API int ioctl(int fd, unsigned long cmd, ...)
{
	struct pl__sim_space *space;
	va_list ap;
	void *arg;
	int ret;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!pl__sim_is_on)
		return PL__SIM_REAL(ioctl)(fd, cmd, arg);
	pl__sim_point("ioctl");
	space = pl__sim_device_at(fd);
	if (space) {
		ret = pl__sim_device_call(space, fd, cmd, arg);
		errno = ret < 0 ? -ret : errno;
		return ret < 0 ? -1 : ret;
	}
	ret = PL__SIM_REAL(ioctl)(fd, cmd, arg);
	pl__sim_io_changed();
	return ret;
}

/* What /proc says of a thread, as far as the library asks; 0: another file. */
static size_t describe(int fd, char *text, size_t size)
{
	char link[64], path[128], *end;
	struct pl__sim_thread *t;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return 0;
	path[n] = '\0';
	t = thread_of_path(path, &end);
	if (!t)
		return 0;
	if (!strcmp(end, "/stat"))
		return (size_t)snprintf(text, size, "%d (sim) %c 0\n",
					pl__sim_tid(t),
					t->state == PL__SIM_BLOCKED ? 'S' :
								      'R');
	if (!strcmp(end, "/schedstat"))
		return (size_t)snprintf(text, size, "%llu %llu 0\n",
					(unsigned long long)t->ran_ns,
					(unsigned long long)t->lacked_ns);
	if (!strcmp(end, "/status"))
		return (size_t)snprintf(text, size,
					"Name:\tsim\nvoluntary_ctxt_switches:\t%llu\n",
					(unsigned long long)t->nr_sleeps);
	return 0;
}

PL__SIM_API ssize_t pread(int fd, void *buf, size_t size, off_t at)
{
	char text[128];
	size_t n;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(pread)(fd, buf, size, at);
	pl__sim_point("pread");
	n = at ? 0 : describe(fd, text, sizeof(text));
	if (!n)
		return PL__SIM_REAL(pread)(fd, buf, size, at);
	n = n < size ? n : size;
	memcpy(buf, text, n);
	return (ssize_t)n;
}

PL__SIM_API ssize_t read(int fd, void *buf, size_t size)
{
	char text[128];
	size_t n;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(read)(fd, buf, size);
	/* Only what reads a whole file at once asks for so much. */
	n = size >= 63 && !lseek(fd, 0, SEEK_CUR) ?
	    describe(fd, text, sizeof(text)) : 0;
	if (n) {
		n = n < size ? n : size;
		memcpy(buf, text, n);
		lseek(fd, 1, SEEK_CUR);
		return (ssize_t)n;
	}
	size = pl__sim_io_part(fd, size, 0);
	return PL__SIM_IO("read", fd, POLLIN, false,
			  PL__SIM_REAL(read)(fd, buf, size));
}

/* ---- processors ---- */

PL__SIM_API int sched_getcpu(void)
{
	struct pl__sim_thread *me = pl__sim_self();
	int i, nth;

	if (!pl__sim_is_on || !me)
		return PL__SIM_REAL(sched_getcpu)();
	nth = pl__sim_tid(me) % __builtin_popcountll(me->cpus);
	for (i = 0; !(me->cpus >> i & 1) || nth--; i++)
		;
	return i;
}

static long affinity_get(int tid, size_t size, void *mask)
{
	struct pl__sim_thread *t = pl__sim_thread_by_tid(tid);

	if (!t || size < sizeof(t->cpus)) {
		errno = t ? EINVAL : ESRCH;
		return -1;
	}
	memset(mask, 0, size);
	memcpy(mask, &t->cpus, sizeof(t->cpus));
	return sizeof(t->cpus);
}

/* It is kept and told, and decides nothing: the seed does. */
static long affinity_set(int tid, size_t size, const void *mask)
{
	struct pl__sim_thread *t = pl__sim_thread_by_tid(tid);
	uint64_t all = UINT64_MAX >> (64 - pl__sim_nr_cpus()), bits = 0;

	memcpy(&bits, mask, size < sizeof(bits) ? size : sizeof(bits));
	if (!t || !(bits & all)) {
		errno = t ? EINVAL : ESRCH;
		return -1;
	}
	t->cpus = bits & all;
	return 0;
}

PL__SIM_API int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(sched_getaffinity)(pid, size, set);
	return affinity_get(pid, size, set) < 0 ? -1 : 0;
}

PL__SIM_API int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(sched_setaffinity)(pid, size, set);
	return (int)affinity_set(pid, size, set);
}

static long usage_of_thread(struct rusage *ru)
{
	struct pl__sim_thread *me = pl__sim_self();
	uint64_t us = pl__sim_cpu_ns(me) / 1000;

	memset(ru, 0, sizeof(*ru));
	ru->ru_utime.tv_sec = (time_t)(us / 1000000);
	ru->ru_utime.tv_usec = (suseconds_t)(us % 1000000);
	ru->ru_nvcsw = (long)me->nr_sleeps;
	return 0;
}

/* ---- system calls ---- */

static long futex_wait(uint32_t *word, uint32_t expected, uint64_t until)
{
	pl__sim_point("futex_wait");
	if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != expected) {
		errno = EAGAIN;
		return -1;
	}
	if (pl__sim_sleep("futex_wait", word, NULL, NULL, until))
		return 0;
	errno = ETIMEDOUT;
	return -1;
}

static long futex_call(uint32_t *word, int op, uint32_t value,
		       const struct timespec *ts)
{
	uint64_t ns = ts ? pl__sim_ns(ts) : PL__SIM_FOREVER;
	int woken;

	switch (op & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)) {
	case FUTEX_WAIT:
		return futex_wait(word, value, ts ? pl__sim_now() + ns : ns);
	case FUTEX_WAIT_BITSET:
		return futex_wait(word, value, ns);
	case FUTEX_WAKE:
		pl__sim_point("futex_wake");
		woken = pl__sim_wake(word, (int)value);
		pl__sim_point("futex_woken");
		return woken;
	}
	pl__sim_fail("futex operation %d is not simulated", op);
}

/* Those that may wait, of which the library makes none for a plain file. */
static long io_call(long nr, const long *a)
{
	bool in = nr == SYS_recvfrom || nr == SYS_recvmsg || nr == SYS_readv ||
		  nr == SYS_accept4 || nr == SYS_read || nr == SYS_recvmmsg;
	long flags = nr == SYS_recvfrom || nr == SYS_sendto ? a[3] :
		     nr == SYS_recvmsg || nr == SYS_sendmsg ? a[2] :
		     nr == SYS_recvmmsg || nr == SYS_sendmmsg ? a[3] : 0;
	long size = a[2];

	if (nr == SYS_recvfrom || nr == SYS_read)
		size = (long)pl__sim_io_part((int)a[0], (size_t)size,
					     (int)flags);
	return PL__SIM_IO("system call", (int)a[0], in ? POLLIN : POLLOUT,
			  flags & MSG_DONTWAIT,
			  PL__SIM_REAL(syscall)(nr, a[0], a[1], size, a[3],
						a[4], a[5]));
}

static long other_call(long nr, const long *a)
{
	long ret;

	pl__sim_point("system call");
	ret = PL__SIM_REAL(syscall)(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	pl__sim_io_changed();
	return ret;
}

static long or_errno(long ret)
{
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

static long sim_call(long nr, const long *a)
{
	switch (nr) {
	case SYS_futex:
		return futex_call((uint32_t *)a[0], (int)a[1], (uint32_t)a[2],
				  (const struct timespec *)a[3]);
	case SYS_gettid:
		return pl__sim_tid(pl__sim_self());
	case SYS_ppoll:
		return ppoll((struct pollfd *)a[0], (nfds_t)a[1],
			     (const struct timespec *)a[2], NULL);
	case SYS_epoll_pwait:
		return epoll_wait((int)a[0], (struct epoll_event *)a[1],
				  (int)a[2], (int)a[3]);
	case SYS_sched_getaffinity:
		return affinity_get((int)a[0], (size_t)a[1],
				    (void *)a[2]);
	case SYS_sched_setaffinity:
		return affinity_set((int)a[0], (size_t)a[1],
				    (const void *)a[2]);
	case SYS_io_uring_setup:
		return or_errno(pl__sim_uring_setup());
	case SYS_io_uring_enter:
		return or_errno(pl__sim_uring_enter((int)a[0],
						    (unsigned int)a[1]));
	case SYS_io_uring_register:
		return or_errno(pl__sim_uring_register((int)a[0],
						       (unsigned int)a[1],
						       (const void *)a[2]));
	case SYS_sched_getattr:
		errno = ENOSYS;
		return -1;
	case SYS_getrusage:
		return a[0] == RUSAGE_THREAD ?
		       usage_of_thread((struct rusage *)a[1]) :
		       other_call(nr, a);
	case SYS_read: case SYS_write: case SYS_readv: case SYS_writev:
	case SYS_recvfrom: case SYS_sendto: case SYS_recvmsg: case SYS_sendmsg:
	case SYS_recvmmsg: case SYS_sendmmsg: case SYS_accept4:
		return io_call(nr, a);
	}
	return other_call(nr, a);
}

PL__SIM_API long syscall(long nr, ...)
{
	long a[6];
	va_list ap;
	int i;

	va_start(ap, nr);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!pl__sim_is_on)
		return PL__SIM_REAL(syscall)(nr, a[0], a[1], a[2], a[3], a[4],
					     a[5]);
	return sim_call(nr, a);
}

PL__SIM_API pid_t gettid(void)
{
	return pl__sim_is_on ? pl__sim_tid(pl__sim_self()) :
			       PL__SIM_REAL(gettid)();
}
