/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's own fault injection (Documentation/fault-injection): of what a
 * thread's next system call asks for, the n-th allocation or copy fails, alone
 * or with all allocations after it. Root, and a kernel built for it. After the
 * harness.
 */
#ifndef SELFTESTS_FAIL_NTH_H
#define SELFTESTS_FAIL_NTH_H

#include <fcntl.h>
#include "mod.h"

#define FAIL_DIR	"/sys/kernel/debug"

/* One thread's; to be opened before it gives up being root. */
struct fail_nth {
	int	fd;		/* which one fails */
	int	all_fd;		/* do all that come after it? For root only. */
	bool	is_all;
};

static inline bool fail_write(const char *dir, const char *name,
			      const char *text)
{
	char path[96];
	bool is_written;
	int fd;

	snprintf(path, sizeof(path), FAIL_DIR "/%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	is_written = fd >= 0 && write(fd, text, strlen(text)) > 0;
	close(fd);
	return is_written;
}

/*
 * What sleeps may fail too, the single page too; nothing is logged. Of all
 * that comes after the n-th only allocations fail, and of who asks for it.
 */
static inline bool fail_set_up(struct fail_nth *f)
{
	static const char *const memory[] = { "failslab", "fail_page_alloc" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(memory); i++)
		if (!fail_write(memory[i], "verbose", "0") ||
		    !fail_write(memory[i], "task-filter", "Y") ||
		    !fail_write(memory[i], "times", "-1") ||
		    !fail_write(memory[i], "ignore-gfp-wait", "N") ||
		    !fail_write(memory[i], "probability", "100"))
			return false;
	if (!fail_write("fail_page_alloc", "min-order", "0") ||
	    !fail_write("fail_page_alloc", "ignore-gfp-highmem", "N") ||
	    !fail_write("fail_usercopy", "verbose", "0") ||
	    !fail_write("fail_futex", "verbose", "0"))
		return false;
	f->fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	f->all_fd = open("/proc/thread-self/make-it-fail", O_RDWR | O_CLOEXEC);
	/* Else a page fault might be what fails, again and again. */
	return f->fd >= 0 && f->all_fd >= 0 && !mlockall(MCL_CURRENT);
}

static inline void fail_set(int fd, unsigned int value)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", value);

	if (pwrite(fd, text, len, 0) != len)
		abort();
}

/* From here on as few system calls as can be; @nth counts from 1. */
static inline void fail_arm(struct fail_nth *f, unsigned int nth,
			    bool and_all_after)
{
	f->is_all = and_all_after;
	if (f->is_all)
		fail_set(f->all_fd, 1);
	fail_set(f->fd, nth);
}

/* How many were left until one would have failed; 0 if one has. */
static inline unsigned int fail_disarm(struct fail_nth *f)
{
	char text[16] = "";
	/* If it fails, then because the next copy was to. */
	bool is_next = pread(f->fd, text, sizeof(text) - 1, 0) < 0;
	unsigned int left = is_next ? 1 : atoi(text);

	/* So may these, and are done by then. */
	while (f->is_all && pwrite(f->all_fd, "0", 1, 0) != 1)
		;
	while (pwrite(f->fd, "0", 1, 0) != 1)
		;
	return left;
}

#endif /* SELFTESTS_FAIL_NTH_H */
