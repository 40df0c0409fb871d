/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process without the privileges of root, to which limits apply
 */
#ifndef SELFTESTS_NOBODY_H
#define SELFTESTS_NOBODY_H

#include <grp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NOBODY		65534

/* The process stays dumpable, so it may still open its own files in /proc. */
static inline bool become_nobody(void)
{
	if (geteuid())
		return true;
	return !setgroups(0, NULL) &&
	       !setresgid(NOBODY, NOBODY, NOBODY) &&
	       !setresuid(NOBODY, NOBODY, NOBODY) &&
	       !prctl(PR_SET_DUMPABLE, 1);
}

#endif /* SELFTESTS_NOBODY_H */
