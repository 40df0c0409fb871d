/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that is noticed to be touched once it is free: by the sanitizers, or,
 * where there is none, since its page is never used again.  rt.h is included
 * before this.
 */
#ifndef SELFTESTS_UAF_PAGE_H
#define SELFTESTS_UAF_PAGE_H

#define FREED_PAGE	65536	/* the largest there is */

static inline void *page_at(void *addr, int prot, int flags)
{
	void *p = mmap(addr, FREED_PAGE, prot,
		       flags | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	return p;
}

/* Zeroed. */
static inline void *new_zeroed(size_t size)
{
	void *p;

	ASSERT_LE(size, FREED_PAGE);
	if (RT_ASAN || RT_TSAN) {
		p = calloc(1, size);
		ASSERT_NE(NULL, p);
		return p;
	}
	return page_at(NULL, PROT_READ | PROT_WRITE, 0);
}

static inline void free_for_good(void *p)
{
	if (RT_ASAN || RT_TSAN)
		free(p);
	else
		page_at(p, PROT_NONE, MAP_FIXED);
}

#endif /* SELFTESTS_UAF_PAGE_H */
