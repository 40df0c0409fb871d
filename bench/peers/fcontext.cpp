// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Boost.Context's own switch, without the classes around it
 */
#include <boost/context/detail/fcontext.hpp>

#include "../lib/bench.h"

#define NR	5000000

using namespace boost::context::detail;

static void bounce(transfer_t t)
{
	for (;;)
		t = jump_fcontext(t.fctx, nullptr);
}

static void one(void)
{
	alignas(64) static char stack[16384];
	transfer_t t = { make_fcontext(stack + sizeof(stack), sizeof(stack),
				       bounce), nullptr };

	for (int i = 0; i < 1000; i++)
		t = jump_fcontext(t.fctx, nullptr);
	bench_begin();
	for (int i = 0; i < NR; i++)
		t = jump_fcontext(t.fctx, nullptr);
	bench_put_busy("one", 2.0 * NR);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "one", one },
		{ NULL, NULL },
	};
	static const struct bench_subject subjects[] = {
		{ "switch", cases },
		{ NULL, NULL },
	};

	return bench_main_of(argc, argv, subjects);
}
