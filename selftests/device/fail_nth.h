/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's own fault injection (Documentation/fault-injection): the n-th
 * allocation or copy of a thread's next system call fails, alone or with all
 * allocations after it. Needs root and a kernel with fault injection. The
 * harness is included before this header.
 */
#ifndef SELFTESTS_FAIL_NTH_H
#define SELFTESTS_FAIL_NTH_H

#include <fcntl.h>
#include "mod.h"

#define FAIL_DIR	"/sys/kernel/debug"

/* Of one thread; to be opened before the thread gives up root. */
struct fail_nth {
	int	fd;		/* fail-nth of the thread */
	int	all_fd;		/* make-it-fail of the thread; for root only */
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
 * Allocations that may sleep and single pages fail too; the kernel logs
 * nothing. After the n-th, only allocations of the thread that asked for it
 * fail.
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
	/*
	 * Otherwise a page fault might be the call that fails, again and again.
	 */
	return f->fd >= 0 && f->all_fd >= 0 && !mlockall(MCL_CURRENT);
}

static inline void fail_set(int fd, unsigned int value)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", value);

	if (pwrite(fd, text, len, 0) != len)
		abort();
}

/*
 * From here on the thread makes as few system calls as possible; @nth counts
 * from 1.
 */
static inline void fail_arm(struct fail_nth *f, unsigned int nth,
			    bool and_all_after)
{
	f->is_all = and_all_after;
	if (f->is_all)
		fail_set(f->all_fd, 1);
	fail_set(f->fd, nth);
}

/* Returns how many were left before the one to fail; 0: one has failed. */
static inline unsigned int fail_disarm(struct fail_nth *f)
{
	char text[16] = "";
	/* If this read fails, the next copy was the one to fail. */
	bool is_next = pread(f->fd, text, sizeof(text) - 1, 0) < 0;
	unsigned int left = is_next ? 1 : atoi(text);

	/* These reads may fail too, and have consumed the fault then. */
	while (f->is_all && pwrite(f->all_fd, "0", 1, 0) != 1)
		;
	while (pwrite(f->fd, "0", 1, 0) != 1)
		;
	return left;
}

#endif /* SELFTESTS_FAIL_NTH_H */
