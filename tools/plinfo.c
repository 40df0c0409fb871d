// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * plinfo: what programs that use parklot get on this machine, and why
 *
 * It starts a runtime as they would, with what they would find in the
 * environment, and looks at the device itself for the reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/parklot.h>
#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "mem/valgrind.h"

#define DEVICE "/dev/parklot"

static void row(const char *name, const char *value)
{
	printf("%-12s %s\n", name, value);
}

static void show_device(const struct parklot_query *q)
{
	static const char *const names[] = {
		"crew", "handoff", "pollfd", "uring",
	};
	char features[64] = "";
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (q->features >> i & 1) {
			strcat(features, *features ? " " : "");
			strcat(features, names[i]);
		}
	}
	printf("%-12s abi %u, at most %u lots and %u workers a process\n",
	       "device", q->abi_version, q->max_lots, q->max_workers);
	row("features", *features ? features : "none");
}

/* 0, or why there is no device. */
static int query(struct parklot_query *q)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = ioctl(fd, PARKLOT_IOC_QUERY, q) ? -errno : 0;
	close(fd);
	return ret;
}

static void show_backend(void)
{
	const char *asked = getenv("PARKLOT_BACKEND");
	const bool is_module = pl_runtime_backend() == PL_BACKEND_MODULE;
	struct parklot_query q;
	const int ret = query(&q);

	if (asked)
		row("asked for", asked);
	row("back end", is_module ? "module" : "futex");
	if (ret)
		printf("%-12s %s: %s\n", "device", DEVICE, strerror(-ret));
	else
		show_device(&q);
}

static void show_io(void)
{
	struct io_uring_sqe nop;
	int ret;

	pl_io_sqe_init(&nop);
	ret = pl_io_wait(&nop, PL_FOREVER);
	if (ret && pl__valgrind_is_on())
		row("io_uring", "not under valgrind: I/O waits by epoll");
	else
		row("io_uring", ret ? strerror(-ret) : "yes");
}

/* Two for each stack that has a guard of its own. */
static void show_mappings(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	char line[32] = "";

	if (f && fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = '\0';
	if (f)
		fclose(f);
	row("mappings", *line ? line : "unknown");
}

int main(int argc, char **argv)
{
	struct pl_config config = PL_CONFIG_INIT;
	struct utsname kernel;
	int ret;

	if (argc > 1) {
		const bool asked = !strcmp(argv[1], "--help");

		fputs("Usage: plinfo\n"
		      "What programs that use parklot get on this machine.\n",
		      asked ? stdout : stderr);
		return asked ? 0 : 2;
	}
	row("parklot", PARKLOT_VERSION);
	if (!uname(&kernel))
		row("kernel", kernel.release);
	ret = pl_runtime_start(&config);
	if (ret) {
		fprintf(stderr, "plinfo: no runtime: %s\n", strerror(-ret));
		return 1;
	}
	show_backend();
	show_io();
	show_mappings();
	return pl_runtime_stop() ? 1 : 0;
}
