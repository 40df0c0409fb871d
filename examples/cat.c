// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * cat: one task reads files, another writes what was read
 *
 * Blocks go round by two channels, full ones to the writer and empty ones back,
 * so that the next is read while one is written. Neither waits for a file, a
 * pipe or a terminal in any other way than by letting other tasks run.
 */
#include "usage.h"

#include <errno.h>
#include <fcntl.h>
#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR_BLOCKS	4
#define BLOCK_SIZE	(64 * 1024)

struct block {
	size_t size;
	char data[BLOCK_SIZE];
};

struct cat {
	struct pl_chan *full, *empty;
	char **names;		/* up to NULL */
	bool has_failed;
};

static void complain(struct cat *cat, const char *name, int err)
{
	fprintf(stderr, "cat: %s: %s\n", name, strerror(-err));
	cat->has_failed = true;
}

/* Until the file ends; false: nobody takes what is read any more. */
static bool read_file(struct cat *cat, const char *name, int fd)
{
	struct block *b;
	void *item;
	ssize_t n;

	for (;;) {
		if (pl_chan_recv(cat->empty, &item))
			return false;
		b = item;
		n = pl_read(fd, b->data, BLOCK_SIZE);
		if (n <= 0)
			break;
		b->size = (size_t)n;
		if (pl_chan_send(cat->full, b))
			return false;
	}
	if (n < 0)
		complain(cat, name, (int)n);
	return !pl_chan_send(cat->empty, b);
}

static void read_all(void *arg)
{
	struct cat *cat = arg;
	bool goes_on = true;
	char **name;
	int fd;

	for (name = cat->names; *name && goes_on; name++) {
		fd = strcmp(*name, "-") ? open(*name, O_RDONLY | O_CLOEXEC) :
					  dup(STDIN_FILENO);
		if (fd < 0) {
			complain(cat, *name, -errno);
			continue;
		}
		goes_on = read_file(cat, *name, fd);
		pl_close(fd);
	}
	pl_chan_close(cat->full);
}

static int write_block(const struct block *b)
{
	size_t done = 0;
	ssize_t n;

	while (done < b->size) {
		n = pl_write(STDOUT_FILENO, b->data + done, b->size - done);
		if (n < 0)
			return (int)n;
		done += (size_t)n;
	}
	return 0;
}

static void write_all(void *arg)
{
	struct cat *cat = arg;
	void *b;
	int ret = 0;

	while (!ret && !pl_chan_recv(cat->full, &b)) {
		ret = write_block(b);
		pl_chan_send(cat->empty, b);
	}
	if (ret)
		complain(cat, "standard output", ret);
	/* The reader ends as well, whatever it is at. */
	pl_chan_close(cat->empty);
	pl_chan_close(cat->full);
}

int main(int argc, char **argv)
{
	static struct block blocks[NR_BLOCKS];
	char *none[] = { (char *)"-", NULL };
	struct cat cat = { 0 };
	pl_task_t reader, writer;
	int i;

	cat.names = usage_arguments(argc, argv, argc, "cat [FILE]...");
	if (!*cat.names)
		cat.names = none;
	if (pl_chan_create(&cat.full, NR_BLOCKS) ||
	    pl_chan_create(&cat.empty, NR_BLOCKS))
		return 1;
	for (i = 0; i < NR_BLOCKS; i++)
		pl_chan_send(cat.empty, &blocks[i]);
	if (pl_spawn(&reader, read_all, &cat, NULL) ||
	    pl_spawn(&writer, write_all, &cat, NULL))
		return 1;
	pl_join(reader);
	pl_join(writer);
	pl_chan_destroy(cat.full);
	pl_chan_destroy(cat.empty);
	return pl_runtime_stop() || cat.has_failed ? 1 : 0;
}
