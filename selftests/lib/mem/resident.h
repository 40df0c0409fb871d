/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much memory this process has.
 */
#ifndef SELFTESTS_RESIDENT_H
#define SELFTESTS_RESIDENT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Field @nth of /proc/self/statm, in bytes: 0 is all mapped, 1 resident. */
static inline size_t statm(int nth)
{
	unsigned long v[2] = { 0, 0 };
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%lu %lu", &v[0], &v[1]) != 2)
		abort();
	fclose(f);
	return v[nth] * (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * In bytes, of no file.  The kernel's sums for statm are those of CPUs that
 * have not added up lately: what is exact is to count pages.
 */
static inline size_t resident(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	unsigned long kib = 0;
	char line[128];

	if (!f)
		return statm(1);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Anonymous: %lu kB", &kib) == 1)
			break;
	fclose(f);
	return kib * 1024;
}

/* No page of zeroes is there for all that is read before it is written. */
static inline bool reads_take_memory(void)
{
	size_t size = 64 * (size_t)sysconf(_SC_PAGESIZE), before, i;
	volatile char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool take;

	if (p == MAP_FAILED)
		abort();
	before = resident();
	for (i = 0; i < size; i += 64)
		(void)p[i];
	take = resident() - before >= size / 2;
	munmap((void *)p, size);
	return take;
}

#endif /* SELFTESTS_RESIDENT_H */
