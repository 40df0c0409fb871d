/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: allocations that fail. In half of the operations of some wild teams
 * the n-th allocation, or copy to or from user space, fails, where the kernel
 * is built for that. The team may die of it, and its calls may fail in any way:
 * only the kernel's log shows a fault.
 */
#ifndef SELFTESTS_FUZZ_FAIL_H
#define SELFTESTS_FUZZ_FAIL_H

#include "fuzz.h"
#include "fail_nth.h"

/* For the whole machine, before a round; by root. */
static inline void fail_prepare(void)
{
	static const char *const memory[] = { "failslab", "fail_page_alloc" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(memory); i++) {
		fail_write(memory[i], "verbose", "0");
		fail_write(memory[i], "ignore-gfp-wait", "N");
	}
	fail_write("fail_page_alloc", "min-order", "0");
	fail_write("fail_usercopy", "verbose", "0");
	fail_write("fail_futex", "verbose", "0");
}

/* By the thread itself. From here on, none of its results is foul. */
static inline void fail_open(struct player *p)
{
	if (p->team->is_failing)
		p->fail_fd = open("/proc/thread-self/fail-nth",
				  O_RDWR | O_CLOEXEC);
	p->is_failing = p->fail_fd >= 0;
}

static inline void fail_begin(struct player *p, struct dice *d)
{
	bool is_to_be = once_in(d, 2);
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", 1 + pick(d, 24));

	if (p->is_failing && is_to_be && pwrite(p->fail_fd, text, len, 0) < 0)
		p->is_failing = false;
}

/*
 * The rest of the fault must not hit later calls; this write may be hit itself.
 */
static inline void fail_end(struct player *p)
{
	while (p->is_failing && pwrite(p->fail_fd, "0", 1, 0) != 1)
		;
}

#endif /* SELFTESTS_FUZZ_FAIL_H */
