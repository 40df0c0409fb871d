/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * running: what the workers of another process that have a task do
 *
 * How many compute, and how many are blocked in which call: as /proc says of
 * their threads, at the time of the look; and since when.  The process notes
 * when it first saw a worker as it is (lib/watch/watch.h), as far as it looks;
 * so each look here is noted as well.
 */
#ifndef TOOLS_RUNNING_H
#define TOOLS_RUNNING_H

#include "debug/thread_state.h"
#include "peek.h"
#include "watch/since_note.h"

#define NR_KINDS	64	/* calls that are told apart */
#define NR_SHOWN	5	/* rows of calls; the rest is added up */

/* What is read of a worker, in its process. */
struct look {
	uint64_t	current;
	uint32_t	tick;
	int32_t		tid;
	uint64_t	task_since;
	uint64_t	ran_since;
};

static const struct {
	const char	*name;
	size_t		at, size;
	bool		is_needed;	/* older libraries lack the others */
} places[] = {
#define LOOK(field, said, is) \
	{ said, offsetof(struct look, field), \
	  sizeof(((struct look *)0)->field), is }
	LOOK(current, "current", true),
	LOOK(tid, "tid", true),
	LOOK(tick, "tick", false),
	LOOK(task_since, "sysmon.task_since", false),
	LOOK(ran_since, "sysmon.ran_since", false),
#undef LOOK
};

#define NR_PLACES	(sizeof(places) / sizeof(*places))

/* The same notes as a worker has, of looks from here. */
struct notes {
	uint64_t	task_since;
	uint64_t	ran_since;
};

struct kind {
	char		said[64];
	uint32_t	nr;
	uint32_t	ms;		/* that one does it, at least */
};

struct running {
	struct kind	computes;
	struct kind	others;
	struct kind	kind[NR_KINDS];
	uint32_t	nr_kinds;
	/* Of each place, its offset in a worker; -1: not told. */
	int64_t		offset[NR_PLACES];
};

static bool find_places(struct running *r)
{
	uint32_t i;
	size_t k;

	for (k = 0; k < NR_PLACES; k++) {
		r->offset[k] = -1;
		for (i = 0; i < table.nr; i++)
			if (entries[i].where == PL__EXPORT_PLACE &&
			    !strncmp(entries[i].name, places[k].name,
				     sizeof(entries[i].name)))
				r->offset[k] = entries[i].offset;
		if (places[k].is_needed && r->offset[k] < 0)
			return false;
	}
	return true;
}

static bool look_at_worker(struct look *l, const struct running *r,
			   uint64_t worker)
{
	size_t k;

	memset(l, 0, sizeof(*l));
	for (k = 0; k < NR_PLACES; k++)
		if (r->offset[k] >= 0 &&
		    !peek((char *)l + places[k].at,
			  worker + (uint64_t)r->offset[k], places[k].size))
			return false;
	return l->current && l->tid;
}

/* ns of processor time that a thread has used; 0: the kernel does not say. */
static uint64_t cpu_ns_of(int tid)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	fclose(f);
	return ns;
}

/* ms by the note of the process, or by ours, which begins if there is none. */
static uint32_t ms_since(uint64_t theirs, uint64_t *ours, uint32_t key,
			 uint64_t now)
{
	uint32_t ms = pl__since_ms(theirs, key, now);
	uint32_t own_ms = pl__since_ms(*ours, key, now);

	if (!pl__since_is_of(*ours, key))
		*ours = pl__since_note(key, now);
	return ms > own_ms ? ms : own_ms;
}

/* For how long the worker has been in its task, or has not run. */
static uint32_t ms_of_worker(const struct look *l, struct notes *notes,
			     enum pl__thread_is is)
{
	uint64_t now = now_ns(), cpu_ns = cpu_ns_of(l->tid);
	uint32_t task_ms, ran_ms;

	task_ms = ms_since(l->task_since, &notes->task_since,
			   pl__since_task_key(l->tick, l->current), now);
	ran_ms = ms_since(l->ran_since, &notes->ran_since, (uint32_t)cpu_ns,
			  now);
	if (is == PL__THREAD_COMPUTES)
		return task_ms;
	return is == PL__THREAD_BLOCKED && cpu_ns ? ran_ms : 0;
}

static struct kind *kind_of(struct running *r, enum pl__thread_is is,
			    const char *said)
{
	uint32_t i;

	if (is == PL__THREAD_COMPUTES)
		return &r->computes;
	for (i = 0; i < r->nr_kinds; i++)
		if (!strcmp(r->kind[i].said, said))
			return &r->kind[i];
	return i < NR_KINDS ? &r->kind[r->nr_kinds++] : &r->others;
}

static void count_worker(struct running *r, uint64_t worker,
			 struct notes *notes)
{
	struct pl__thread_state s;
	struct look before, after;
	struct kind *kind;
	char said[64];
	uint32_t ms;

	if (!look_at_worker(&before, r, worker))
		return;
	pl__thread_look(&s, pid, before.tid);
	pl__thread_say(&s, said, sizeof(said));
	if (!*said)
		return;
	ms = ms_of_worker(&before, notes, s.is);
	kind = kind_of(r, s.is, said);
	snprintf(kind->said, sizeof(kind->said), "%s", said);
	kind->nr++;
	/* It may have gone on to another task meanwhile. */
	if (ms > kind->ms && look_at_worker(&after, r, worker) &&
	    after.tick == before.tick && after.current == before.current)
		kind->ms = ms;
}

static void print_kind(const struct kind *kind, const char *said,
		       const char **title)
{
	if (!kind->nr)
		return;
	printf("%-8s %7" PRIu32 " %s", *title, kind->nr, said);
	*title = "";
	if (kind->ms)
		printf(", %ssince %.1f s", kind->nr > 1 ? "one " : "",
		       (double)kind->ms / 1000);
	putchar('\n');
}

/* Calls with the most workers first. */
static int compare_kinds(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	return x->nr == y->nr ? strcmp(x->said, y->said) :
				(x->nr < y->nr) - (x->nr > y->nr);
}

static void print_kinds(struct running *r)
{
	const char *title = "running";
	uint32_t i;

	qsort(r->kind, r->nr_kinds, sizeof(*r->kind), compare_kinds);
	print_kind(&r->computes, "computes", &title);
	for (i = 0; i < r->nr_kinds; i++) {
		if (i < NR_SHOWN) {
			print_kind(&r->kind[i], r->kind[i].said, &title);
			continue;
		}
		r->others.nr += r->kind[i].nr;
		if (r->others.ms < r->kind[i].ms)
			r->others.ms = r->kind[i].ms;
	}
	print_kind(&r->others, "in other calls", &title);
}

static void print_running(void)
{
	static struct notes notes[NR_WORKERS_MAX];
	struct running r = { 0 };
	uint64_t workers, worker;
	uint32_t nr, i;

	if (!find_places(&r) ||
	    !peek(&workers, table.rt + table.workers, 8) || !workers ||
	    !peek(&nr, table.rt + table.nr_workers, 4))
		return;
	for (i = 0; i < nr && i < NR_WORKERS_MAX; i++)
		if (peek(&worker, workers + i * 8ULL, 8))
			count_worker(&r, worker, &notes[i]);
	print_kinds(&r);
}

#endif /* TOOLS_RUNNING_H */
