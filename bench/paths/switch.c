// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * One stack switch, with nothing around it
 *
 * What a scheduler's switch cannot be faster than. The only benchmark that
 * looks below the public interface, where no such thing is to be had.
 */
#include "ctx/switch.h"

#include "../lib/bench.h"

#define NR	5000000

static struct pl__ctx here, there;

static void bounce(void *arg)
{
	(void)arg;
	for (;;)
		pl__ctx_switch(&there, &here);
}

static void one(void)
{
	static _Alignas(64) char stack[16384];
	int i;

	pl__ctx_thread(&here);
	pl__ctx_init(&there, stack, sizeof(stack), bounce, NULL);
	for (i = 0; i < 1000; i++)
		pl__ctx_switch(&here, &there);

	bench_begin();
	for (i = 0; i < NR; i++)
		pl__ctx_switch(&here, &there);
	bench_put_busy("one", 2.0 * NR);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "one", one },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "switch", cases);
}
