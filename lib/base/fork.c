/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "base/fork.h"

#include <pthread.h>

static struct pl__forget *all;
static _Atomic bool is_watched;

static void in_child(void)
{
	struct pl__forget *f;

	for (f = all; f; f = f->next)
		f->fn();
}

void pl__fork_add(struct pl__forget *f)
{
	f->next = all;
	all = f;
	/* Refused, it is tried again before there is anything to forget. */
	pl__fork_watch();
}

int pl__fork_watch(void)
{
	int ret = 0;

	if (!atomic_exchange(&is_watched, true)) {
		ret = -pthread_atfork(NULL, NULL, in_child);
		if (ret)
			atomic_store(&is_watched, false);
	}
	return ret;
}
