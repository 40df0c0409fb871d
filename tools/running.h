/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * running: what the workers of another process that have a task do
 *
 * How many compute, and how many are blocked in which call: as /proc says of
 * their threads, at the time of the look.
 */
#ifndef TOOLS_RUNNING_H
#define TOOLS_RUNNING_H

#include "debug/thread_state.h"
#include "peek.h"

#define NR_KINDS 5	/* rows; the rest is added up */

struct kind {
	char		said[64];
	uint32_t	nr;
};

struct running {
	struct kind	kind[NR_KINDS];
	uint32_t	nr_kinds;
	uint32_t	nr_others;
};

/* The offset of a worker's field; false: an older library does not tell. */
static bool find_place(uint32_t *offset, const char *name)
{
	uint32_t i;

	for (i = 0; i < table.nr; i++) {
		if (entries[i].where != PL__EXPORT_PLACE ||
		    strncmp(entries[i].name, name, sizeof(entries[i].name)))
			continue;
		*offset = entries[i].offset;
		return true;
	}
	return false;
}

static void count_kind(struct running *r, const char *said)
{
	uint32_t i;

	for (i = 0; i < r->nr_kinds && strcmp(r->kind[i].said, said); i++)
		;
	if (i == NR_KINDS) {
		r->nr_others++;
		return;
	}
	if (i == r->nr_kinds)
		snprintf(r->kind[r->nr_kinds++].said,
			 sizeof(r->kind[i].said), "%s", said);
	r->kind[i].nr++;
}

static void count_worker(struct running *r, uint64_t worker,
			 uint32_t current_at, uint32_t tid_at)
{
	struct pl__thread_state s;
	uint64_t current;
	char said[64];
	int32_t tid;

	if (!peek(&current, worker + current_at, 8) || !current ||
	    !peek(&tid, worker + tid_at, 4) || !tid)
		return;
	pl__thread_look(&s, pid, tid);
	pl__thread_say(&s, said, sizeof(said));
	if (*said)
		count_kind(r, said);
}

static void print_running(void)
{
	uint32_t current_at, tid_at, nr, i;
	struct running r = { 0 };
	uint64_t workers, worker;

	if (!find_place(&current_at, "current") || !find_place(&tid_at, "tid") ||
	    !peek(&workers, table.rt + table.workers, 8) || !workers ||
	    !peek(&nr, table.rt + table.nr_workers, 4))
		return;
	for (i = 0; i < nr && peek(&worker, workers + i * 8ULL, 8); i++)
		count_worker(&r, worker, current_at, tid_at);
	for (i = 0; i < r.nr_kinds; i++)
		printf("%-8s %7" PRIu32 " %s\n", i ? "" : "running",
		       r.kind[i].nr, r.kind[i].said);
	if (r.nr_others)
		printf("%-8s %7" PRIu32 " in other calls\n", "", r.nr_others);
}

#endif /* TOOLS_RUNNING_H */
