/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a test's counters however it ends, in a build for gcov (VARIANT=cov),
 * which by itself writes them in exit() only: at _exit(), before a signal gets
 * its default action back, and without memory. The linker turns calls of these
 * functions, the library's own too, into calls of the wrappers.
 */
#ifndef SELFTESTS_COVERAGE_H
#define SELFTESTS_COVERAGE_H

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

void __gcov_dump(void);
void __gcov_reset(void);

void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));
__sighandler_t __real_signal(int sig, __sighandler_t handler);
__sighandler_t __wrap_signal(int sig, __sighandler_t handler);

/* A test may have taken all its memory, and writing needs some. */
static void __attribute__((destructor)) __coverage_make_room(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_AS, &limit);
}

/* Starts the counters anew, so that no count is written twice. */
static void __coverage_write(void)
{
	__coverage_make_room();
	__gcov_dump();
	__gcov_reset();
}

void __wrap__exit(int status)
{
	__coverage_write();
	__real__exit(status);
}

__sighandler_t __wrap_signal(int sig, __sighandler_t handler)
{
	if (handler == SIG_DFL)
		__coverage_write();
	return __real_signal(sig, handler);
}

#endif /* SELFTESTS_COVERAGE_H */
