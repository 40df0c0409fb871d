/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Child processes of tasks.
 *
 * Workers block signals, and a child process begins with the signal mask of the
 * thread that created it: it would ignore SIGTERM.  So in files that include
 * <parklot.h>, popen(), posix_spawn() and posix_spawnp() are the functions
 * below; in files that do not, by the flags of parklot.pc.
 */
#ifndef PARKLOT_CHILD_H
#define PARKLOT_CHILD_H

#include "base.h"

#include <spawn.h>
#include <stdio.h>

PL_BEGIN_DECLS

/**
 * pl_popen() - popen() of the C library, for a child with a program's mask
 * @command: for the shell
 * @mode:    "r" or "w", and "e"
 *
 * In a worker, the child has the signal mask of the thread that started the
 * runtime.  While it is created, the worker may handle signals.
 *
 * Context: any thread.
 * Return: the stream, for pclose(); NULL: errno says why, as with popen().
 */
PL_API FILE *pl_popen(const char *command, const char *mode);

/**
 * pl_posix_spawn() - posix_spawn() of the C library, with a program's mask
 * @pid:     where to put the child's number; may be NULL
 * @path:    of the program
 * @actions: to be done in the child, or NULL
 * @attr:    of the child, or NULL; with POSIX_SPAWN_SETSIGMASK its mask is used
 * @argv:    the arguments, and NULL
 * @envp:    the environment, and NULL
 *
 * Otherwise, in a worker, the child has the signal mask of the thread that
 * started the runtime.
 *
 * Context: any thread.
 * Return: 0 or an errno, positive, as posix_spawn().
 */
PL_API int pl_posix_spawn(pid_t *pid, const char *path,
			  const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[],
			  char *const envp[]);

/** pl_posix_spawnp() - the same for @file, which is looked for in PATH */
PL_API int pl_posix_spawnp(pid_t *pid, const char *file,
			   const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[],
			   char *const envp[]);

#if defined(PL__CHILD_IS_PLAIN)
/* The library itself calls those of the C library. */
#elif defined(__cplusplus)
FILE *popen(const char *, const char *) __asm__("pl_popen");
int posix_spawn(pid_t *, const char *, const posix_spawn_file_actions_t *,
		const posix_spawnattr_t *, char *const[], char *const[])
	__asm__("pl_posix_spawn");
int posix_spawnp(pid_t *, const char *, const posix_spawn_file_actions_t *,
		 const posix_spawnattr_t *, char *const[], char *const[])
	__asm__("pl_posix_spawnp");
#else
# pragma redefine_extname popen pl_popen
# pragma redefine_extname posix_spawn pl_posix_spawn
# pragma redefine_extname posix_spawnp pl_posix_spawnp
#endif

PL_END_DECLS

#endif /* PARKLOT_CHILD_H */
