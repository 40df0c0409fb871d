// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A program of today's header, for a library of which each struct that begins
 * with its size has grown: it is served, and written to no further than it
 * knows.
 */
#include <parklot.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MARK	0x5a

/* A struct of today, and what the program has behind it. */
#define WITH_MARKS(type) \
	union { \
		struct type	of; \
		unsigned char	bytes[sizeof(struct type) + 64]; \
	}

static int failed(const char *what)
{
	fprintf(stderr, "sizes: %s\n", what);
	return 1;
}

static int is_overwritten(const unsigned char *bytes, size_t size)
{
	size_t i;

	for (i = 0; i < 64; i++)
		if (bytes[size + i] != MARK)
			return 1;
	return 0;
}

/* Sets @u to @init, with marks behind it. */
#define SET(u, init) do { \
	memset((u).bytes, MARK, sizeof((u).bytes)); \
	(u).of = init; \
} while (0)

#define IS_OVERWRITTEN(u)	is_overwritten((u).bytes, sizeof((u).of))

static struct pl_latch shielded = PL_LATCH_INIT(1), released = PL_LATCH_INIT(1);

/* The stop does not reach it there. */
static void wait_shielded(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	(void)arg;
	if (pl_scope_enter(&s, PL_FOREVER, PL_SCOPE_SHIELD)) {
		pl_latch_done(&shielded);
		return;
	}
	pl_latch_done(&shielded);
	pl_latch_wait(&released);
	pl_scope_leave(&s);
}

static int start(void)
{
	WITH_MARKS(pl_config) cfg;
	WITH_MARKS(pl_spawn_opts) opts;
	pl_task_t t;

	SET(cfg, PL_CONFIG_INIT);
	SET(opts, PL_SPAWN_OPTS_INIT);
	if (pl_runtime_start(&cfg.of))
		return failed("the runtime does not start");
	if (pl_spawn(&t, wait_shielded, NULL, &opts.of))
		return failed("no task with options");
	if (IS_OVERWRITTEN(cfg) || IS_OVERWRITTEN(opts))
		return failed("options were written to");
	if (pl_latch_wait(&shielded))
		return failed("the task did not begin");
	return 0;
}

static int count(void)
{
	WITH_MARKS(pl_stat) st;
	WITH_MARKS(pl_stat_worker) sw;
	WITH_MARKS(pl_queue_delay) qd;
	int ret;

	SET(st, PL_STAT_INIT);
	SET(sw, PL_STAT_WORKER_INIT);
	SET(qd, PL_QUEUE_DELAY_INIT);
	if (pl_stat_read(&st.of) || IS_OVERWRITTEN(st))
		return failed("pl_stat_read()");
	if (pl_stat_worker(0, &sw.of) || IS_OVERWRITTEN(sw))
		return failed("pl_stat_worker()");
	ret = pl_queue_delay(&qd.of);
	if ((ret && ret != -ENODATA) || IS_OVERWRITTEN(qd))
		return failed("pl_queue_delay()");
	return 0;
}

static int group(void)
{
	WITH_MARKS(pl_group_config) cfg;
	WITH_MARKS(pl_group_stat) st;
	pl_group_t g;

	SET(cfg, PL_GROUP_CONFIG_INIT);
	SET(st, PL_GROUP_STAT_INIT);
	if (pl_group_create(&g, &cfg.of) || IS_OVERWRITTEN(cfg))
		return failed("pl_group_create()");
	if (pl_group_stat(g, &st.of) || IS_OVERWRITTEN(st))
		return failed("pl_group_stat()");
	return 0;
}

static int stop(void)
{
	WITH_MARKS(pl_stop_report) r;

	SET(r, PL_STOP_REPORT_INIT);
	if (pl_runtime_stop_until(0, &r.of) != -ETIMEDOUT ||
	    r.of.nr_left != 1 || IS_OVERWRITTEN(r))
		return failed("pl_runtime_stop_until()");
	pl_latch_done(&released);
	return pl_runtime_stop();
}

int main(void)
{
	return start() || count() || group() || stop();
}
