/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * base: the macros that every file uses
 */
#ifndef PL_BASE_H
#define PL_BASE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PL_CACHELINE		64
#define __pl_aligned(n)		__attribute__((aligned(n)))
#define __pl_cacheline		__pl_aligned(PL_CACHELINE)
#define __pl_noinline		__attribute__((noinline))
/* Calls a task's own function: there a walk up the task's calls has ended. */
#define __pl_entry		__attribute__((noinline, section("pl_entry")))
#define __pl_always_inline	inline __attribute__((always_inline))
#ifndef __pl_no_frame
# define __pl_no_frame		/* see base/frame.h */
#endif
#define __pl_printf(a, b)	__attribute__((format(printf, a, b)))

#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define NSEC_PER_SEC		1000000000ULL

#if defined(__SANITIZE_ADDRESS__)
# define PL_ASAN		1
#elif defined(__has_feature)
# if __has_feature(address_sanitizer)
#  define PL_ASAN		1
# endif
#endif

#if defined(__SANITIZE_THREAD__)
# define PL_TSAN		1
#elif defined(__has_feature)
# if __has_feature(thread_sanitizer)
#  define PL_TSAN		1
# endif
#endif

/*
 * A broken invariant of the library; a caller's mistake is -EINVAL.  The line
 * with which the process dies names the task that runs.
 */
#define PL_BUG_ON(cond) do {						\
	if (unlikely(cond))						\
		pl__bug(__FILE__, __LINE__, #cond);			\
} while (0)

void __attribute__((noreturn, cold))
pl__bug(const char *file, uint32_t line, const char *what);

/* C11's names are long, and readers look for the order. */
#define load_relaxed(p)		atomic_load_explicit(p, memory_order_relaxed)
#define load_acquire(p)		atomic_load_explicit(p, memory_order_acquire)
#define store_relaxed(p, v) \
	atomic_store_explicit(p, v, memory_order_relaxed)
#define store_release(p, v) \
	atomic_store_explicit(p, v, memory_order_release)

/*
 * A seq_cst store right before a read-modify-write, such as a lock: where the
 * latter is a full barrier, the store need not be one.
 */
#if defined(__x86_64__)
# define store_before_rmw(p, v)	store_release(p, v)
#else
# define store_before_rmw(p, v)	atomic_store(p, v)
#endif

/*
 * A counter that one thread writes and other threads read now and then.
 * Compilers make three instructions of it where one does.
 */
#if defined(__x86_64__) && !defined(PL_TSAN)
static inline void pl__add_u64(_Atomic uint64_t *p, uint64_t n)
{
	__asm__("addq	%1, %0" : "+m"(*(uint64_t *)p) : "er"(n) : "cc");
}

static inline void pl__add_u32(_Atomic uint32_t *p, uint32_t n)
{
	__asm__("addl	%1, %0" : "+m"(*(uint32_t *)p) : "er"(n) : "cc");
}

# define counter_add(p, n) \
	_Generic((p), _Atomic uint64_t *: pl__add_u64, \
		      _Atomic uint32_t *: pl__add_u32)(p, n)
#else
# define counter_add(p, n)	store_relaxed(p, load_relaxed(p) + (n))
#endif
#define counter_inc(p)		counter_add(p, 1)
/* A reader that uses acquire sees what was counted before. */
#define counter_inc_release(p)	store_release(p, load_relaxed(p) + 1)

#ifdef PL_SIM
/* lib/sim: another thread may run here. */
void pl__sim_point(const char *where);
uint64_t pl__sim_number(const void *address);
# define PL_SIM_POINT(where)	pl__sim_point(where)
/* What a hash or a random number is made of: the same in each run of a seed. */
# define PL_NUMBER_OF(address)	pl__sim_number(address)
#else
# define PL_SIM_POINT(where)	do { } while (0)
# define PL_NUMBER_OF(address)	((uint64_t)(uintptr_t)(address))
#endif

static inline void pl__cpu_relax(void)
{
#if defined(PL_SIM)
	PL_SIM_POINT("relax");
#elif defined(__x86_64__)
	__asm__ volatile("pause" ::: "memory");
#elif defined(__aarch64__)
	/*
	 * "yield" is a nop on most processors: 100 turns would take 0.2 us.
	 * "isb" empties the pipeline, which takes as long as "pause".
	 */
	__asm__ volatile("isb" ::: "memory");
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

/*
 * Orders all accesses before it against all after it, also a store before a
 * load.  TSan knows no fences: under TSan the processor gets the barrier all
 * the same, but TSan learns of an order only from the accesses themselves.
 */
static inline void pl__full_barrier(void)
{
#if defined(__x86_64__)
	__asm__ volatile("lock; orl $0, -4(%%rsp)" ::: "memory", "cc");
#elif defined(PL_TSAN) && defined(__aarch64__)
	__asm__ volatile("dmb ish" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * Where the library is loaded late, the variables of a thread would be
 * allocated at its first access, which may be in a signal handler.  glibc has
 * room for some; musl refuses a library that asks for it.
 */
#ifdef __GLIBC__
# define PL_TLS_EARLY	__attribute__((tls_model("initial-exec")))
#else
# define PL_TLS_EARLY
#endif

/*
 * grown: structs that the library fills in, and that grow at their end
 *
 * A caller's struct begins with its size, by the header that it was built with.
 * That of an older header is smaller than the library's, but has the fields of
 * the first one; that of a newer header is larger.
 */

/* The size of a struct of which @field was the last in the first header. */
#define PL__GROWN_FIRST(type, field) \
	(offsetof(type, field) + sizeof(((type *)0)->field))

static inline size_t pl__grown_both(const void *callers, size_t known)
{
	size_t size = *(const size_t *)callers;

	return size < known ? size : known;
}

static inline bool pl__grown_is_valid(const void *callers, size_t first)
{
	return callers && *(const size_t *)callers >= first;
}

/* Reads a valid struct to @own, of @known bytes; what it lacks is 0. */
static inline void pl__grown_read(void *own, size_t known, const void *callers)
{
	memset(own, 0, known);
	memcpy(own, callers, pl__grown_both(callers, known));
}

/* Writes @own to a valid struct, which keeps its size. */
static inline void pl__grown_write(void *callers, const void *own, size_t known)
{
	memcpy((size_t *)callers + 1, (const size_t *)own + 1,
	       pl__grown_both(callers, known) - sizeof(size_t));
}

/*
 * What statistics fill in has no fields of the caller's: a header may be as old
 * as it likes.
 */
static inline bool pl__filled_is_valid(const void *callers)
{
	return pl__grown_is_valid(callers, sizeof(size_t)) &&
	       *(const size_t *)callers <= 4096;
}

/* What the library does not know of is 0. */
static inline void pl__fill(void *callers, const void *own, size_t known)
{
	memset((size_t *)callers + 1, 0,
	       *(const size_t *)callers - sizeof(size_t));
	pl__grown_write(callers, own, known);
}

/*
 * probe: points that bpftrace, perf and gdb find by name, "parklot:NAME"
 *
 * Each is a nop, and a note that says where its arguments are at that moment
 * (systemtap's sys/sdt.h); without that header there are none.  So arguments
 * are values that the code has anyway; but of at least 32 bits, as gdb does not
 * know all names of smaller registers.  parklot-debug(7) lists the probes.
 */

#if defined(__has_include)
# if __has_include(<sys/sdt.h>)
#  include <sys/sdt.h>
# endif
#endif

#ifdef DTRACE_PROBE
# define PL_PROBE1(name, a)		DTRACE_PROBE1(parklot, name, a)
# define PL_PROBE2(name, a, b)		DTRACE_PROBE2(parklot, name, a, b)
# define PL_PROBE3(name, a, b, c)	DTRACE_PROBE3(parklot, name, a, b, c)
#else
# define PL_PROBE1(name, a)		((void)(a))
# define PL_PROBE2(name, a, b)		((void)(a), (void)(b))
# define PL_PROBE3(name, a, b, c)	((void)(a), (void)(b), (void)(c))
#endif

#endif /* PL_BASE_H */
