// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * plinfo: what programs that use parklot get on this machine, and why
 *
 * It starts a runtime as they would, with what they would find in the
 * environment, and looks at the device itself for the reason.
 */
#include "base/base.h"
#include "mem/valgrind.h"

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

#define DEVICE "/dev/parklot"

static void row(const char *name, const char *value)
{
	printf("%-12s %s\n", name, value);
}

static void show_device(const struct parklot_query *q)
{
	static const char *const names[] = {
		"crew", "handoff", "pollfd",
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

/* 0, or why the kernel gives no ring. */
static int try_uring(void)
{
	struct io_uring ring;
	int ret = io_uring_queue_init(1, &ring, 0);

	if (!ret)
		io_uring_queue_exit(&ring);
	return ret;
}

/* The first request makes a worker choose. */
static void show_io(void)
{
	const char *asked = getenv("PARKLOT_IO");
	struct pl_stat st = PL_STAT_INIT;
	struct io_uring_sqe nop;
	int ret, err;

	pl_io_sqe_init(&nop);
	ret = pl_io_wait(&nop, PL_FOREVER);
	err = pl_stat_read(&st);
	row("I/O", err ? strerror(-err) : st.io == PL_IO_URING ? "io_uring" :
	    st.io == PL_IO_POLL ? "epoll" : strerror(-ret));
	if (asked && !strcmp(asked, "poll")) {
		row("io_uring", "not tried: PARKLOT_IO=poll");
		return;
	}
	if (ret && pl__valgrind_is_on()) {
		row("io_uring", "not under valgrind: I/O waits by epoll");
		return;
	}
	err = ret ? try_uring() : 0;
	row("io_uring", err ? strerror(-err) : ret ? strerror(-ret) : "yes");
}

/* What the headers decided that were there when the library was built. */
static void show_build(void)
{
	bool has_probes = false, has_valgrind = false;

#ifdef DTRACE_PROBE
	has_probes = true;
#endif
#ifdef VALGRIND_STACK_REGISTER
	has_valgrind = true;
#endif
	row("probes", has_probes ? "yes" : "no");
	row("valgrind", has_valgrind ? "yes" : "no");
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

static int arguments(int argc, char **argv)
{
	const bool asked = argc == 2 && !strcmp(argv[1], "--help");

	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("plinfo " PARKLOT_VERSION);
		return 0;
	}
	fputs("Usage: plinfo [--help | --version]\n"
	      "What programs that use parklot get on this machine.\n",
	      asked ? stdout : stderr);
	return asked ? 0 : 2;
}

int main(int argc, char **argv)
{
	struct pl_config config = PL_CONFIG_INIT;
	struct utsname kernel;
	int ret;

	if (argc > 1)
		return arguments(argc, argv);
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
	show_build();
	show_mappings();
	return pl_runtime_stop() ? 1 : 0;
}
