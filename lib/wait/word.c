/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "wait/wait.h"

int pl_word_wait(struct pl_word *w, uint32_t expected, uint64_t deadline_ns)
{
	int ret = w ? pl__wait_pending() : -EINVAL;

	return ret ? ret : pl__wait(&w->value, expected, deadline_ns,
				   PL__FOR_WORD);
}

__pl_no_frame
int pl_word_wake(struct pl_word *w, uint32_t nr)
{
	return w ? (int)pl__wake(&w->value, nr) : -EINVAL;
}

int pl_word_requeue(struct pl_word *from, struct pl_word *to, uint32_t nr_wake,
		    uint32_t nr_move)
{
	if (!from || !to || from == to)
		return -EINVAL;
	return (int)pl__requeue(&from->value, &to->value, nr_wake, nr_move);
}
