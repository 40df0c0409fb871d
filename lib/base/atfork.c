/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "base/atfork.h"

#include <pthread.h>

static struct pl__atfork *all;
static _Atomic bool is_installed;

static void in_child(void)
{
	struct pl__atfork *f;

	for (f = all; f; f = f->next)
		f->fn();
}

void pl__atfork_add(struct pl__atfork *f)
{
	f->next = all;
	all = f;
	/*
	 * If this fails, pl__atfork_install() is called again before there is
	 * any state.
	 */
	pl__atfork_install();
}

int pl__atfork_install(void)
{
	int ret = 0;

	if (!atomic_exchange(&is_installed, true)) {
		ret = -pthread_atfork(NULL, NULL, in_child);
		if (ret)
			atomic_store(&is_installed, false);
	}
	return ret;
}
