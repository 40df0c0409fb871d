/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#define PL_SYS_ITSELF
#include "base/sys.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FD_FLOOR_MAX	3072

/*
 * The result of a call, or -errno.  Leaves errno as it was: in an ordinary
 * thread it belongs to the program.
 */
#define CALL(call) __extension__ ({					\
	int before = errno;						\
	long said = (long)(call);					\
									\
	if (said == -1) {						\
		said = -errno;						\
		errno = before;						\
	}								\
	said;								\
})

int *pl__errno_at(void)
{
	return &errno;
}

int pl__errno_swap(int value)
{
	int before = errno;

	errno = value;
	return before;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (CALL(clock_gettime(clock, &ts)))
		return 0;
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};
}

uint64_t pl__now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t pl__thread_cpu_ns(pthread_t thread)
{
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock))
		return 0;
	return clock_ns(clock);
}

/*
 * Makes a clock id as pthread_getcpuclockid() does, but the thread may be gone.
 */
uint64_t pl__tid_cpu_ns(int tid)
{
	clockid_t clock = (clockid_t)(~(uint32_t)tid << 3 | 6);

	return tid ? clock_ns(clock) : 0;
}

/* "USED LACKED SLICES", of kernels that count it. */
uint64_t pl__tid_lacked_ns(int tid)
{
	char path[48], text[64], *end;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	if (!tid || pl__read_file(path, text, sizeof(text)) <= 0)
		return 0;
	strtoull(text, &end, 10);
	return strtoull(end, NULL, 10);
}

int pl__thread_id(void)
{
	return (int)syscall(SYS_gettid);
}

bool pl__read_own_mem(void *to, const void *from, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)from, size };

	return CALL(process_vm_readv(getpid(), &here, 1, &there, 1, 0)) ==
	       (ssize_t)size;
}

void pl__sleep_ns(uint64_t ns)
{
	struct timespec ts = to_timespec(ns);

	CALL(nanosleep(&ts, NULL));
}

void pl__sched_yield(void)
{
	sched_yield();
}

int pl__futex_wait(_Atomic uint32_t *word, uint32_t expected,
		   uint64_t deadline_ns)
{
	struct timespec ts = to_timespec(deadline_ns);

	/* The bitset form takes an absolute, monotonic time. */
	return (int)CALL(syscall(SYS_futex, word,
				 FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG,
				 expected,
				 deadline_ns == UINT64_MAX ? NULL : &ts, NULL,
				 FUTEX_BITSET_MATCH_ANY));
}

int pl__futex_wake(_Atomic uint32_t *word, int nr)
{
	return (int)CALL(syscall(SYS_futex, word,
				 FUTEX_WAKE | FUTEX_PRIVATE_FLAG, nr, NULL,
				 NULL, 0));
}

void *pl__map(size_t size)
{
	long p = CALL(mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			   0));

	if (p < 0)
		return NULL;
	PL_TALLY(pl__nr_mapped, size);
	return (void *)p;
}

size_t pl__page_size(void)
{
	long size = sysconf(_SC_PAGESIZE);

	return size > 0 ? (size_t)size : 4096;
}

int pl__unmap(void *addr, size_t size)
{
	int ret = (int)CALL(munmap(addr, size));

	if (!ret)
		PL_TALLY(pl__nr_mapped, -(int64_t)size);
	return ret;
}

int pl__protect_none(void *addr, size_t size)
{
	return (int)CALL(mprotect(addr, size, PROT_NONE));
}

int pl__advise(void *addr, size_t size, int advice)
{
	return (int)CALL(madvise(addr, size, advice));
}

int pl__open(const char *path, int flags)
{
	return (int)CALL(open(path, flags | O_CLOEXEC));
}

int pl__close(int fd)
{
	return (int)CALL(close(fd));
}

int pl__ioctl(int fd, unsigned long cmd, void *arg)
{
	return (int)CALL(ioctl(fd, cmd, arg));
}

void *pl__map_fd(int fd, size_t size, int prot, uint64_t offset)
{
	long p = CALL(mmap(NULL, size, prot, MAP_SHARED, fd, (off_t)offset));

	if (p < 0)
		return NULL;
	PL_TALLY(pl__nr_mapped, size);
	return (void *)p;
}

/*
 * Three quarters of what the process may open, to leave the rest to others; no
 * more than keeps the kernel's table of descriptors small.
 */
static int fd_floor(void)
{
	struct rlimit limit;

	if (CALL(getrlimit(RLIMIT_NOFILE, &limit)))
		return 0;
	return limit.rlim_cur < FD_FLOOR_MAX / 3 * 4 ?
	       (int)(limit.rlim_cur / 4 * 3) : FD_FLOOR_MAX;
}

int pl__fd_move_up(int fd)
{
	int floor = fd_floor(), high;

	if (fd < 0 || fd >= floor)
		return fd;
	high = (int)CALL(fcntl(fd, F_DUPFD_CLOEXEC, floor));
	if (high < 0)
		return fd;
	pl__close(fd);
	return high;
}

int pl__eventfd(void)
{
	return pl__fd_move_up((int)CALL(eventfd(0, EFD_CLOEXEC)));
}

void pl__fd_grow_table(void)
{
	int fd = pl__eventfd();

	if (fd >= 0)
		pl__close(fd);
}

int pl__epoll(void)
{
	return pl__fd_move_up((int)CALL(epoll_create1(EPOLL_CLOEXEC)));
}

int pl__fd_stat(int fd, struct stat *st)
{
	/* TSan assumes that no thread closes a descriptor that another uses. */
	return (int)CALL(syscall(SYS_fstat, fd, st));
}

long pl__syscall_long(long nr, long a, long b, long c, long d, long e, long f)
{
	return CALL(syscall(nr, a, b, c, d, e, f));
}

ssize_t pl__fd_read(int fd, void *buf, size_t size)
{
	return CALL(read(fd, buf, size));
}

ssize_t pl__fd_write(int fd, const void *buf, size_t size)
{
	return CALL(write(fd, buf, size));
}

ssize_t pl__fd_try_write(int fd, const void *buf, size_t size)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

	if (!CALL(poll(&poll_fd, 1, 0)))
		return -EAGAIN;
	return pl__fd_write(fd, buf, size);
}

ssize_t pl__fd_reread(int fd, char *buf, size_t size)
{
	ssize_t n = CALL(pread(fd, buf, size - 1, 0));

	if (n >= 0)
		buf[n] = '\0';
	return n;
}

ssize_t pl__read_file(const char *path, char *buf, size_t size)
{
	ssize_t n;
	int fd = pl__open(path, O_RDONLY);

	if (fd < 0)
		return fd;
	n = pl__fd_read(fd, buf, size - 1);
	pl__close(fd);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

#define GUARD_SIZE_MAX	(8UL << 20)
#define GUARD_SIZE_ODD	4096

/*
 * As wide as the stack, as guards of tasks are; costs address space only.  And
 * a little more, as by default: where stack and guard together are a multiple
 * of 2 MiB all stacks may be aligned to that, and then a kernel that gives huge
 * pages unasked gives one to each at its first touch.
 */
static void thread_widen_guard(pthread_attr_t *attr)
{
	size_t size;

	if (pthread_attr_getstacksize(attr, &size))
		return;
	if (size > GUARD_SIZE_MAX)
		size = GUARD_SIZE_MAX;
	pthread_attr_setguardsize(attr, size + GUARD_SIZE_ODD);
}

static int thread_create(pthread_t *out, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	int ret = pthread_attr_init(&attr);

	if (!ret) {
		thread_widen_guard(&attr);
		ret = pthread_create(out, &attr, fn, arg);
		pthread_attr_destroy(&attr);
	}
	/* There may be address space for a thread with a page as its guard. */
	return ret ? pthread_create(out, NULL, fn, arg) : 0;
}

int pl__thread_start(pthread_t *out, void *(*fn)(void *), void *arg)
{
	static const int faults[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS,
	};
	sigset_t all, old;
	size_t i;
	int ret;

	sigfillset(&all);
	for (i = 0; i < ARRAY_SIZE(faults); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = thread_create(out, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -ret;
}

void pl__thread_stack(pthread_t thread, struct pl__thread_stack *out)
{
	pthread_attr_t attr;

	memset(out, 0, sizeof(*out));
	if (pthread_getattr_np(thread, &attr))
		return;
	pthread_attr_getstack(&attr, &out->base, &out->size);
	pthread_attr_getguardsize(&attr, &out->guard);
	pthread_attr_destroy(&attr);
}

static sigset_t kept_mask;

void pl__signals_keep(void)
{
	pthread_sigmask(SIG_SETMASK, NULL, &kept_mask);
}

void pl__signals_restore(void)
{
	pthread_sigmask(SIG_SETMASK, &kept_mask, NULL);
}

void pl__signals_kept(sigset_t *out)
{
	*out = kept_mask;
}

int pl__signal_handle(int sig, const struct sigaction *sa)
{
	return (int)CALL(sigaction(sig, sa, NULL));
}

void pl__thread_name(const char *name)
{
	CALL(prctl(PR_SET_NAME, name, 0, 0, 0));
}

void pl__thread_slack(uint64_t ns)
{
	prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0);
}

/* struct sched_attr, which the C library lacks, as it was at first. */
struct sched_view {
	uint32_t	size;
	uint32_t	policy;
	uint64_t	flags;
	int32_t		nice;
	uint32_t	priority;
	uint64_t	runtime_ns;
	uint64_t	deadline_ns;
	uint64_t	period_ns;
};

uint64_t pl__thread_slice(uint64_t ns)
{
	struct sched_view v = { .size = sizeof(v) };
	uint64_t before;

	if (CALL(syscall(SYS_sched_getattr, 0, &v, sizeof(v), 0)) < 0 ||
	    v.policy != SCHED_OTHER)
		return 0;
	before = v.runtime_ns;
	v.runtime_ns = ns;
	if (!before || CALL(syscall(SYS_sched_setattr, 0, &v, 0)) < 0)
		return 0;
	return before;
}

int pl__affinity_get(struct pl__cpu_set *out)
{
	long ret;

	memset(out, 0, sizeof(*out));
	ret = CALL(syscall(SYS_sched_getaffinity, 0, sizeof(*out), out));
	return ret < 0 ? (int)ret : 0;
}

int pl__affinity_set(int tid, const struct pl__cpu_set *set)
{
	return (int)CALL(syscall(SYS_sched_setaffinity, tid, sizeof(*set),
				 set));
}

/* No thread can run on no CPU. */
int pl__affinity_probe(void)
{
	static const struct pl__cpu_set none;
	int ret = pl__affinity_set(0, &none);

	return ret == -EINVAL ? 0 : ret;
}

uint32_t pl__cpu_now(void)
{
	long cpu = CALL(sched_getcpu());

	return cpu >= 0 && cpu < PL__CPUS_MAX ? (uint32_t)cpu : PL__CPUS_MAX;
}

void pl__die_by(int sig)
{
	signal(sig, SIG_DFL);
	raise(sig);
	abort();
}

void *pl__alloc(size_t size)
{
	int before = errno;
	void *p = calloc(1, size);

	errno = before;
	if (p)
		PL_TALLY(pl__nr_objects, 1);
	return p;
}

void *pl__alloc_aligned(size_t align, size_t size)
{
	void *p;

	if (posix_memalign(&p, align, size))
		return NULL;
	PL_TALLY(pl__nr_objects, 1);
	return memset(p, 0, size);
}

void pl__free(void *p)
{
	if (p)
		PL_TALLY(pl__nr_objects, -1);
	free(p);
}
