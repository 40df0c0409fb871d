/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Addresses, the same in each run, and those of the C library's functions. */
#include "sim/sim.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <unistd.h>

#define NUMBERS_BITS	20

/*
 * Before main(): a program that makes something of an address, such as a random
 * number, does the same in each run.  Where it is forbidden, it does not.
 */
static void __attribute__((constructor(101)))
fix_addresses(int argc, char **argv, char **envp)
{
	int now = personality(0xffffffff);
	char path[4096];
	ssize_t n;

	(void)argc;
	if (now < 0 || now & ADDR_NO_RANDOMIZE)
		return;
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n <= 0 || personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0)
		return;
	path[n] = '\0';
	execve(path, argv, envp);
}

void *pl__sim_symbol(const char *name)
{
	void *p = dlsym(RTLD_NEXT, name);

	if (!p) {
		dprintf(STDERR_FILENO, "sim: the C library has no %s()\n",
			name);
		abort();
	}
	return p;
}

uint64_t pl__sim_number(const void *address)
{
	static struct {
		const void	*address;
		uint32_t	number;
	} numbers[1U << NUMBERS_BITS];
	static uint32_t nr;
	uint32_t i = (uint32_t)((uintptr_t)address * 0x9e3779b97f4a7c15ULL >>
				(64 - NUMBERS_BITS));

	for (;; i = (i + 1) % (1U << NUMBERS_BITS)) {
		if (numbers[i].address == address)
			return (uint64_t)numbers[i].number << 6;
		if (!numbers[i].address)
			break;
	}
	/* Half full: numbers of later addresses are all the same. */
	if (nr < 1U << (NUMBERS_BITS - 1)) {
		numbers[i].address = address;
		numbers[i].number = ++nr;
	}
	return (uint64_t)nr << 6;
}
