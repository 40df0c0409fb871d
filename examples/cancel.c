// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The first answer wins: the other tasks are cancelled, and clean up
 *
 * Each task asks one server, here by sleeping as long as it takes.  A cancelled
 * task is not killed: the call in which it waits returns -ECANCELED, and so
 * does each after that, and it goes the way that it goes for any error.
 *
 *	$ cancel
 *	slow: gave up (Operation canceled)
 *	slower: gave up (Operation canceled)
 *	quick answered
 */
#include "usage.h"

#include <errno.h>
#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND	1000000000ULL
#define NR	3

struct question {
	const char	*server;
	uint64_t	takes_ns;
	struct pl_chan	*answers;
};

static void ask(void *arg)
{
	struct question *q = arg;
	char *buffer = malloc(4096);	/* what there is to clean up */
	int ret = buffer ? pl_sleep(q->takes_ns) : -ENOMEM;

	if (!ret)
		ret = pl_chan_send(q->answers, q);
	if (ret)
		printf("%s: gave up (%s)\n", q->server, strerror(-ret));
	free(buffer);
}

/* All but @winner, and until they are done with what is ours. */
static void call_off(pl_task_t *tasks, struct question *all,
		     const struct question *winner)
{
	int i;

	for (i = 0; i < NR; i++) {
		/* -ESRCH: it has ended by itself, and that is as good. */
		if (&all[i] != winner)
			pl_cancel(tasks[i]);
		while (pl_join(tasks[i]) == -EINTR)
			;
	}
}

int main(int argc, char **argv)
{
	struct question all[NR] = {
		{ .server = "slow", .takes_ns = 3600 * SECOND },
		{ .server = "quick", .takes_ns = SECOND / 100 },
		{ .server = "slower", .takes_ns = 7200 * SECOND },
	};
	struct pl_chan *answers;
	pl_task_t tasks[NR];
	void *first;
	int i, ret;

	usage_arguments(argc, argv, 0, "cancel");
	/* With room for all, so that no answer has to wait for a reader. */
	if (pl_chan_create(&answers, NR))
		return 1;
	for (i = 0; i < NR; i++) {
		all[i].answers = answers;
		if (pl_spawn(&tasks[i], ask, &all[i], NULL))
			return 1;
	}
	/* Nobody waits for ever, not even for the quickest. */
	ret = pl_chan_recv_until(answers, &first, pl_now() + 60 * SECOND);
	call_off(tasks, all, ret ? NULL : first);
	if (!ret)
		printf("%s answered\n", ((struct question *)first)->server);
	pl_chan_destroy(answers);
	return pl_runtime_stop() || ret ? 1 : 0;
}
