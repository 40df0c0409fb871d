// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A pipeline: stages are tasks, and channels lead from one to the next
 *
 * Main cuts standard input into lines, four tasks look for the word, one
 * counts.  Channels are bounded: a stage that is too fast waits, so that memory
 * does not depend on the input.  A stage that is done closes its channel, and
 * the next one sees that when it has received all.
 *
 *	$ pipeline task <README.md
 *	19 of 202 lines have 'task'
 */
#include "usage.h"

#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NR_LOOKING	4
#define ROOM		64

struct pipeline {
	const char	*word;
	struct pl_chan	*lines;		/* char *, the receiver's */
	struct pl_chan	*found;		/* char *, or NULL: not in there */
	struct pl_latch	looking;	/* tasks of the second stage */
	size_t		nr_lines, nr_found;
};

/* Not a task: getline() would block its worker. */
static void cut(struct pipeline *p)
{
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		if (pl_chan_send(p->lines, line))
			break;
		line = NULL;
		size = 0;
	}
	free(line);
	pl_chan_close(p->lines);
}

static void look(void *arg)
{
	struct pipeline *p = arg;
	void *line;

	while (!pl_chan_recv(p->lines, &line)) {
		if (!strstr(line, p->word)) {
			free(line);
			line = NULL;
		}
		if (pl_chan_send(p->found, line))
			free(line);
	}
	pl_latch_done(&p->looking);
}

static void count(void *arg)
{
	struct pipeline *p = arg;
	void *line;

	while (!pl_chan_recv(p->found, &line)) {
		p->nr_lines++;
		p->nr_found += line != NULL;
		free(line);
	}
}

/* The second stage is done when each of its tasks is. */
static int run(struct pipeline *p)
{
	pl_task_t counting;
	int i;

	pl_latch_init(&p->looking, NR_LOOKING);
	for (i = 0; i < NR_LOOKING; i++)
		if (pl_spawn(NULL, look, p, NULL))
			return -1;
	if (pl_spawn(&counting, count, p, NULL))
		return -1;
	cut(p);
	if (pl_latch_wait(&p->looking))
		return -1;
	pl_chan_close(p->found);
	return pl_join(counting);
}

int main(int argc, char **argv)
{
	static const char usage[] = "pipeline WORD <FILE";
	struct pipeline p = { 0 };

	p.word = *usage_arguments(argc, argv, 1, usage);
	if (!p.word)
		usage_exit('?', usage);
	if (pl_chan_create(&p.lines, ROOM) || pl_chan_create(&p.found, ROOM))
		return 1;
	if (run(&p))
		return 1;
	printf("%zu of %zu lines have '%s'\n", p.nr_found, p.nr_lines, p.word);
	pl_chan_destroy(p.lines);
	pl_chan_destroy(p.found);
	return pl_runtime_stop() ? 1 : 0;
}
