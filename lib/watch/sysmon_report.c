/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sysmon_report: reports that max_workers workers are blocked while tasks wait
 *
 * Or that as many are as the kernel lets the process start.  Some of them may
 * compute instead, for so long that they are stalled; pace.h has what is told
 * if all do.
 *
 * Or all but those that run other tasks, while tasks wait that are set aside:
 * there is no spare for these.
 */
#include "watch/watch.h"
#include "queue/aside.h"
#include "run/run.h"
#include "base/sys.h"

#include <string.h>

#define ALL_BLOCKED_NS	(100 * 1000 * 1000ULL)	/* before it is reported */

/*
 * The task may end while this thread reads its stack, which has the name, and
 * the stack may be given back: then the result is not used.
 */
__attribute__((noinline, no_sanitize_thread))
static bool name_of_task(struct pl__worker *w, char name[16])
{
	struct pl__task *volatile *current = &w->current;
	uint32_t tick = load_acquire(&w->tick);
	struct pl__task *t = *current;
	struct pl__stack *st;

	st = t ? *(struct pl__stack *volatile *)&t->stack : NULL;
	if (!st || !pl__read_own_mem(name, st->user.name, 16))
		return false;
	name[15] = '\0';
	pl__full_barrier();
	return tick == load_relaxed(&w->tick) && *current == t;
}

#define NR_NAMES	8

struct names {
	char			name[NR_NAMES][16];
	uint32_t		count[NR_NAMES];
	uint32_t		nr;
	uint32_t		nr_others;
};

static void add_name(struct names *n, const char *name)
{
	uint32_t i;

	for (i = 0; i < n->nr && strcmp(n->name[i], name); i++)
		;
	if (i == NR_NAMES) {
		n->nr_others++;
		return;
	}
	if (i == n->nr) {
		strcpy(n->name[i], name);
		n->nr++;
	}
	n->count[i]++;
}

static void count_names(struct pl__group *g, struct names *n)
{
	uint32_t nr = load_acquire(&g->nr_started), i;
	struct pl__worker *w;
	char name[16];

	for (i = 0; i < nr; i++) {
		w = g->workers[i];
		if (!pl__is_stalled(w) && name_of_task(w, name))
			add_name(n, *name ? name : "(unnamed)");
	}
}

/*
 * False: stderr takes nothing now, perhaps since all workers wait for just
 * that.
 */
static bool report_print(struct pl__group *g)
{
	struct names n = { .nr = 0 };
	int err = -load_relaxed(&g->start_error);
	char text[NR_NAMES * 32 + 224];
	size_t len, i;

	count_names(g, &n);
	if (err)
		len = (size_t)snprintf(text, sizeof(text),
				       "parklot: no worker can be started (%.60s): ready tasks wait, and workers are blocked in calls of:",
				       strerror(err));
	else
		len = (size_t)snprintf(text, sizeof(text),
				       "parklot: max_workers, %u, are too few: ready tasks wait, and workers are blocked in calls of:",
				       g->max_workers);
	for (i = 0; i < n.nr; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s %u %s", i ? "," : "", n.count[i],
					n.name[i]);
	if (n.nr_others)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					", %u others", n.nr_others);
	if (*g->name)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"; in group %s", g->name);
	text[len++] = '\n';
	return pl__fd_try_write(2, text, len) != -EAGAIN;
}

static bool are_too_many_blocked(struct pl__group *g)
{
	return (!pl__nr_running(g) || pl__aside_nr(g)) &&
	       !load_relaxed(&g->nr_idle) &&
	       pl__nr_blocked(g) && !load_relaxed(&g->nr_in_hook) &&
	       (load_relaxed(&g->nr_alive) == g->max_workers ||
		load_relaxed(&g->start_error));
}

/*
 * Called where tasks wait, but no worker is left to notify for them.  Of short
 * calls, each look finds others; tasks wait for workers all the same.
 */
void pl__sysmon_report(struct pl__group *g, uint64_t now, bool has_work)
{
	if (!has_work || !are_too_many_blocked(g)) {
		g->report.since_ns = 0;
		g->report.is_counted = false;
		return;
	}
	if (!g->report.since_ns)
		g->report.since_ns = now;
	if (now - g->report.since_ns < ALL_BLOCKED_NS)
		return;
	if (!g->report.has_printed)
		g->report.has_printed = report_print(g);
	/*
	 * Counts afterwards: a program that sees the count may end the block.
	 */
	if (!g->report.is_counted)
		counter_inc(&pl__rt.nr_all_blocked);
	g->report.is_counted = true;
}
