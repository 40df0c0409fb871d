/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "base/atfork.h"

#include "base/sys.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

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

/*
 * Whole pages are given back, so that they read as zeroes; an emulator may
 * return success without doing so.
 */
void pl__atfork_zero(void *table, size_t size)
{
	uintptr_t page = pl__page_size();
	uintptr_t begin = (uintptr_t)table, end = begin + size;
	uintptr_t first = (begin + page - 1) & ~(page - 1);
	uintptr_t last = end & ~(page - 1);
	volatile char *probe = (volatile char *)first;

	if (first >= last) {
		memset(table, 0, size);
		return;
	}
	memset(table, 0, first - begin);
	memset((void *)last, 0, end - last);
	*probe = 1;
	pl__advise((void *)first, last - first, MADV_DONTNEED);
	if (*probe)
		memset((void *)first, 0, last - first);
}
