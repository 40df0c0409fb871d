/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sys: system calls that return -errno
 *
 * Only this file uses errno, but for run/run.h, which keeps its value with
 * the task.  The compiler keeps its address across a stack switch, after which
 * it may be another thread's.
 */
#ifndef PL_SYS_H
#define PL_SYS_H

#include "base/base.h"
#include "base/inject.h"

#include <pthread.h>
#include <time.h>

/*
 * cpu_set: a set of CPUs by their numbers, as the kernel's affinity calls and
 * sysfs have it
 *
 * The C library's cpu_set_t ends at 1024 CPUs: on a larger machine the kernel
 * refuses it.
 */

/* The most that Linux is built for. */
#define PL__CPUS_MAX		8192
#define PL__CPU_SET_BITS	(8 * sizeof(unsigned long))

struct pl__cpu_set {
	unsigned long	bits[PL__CPUS_MAX / PL__CPU_SET_BITS];
};

static inline bool pl__cpu_set_has(const struct pl__cpu_set *set, uint32_t cpu)
{
	return set->bits[cpu / PL__CPU_SET_BITS] >> cpu % PL__CPU_SET_BITS & 1;
}

static inline void pl__cpu_set_add(struct pl__cpu_set *set, uint32_t cpu)
{
	set->bits[cpu / PL__CPU_SET_BITS] |= 1UL << cpu % PL__CPU_SET_BITS;
}

/* Removes from @set what @other lacks. */
static inline void pl__cpu_set_and(struct pl__cpu_set *set,
				   const struct pl__cpu_set *other)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(set->bits); i++)
		set->bits[i] &= other->bits[i];
}

/* Removes from @set what @other has. */
static inline void pl__cpu_set_sub(struct pl__cpu_set *set,
				   const struct pl__cpu_set *other)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(set->bits); i++)
		set->bits[i] &= ~other->bits[i];
}

static inline uint32_t pl__cpu_set_count(const struct pl__cpu_set *set)
{
	uint32_t nr = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(set->bits); i++)
		nr += (uint32_t)__builtin_popcountl(set->bits[i]);
	return nr;
}

/* The first CPU from @cpu on, or PL__CPUS_MAX. */
static inline uint32_t pl__cpu_set_next(const struct pl__cpu_set *set,
					uint32_t cpu)
{
	size_t i = cpu / PL__CPU_SET_BITS;
	unsigned long bits;

	if (cpu >= PL__CPUS_MAX)
		return PL__CPUS_MAX;
	bits = set->bits[i] >> cpu % PL__CPU_SET_BITS;
	if (bits)
		return cpu + (uint32_t)__builtin_ctzl(bits);
	while (++i < ARRAY_SIZE(set->bits))
		if (set->bits[i])
			return (uint32_t)(i * PL__CPU_SET_BITS) +
			       (uint32_t)__builtin_ctzl(set->bits[i]);
	return PL__CPUS_MAX;
}

uint64_t pl__now_ns(void);
uint64_t pl__thread_cpu_ns(pthread_t thread);
uint64_t pl__tid_cpu_ns(int tid);	/* 0: the thread has ended */
/* How long it has waited for processors; 0: nothing tells. */
uint64_t pl__tid_lacked_ns(int tid);
int pl__thread_id(void);

/* Where the calling thread has its errno. */
int *pl__errno_at(void);
/* Sets it to @value and returns what it was. */
int pl__errno_swap(int value);

/* Reads memory that may be unmapped at any moment; false: it is. */
bool pl__read_own_mem(void *to, const void *from, size_t size);
void pl__sleep_ns(uint64_t ns);
void pl__sched_yield(void);

/* Private futexes; @deadline_ns: CLOCK_MONOTONIC, UINT64_MAX: none. */
int pl__futex_wait(_Atomic uint32_t *word, uint32_t expected,
		   uint64_t deadline_ns);
int pl__futex_wake(_Atomic uint32_t *word, int nr);

void *pl__map(size_t size);		/* NULL: no memory; not counted */
size_t pl__page_size(void);
int pl__unmap(void *addr, size_t size);
int pl__protect_none(void *addr, size_t size);
int pl__advise(void *addr, size_t size, int advice);

int pl__open(const char *path, int flags);
int pl__close(int fd);
int pl__ioctl(int fd, unsigned long cmd, void *arg);
void *pl__map_fd(int fd, size_t size, int prot, uint64_t offset);
/*
 * The number of @fd from here on, far above the lowest free ones: a program
 * that uses a number after its close() must not hit the library's descriptor.
 * @fd itself if it is -errno, high enough, or no higher number is free.
 */
int pl__fd_move_up(int fd);
/*
 * Lets the table of descriptors grow to these numbers now.  In a process of
 * several threads the kernel waits for all processors then, for 10 ms.
 */
void pl__fd_grow_table(void);
int pl__eventfd(void);		/* moved up */
int pl__epoll(void);		/* moved up */
struct stat;
int pl__fd_stat(int fd, struct stat *st);
ssize_t pl__fd_read(int fd, void *buf, size_t size);
ssize_t pl__fd_write(int fd, const void *buf, size_t size);

/* Writes without waiting: -EAGAIN.  At most as much as a pipe takes at once. */
ssize_t pl__fd_try_write(int fd, const void *buf, size_t size);

/* Reads from the beginning of the file, as a string; its length or -errno. */
ssize_t pl__fd_reread(int fd, char *buf, size_t size);

/* The most bytes that one system call transfers. */
#define PL__TRANSFER_MAX	0x7ffff000

/* Any system call, with up to six arguments of any type. */
#define pl__syscall(...)	PL__SYSCALL(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define PL__SYSCALL(nr, a, b, c, d, e, f, ...)				\
	pl__syscall_long(nr, (long)(a), (long)(b), (long)(c),		\
			 (long)(d), (long)(e), (long)(f))
long pl__syscall_long(long nr, long a, long b, long c, long d, long e, long f);

/* The first @size - 1 bytes of a file, as a string; its length or -errno. */
ssize_t pl__read_file(const char *path, char *buf, size_t size);

/*
 * Starts a thread that blocks all signals but those of its own faults.  Its
 * guard is as wide as its stack, up to 8 MiB, if there is address space.
 */
int pl__thread_start(pthread_t *out, void *(*fn)(void *), void *arg);

/* The stack of a thread, with the guard that lies directly below @base. */
struct pl__thread_stack {
	void	*base;	/* lowest usable byte; NULL: not known */
	size_t	size;	/* bytes */
	size_t	guard;	/* bytes */
};

/*
 * That of a thread that pl__thread_start() has started.  It takes memory by
 * malloc(), as the start does: a caller that did not before gets an arena, 64
 * MiB of address space.
 */
void pl__thread_stack(pthread_t thread, struct pl__thread_stack *out);

/*
 * Keeps the signal mask of the thread that starts the runtime, for later use.
 */
void pl__signals_keep(void);
void pl__signals_restore(void);

/* The mask that was kept. */
void pl__signals_kept(sigset_t *out);

struct sigaction;
int pl__signal_handle(int sig, const struct sigaction *sa);

void pl__thread_name(const char *name);
void pl__thread_slack(uint64_t ns);

/*
 * Sets the slice of the calling thread, and of those that it starts from now
 * on: a thread that is woken runs before others with a longer slice, but not
 * for longer.  Returns the slice before; 0: it is as it was, since the thread
 * has another policy, or the kernel forbids it or has one slice for all (before
 * Linux 6.12).
 */
uint64_t pl__thread_slice(uint64_t ns);

/*
 * The CPUs on which the calling thread may run, those that are online; -errno:
 * the kernel does not say.
 */
int pl__affinity_get(struct pl__cpu_set *out);
/* A thread of the process may run on @set; @tid 0: the caller. */
int pl__affinity_set(int tid, const struct pl__cpu_set *set);
/* Changes nothing; -errno: pl__affinity_set() is forbidden. */
int pl__affinity_probe(void);
/* That on which it runs at this moment, or PL__CPUS_MAX. */
uint32_t pl__cpu_now(void);

/* Dies as if the signal had no handler. */
void __attribute__((noreturn)) pl__die_by(int sig);

/* Zeroed memory for objects; all of the library's objects come from here. */
void *pl__alloc(size_t size);
void *pl__alloc_aligned(size_t align, size_t size);
void pl__free(void *p);

#if defined(PL_TEST_FAULT) && !defined(PL_SYS_ITSELF)
# define pl__map(size)		PL_FAULTY(NULL, pl__map(size))
# define pl__protect_none(addr, size) \
	PL_FAULTY(-ENOMEM, pl__protect_none(addr, size))
# define pl__advise(addr, size, advice) \
	PL_FAULTY(-ENOMEM, pl__advise(addr, size, advice))
# define pl__open(path, flags)	PL_FAULTY(-EMFILE, pl__open(path, flags))
# define pl__map_fd(fd, size, prot, offset) \
	PL_FAULTY(NULL, pl__map_fd(fd, size, prot, offset))
# define pl__eventfd()		PL_FAULTY(-EMFILE, pl__eventfd())
# define pl__epoll()		PL_FAULTY(-EMFILE, pl__epoll())
# define pl__read_file(path, buf, size) \
	PL_FAULTY(-EMFILE, pl__read_file(path, buf, size))
# define pl__thread_start(out, fn, arg) \
	PL_FAULTY(-EAGAIN, pl__thread_start(out, fn, arg))
# define pl__alloc(size)	PL_FAULTY(NULL, pl__alloc(size))
# define pl__alloc_aligned(align, size) \
	PL_FAULTY(NULL, pl__alloc_aligned(align, size))
#endif

#endif /* PL_SYS_H */
