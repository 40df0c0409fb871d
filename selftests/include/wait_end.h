/* SPDX-License-Identifier: GPL-2.0-only */
/* What ended a wait that several events may end, by the wait's return value. */
#ifndef SELFTESTS_WAIT_END_H
#define SELFTESTS_WAIT_END_H

#include <errno.h>

enum wait_end { BY_WAKE, BY_DEADLINE, BY_INTERRUPT, BY_CANCEL, BY_NONE };

#define NR_WAIT_ENDS	(BY_NONE + 1)

static inline enum wait_end wait_end_of(int ret)
{
	switch (ret) {
	case -ETIMEDOUT:
		return BY_DEADLINE;
	case -EINTR:
		return BY_INTERRUPT;
	case -ECANCELED:
		return BY_CANCEL;
	}
	return ret < 0 ? BY_NONE : BY_WAKE;
}

#endif /* SELFTESTS_WAIT_END_H */
