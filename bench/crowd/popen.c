// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A crowd that waits for what a program prints 50 ms after it was started, and
 * for its end
 */
#include "crowd.h"

static void run_program(uint32_t member)
{
	FILE *in = popen("sleep 0.05; echo done", "r");
	char line[16] = "";

	(void)member;
	if (!in || !fgets(line, sizeof(line), in) || strcmp(line, "done\n") ||
	    pclose(in))
		die("popen: %s", strerror(errno));
}

static void among_programs(void)
{
	crowd_run(run_program);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "popen:16", among_programs },
		{ NULL, NULL },
	};

	return crowd_main(argc, argv, cases);
}
