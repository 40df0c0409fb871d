/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * child: processes that a task creates
 *
 * A child has the signal mask of the thread that started the runtime, as the
 * child of a fork() has.  posix_spawn() takes a mask; popen() does not, so the
 * worker has that mask for as long as it takes.
 */

#define PL__CHILD_IS_PLAIN
#include "base/sys.h"
#include "ctx/self.h"
#include "rt/runtime.h"

#include "parklot.h"

#include <signal.h>

static void child_init_attr(posix_spawnattr_t *own,
			    const posix_spawnattr_t *attr, short *flags)
{
	*flags = 0;
	if (attr) {
		*own = *attr;
		posix_spawnattr_getflags(attr, flags);
	} else {
		posix_spawnattr_init(own);
	}
}

static int child_spawn_masked(__typeof__(posix_spawn) *spawn, pid_t *pid,
			      const char *path,
			      const posix_spawn_file_actions_t *actions,
			      const posix_spawnattr_t *attr,
			      char *const argv[], char *const envp[])
{
	posix_spawnattr_t own;
	sigset_t mask;
	short flags;

	if (!pl__self())
		return spawn(pid, path, actions, attr, argv, envp);
	child_init_attr(&own, attr, &flags);
	if (!(flags & POSIX_SPAWN_SETSIGMASK)) {
		pl__signals_kept(&mask);
		posix_spawnattr_setsigmask(&own, &mask);
		posix_spawnattr_setflags(&own,
					 flags | POSIX_SPAWN_SETSIGMASK);
	}
	return spawn(pid, path, actions, &own, argv, envp);
}

int pl_posix_spawn(pid_t *pid, const char *path,
		   const posix_spawn_file_actions_t *actions,
		   const posix_spawnattr_t *attr, char *const argv[],
		   char *const envp[])
{
	return child_spawn_masked(posix_spawn, pid, path, actions, attr, argv,
				  envp);
}

int pl_posix_spawnp(pid_t *pid, const char *file,
		    const posix_spawn_file_actions_t *actions,
		    const posix_spawnattr_t *attr, char *const argv[],
		    char *const envp[])
{
	return child_spawn_masked(posix_spawnp, pid, file, actions, attr, argv,
				  envp);
}

FILE *pl_popen(const char *command, const char *mode)
{
	sigset_t mask, old;
	FILE *f;

	if (!pl__self())
		return popen(command, mode);
	pl__signals_kept(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, &old);
	f = popen(command, mode);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return f;
}

#ifdef PL_TSAN

void pl__sanitizer_warn(void)
{
}

#else

/* ThreadSanitizer's start, in a program that was built with it. */
void __tsan_init(void) __attribute__((weak));

void pl__sanitizer_warn(void)
{
	static _Atomic bool has_warned;

	if (__tsan_init && !atomic_exchange(&has_warned, true))
		fputs("parklot: ThreadSanitizer does not see what this library orders: link with parklot-tsan, see parklot-debug(7)\n",
		      stderr);
}

#endif
