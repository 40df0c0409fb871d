/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much memory this process has.
 */
#ifndef SELFTESTS_RESIDENT_H
#define SELFTESTS_RESIDENT_H

#include <stdio.h>
#include <stdlib.h>
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

#endif /* SELFTESTS_RESIDENT_H */
