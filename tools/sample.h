/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * sample: one look at all that a process counts
 */
#ifndef TOOLS_SAMPLE_H
#define TOOLS_SAMPLE_H

#include "peek.h"
#include "queue/latency.h"

#include <parklot.h>

#define NR_TRIES	100

enum { RUNNING = 2, STOPPING = 3 };	/* of enum pl__rt_state */

struct value {
	char		name[32];
	bool		is_gauge;
	uint64_t	now;
};

#define NR_DELAYS_MAX	4

/* As in latency_hist.h, of all workers. */
struct delays {
	char		name[sizeof(((struct pl__stat_export *)0)->name) + 1];
	uint64_t	bin[PL__LATENCY_BINS];
};

/* What a group of workers has of the sums. */
struct group {
	char		name[16];
	uint64_t	workers, parked, blocked, active;
};

/* One look at all of it. */
struct sample {
	uint64_t	at_ns;
	bool		is_running;
	uint32_t	backend;
	uint32_t	io;		/* enum pl_io */
	uint32_t	nr;
	struct value	value[NR_ENTRIES_MAX];
	uint32_t	nr_delays;
	struct delays	delays[NR_DELAYS_MAX];
	uint32_t	nr_groups;	/* the first is the default */
	struct group	group[PL_GROUPS_MAX];
};

static struct value *value_named(struct sample *s, const char *name)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		if (!strcmp(s->value[i].name, name))
			return &s->value[i];
	return NULL;
}

static uint64_t get(struct sample *s, const char *name)
{
	const struct value *v = value_named(s, name);

	return v ? v->now : 0;
}

static void add(struct sample *s, const char *name, uint8_t flags,
		uint64_t value)
{
	struct value *v = value_named(s, name);

	if (!v && s->nr == NR_ENTRIES_MAX)
		return;
	if (!v) {
		v = &s->value[s->nr++];
		*v = (struct value){ .is_gauge = flags & PL__EXPORT_GAUGE };
		snprintf(v->name, sizeof(v->name), "%s", name);
	}
	v->now += flags & PL__EXPORT_MINUS ? -value : value;
}

static struct delays *delays_named(struct sample *s, const char *name)
{
	struct delays *d = s->delays;

	while (d < s->delays + s->nr_delays && strcmp(d->name, name))
		d++;
	if (d < s->delays + s->nr_delays || s->nr_delays == NR_DELAYS_MAX)
		return d < s->delays + s->nr_delays ? d : NULL;
	s->nr_delays++;
	snprintf(d->name, sizeof(d->name), "%s", name);
	return d;
}

/* False: nothing is mapped there; base 0: of none, that they are named. */
static bool add_delays(struct sample *s, const char *name, uint64_t base)
{
	struct delays *d = delays_named(s, name);
	uint32_t bin[PL__LATENCY_BINS] = { 0 };
	size_t i;

	if (base && !peek(bin, base, sizeof(bin)))
		return false;
	for (i = 0; d && i < PL__LATENCY_BINS; i++)
		d->bin[i] += bin[i];
	return true;
}

/* All entries of one object at @base; @base 0: of none, that they are named. */
static bool add_object(struct sample *s, enum pl__stat_export_where where,
		       uint64_t base)
{
	uint64_t value;
	uint32_t i;

	for (i = 0; i < table.nr; i++) {
		char name[sizeof(entries[i].name) + 1] = "";

		if (entries[i].where != where ||
		    entries[i].size > sizeof(value))
			continue;
		memcpy(name, entries[i].name, sizeof(entries[i].name));
		if (entries[i].flags & PL__EXPORT_HIST) {
			if (!add_delays(s, name,
					base ? base + entries[i].offset : 0))
				return false;
			continue;
		}
		value = 0;
		if (base && !peek(&value, base + entries[i].offset,
				  entries[i].size))
			return false;
		add(s, name, entries[i].flags, value);
	}
	return true;
}

static bool add_workers(struct sample *s, uint64_t workers, uint32_t nr)
{
	uint64_t worker, ring;
	uint32_t i;

	for (i = 0; i < nr && i < NR_WORKERS_MAX; i++) {
		if (!peek(&worker, workers + i * 8ULL, 8) ||
		    !add_object(s, PL__EXPORT_WORKER, worker) ||
		    !peek(&ring, worker + table.ring, 8))
			return false;
		if (ring && (!add_object(s, PL__EXPORT_RING, ring) ||
			     !peek(&s->io, ring + table.ring_kind, 4)))
			return false;
	}
	return true;
}

/* One group of the runtime at @group, to its row and to the sums. */
static bool add_group(struct sample *s, uint64_t group)
{
	static struct sample of_group;
	struct group *g = &s->group[s->nr_groups++];
	const struct value *v = of_group.value;

	memset(&of_group, 0, sizeof(of_group));
	if (!add_object(&of_group, PL__EXPORT_GROUP, group) ||
	    !peek(g->name, group + table.group_name, sizeof(g->name)))
		return false;
	for (; v < of_group.value + of_group.nr; v++)
		add(s, v->name, v->is_gauge ? PL__EXPORT_GAUGE : 0, v->now);
	g->name[sizeof(g->name) - 1] = '\0';
	g->workers = get(&of_group, "workers");
	g->parked = get(&of_group, "workers_parked");
	g->blocked = get(&of_group, "workers_blocked");
	g->active = get(&of_group, "workers_active");
	return true;
}

static bool add_groups(struct sample *s)
{
	uint64_t group;
	uint32_t nr, i;

	if (!peek(&nr, table.rt + table.nr_groups, 4))
		return false;
	for (i = 0; i < nr && i < PL_GROUPS_MAX; i++)
		if (!peek(&group, table.rt + table.groups + i * 8ULL, 8) ||
		    !add_group(s, group))
			return false;
	return true;
}

static bool add_timers(struct sample *s, uint64_t timers)
{
	uint64_t buckets;
	uint32_t nr, i;

	if (!timers)
		return true;
	if (!add_object(s, PL__EXPORT_TIMERS, timers) ||
	    !peek(&buckets, timers + table.buckets, 8) ||
	    !peek(&nr, timers + table.nr_buckets, 4))
		return false;
	for (i = 0; i < nr; i++)
		if (!add_object(s, PL__EXPORT_BUCKET,
				buckets + (uint64_t)i * table.bucket_size))
			return false;
	return true;
}

/* What follows from the others. */
static void add_differences(struct sample *s)
{
	uint64_t ended = get(s, "timers_fired") + get(s, "timers_deleted");
	uint64_t idle = get(s, "workers_parked") + get(s, "workers_blocked");
	static const char *const names[] = {
		"tasks_alive", "timers_alive", "io_in_flight", "workers_running"
	};
	int64_t alive[] = {
		(int64_t)(get(s, "tasks_spawned") - get(s, "tasks_ended")),
		(int64_t)(get(s, "timers_added") - ended),
		(int64_t)(get(s, "io_submitted") - get(s, "io_completed")),
		(int64_t)(get(s, "workers") - idle),
	};
	size_t i;

	/* Each was read at a moment of its own. */
	for (i = 0; i < sizeof(alive) / sizeof(*alive); i++)
		add(s, names[i], PL__EXPORT_GAUGE,
		    alive[i] > 0 ? (uint64_t)alive[i] : 0);
}

/*
 * What @percent of them were below, in ns, since @before if there is one; 0:
 * there were none.
 */
static uint64_t delay_below(const struct delays *before, const struct delays *d,
			    unsigned int percent)
{
	uint64_t nr[PL__LATENCY_BINS], all = 0, sum = 0;
	unsigned int i;

	for (i = 0; i < PL__LATENCY_BINS; i++) {
		nr[i] = d->bin[i];
		if (before && before->bin[i] <= nr[i])
			nr[i] -= before->bin[i];
		all += nr[i];
	}
	for (i = 0; i < PL__LATENCY_BINS && all; i++) {
		sum += nr[i];
		if (sum * 100 >= all * percent)
			return 1ULL << (i + PL__LATENCY_SHIFT);
	}
	return 0;
}

static const unsigned int percents[] = { 50, 99 };

static bool is_in_use(void)
{
	uint32_t state;

	if (!peek(&state, table.rt + table.state, sizeof(state)))
		die("process %d: its runtime cannot be read", pid);
	return state == RUNNING || state == STOPPING;
}

static bool look_at_running(struct sample *s)
{
	uint64_t workers, timers;
	uint32_t nr;

	return peek(&workers, table.rt + table.workers, 8) &&
	       peek(&nr, table.rt + table.nr_workers, 4) &&
	       peek(&timers, table.rt + table.timers, 8) &&
	       peek(&s->backend, table.rt + table.backend, 4) &&
	       add_workers(s, workers, nr) && add_groups(s) &&
	       add_timers(s, timers) && is_in_use();
}

/* A runtime that stops takes its workers away while they are looked at. */
static void look(struct sample *s)
{
	int tries = 0, i;

	do {
		if (tries++ == NR_TRIES)
			die("process %d: what it counts cannot be read", pid);
		memset(s, 0, sizeof(*s));
		s->at_ns = now_ns();
		for (i = 0; i < PL__EXPORT_NR_WHERE; i++)
			add_object(s, (enum pl__stat_export_where)i, 0);
		s->is_running = is_in_use();
	} while (s->is_running && !look_at_running(s));
	if (!add_object(s, PL__EXPORT_RT, table.rt))
		die("process %d: its runtime cannot be read", pid);
	add_differences(s);
}

static const char *backend_name(const struct sample *s)
{
	static const char *const names[] = { "auto", "module", "futex" };

	return !s->is_running ? "none" : s->backend < 3 ? names[s->backend] :
							 "unknown";
}

/* Of what tasks have waited with: "none" before the first did. */
static const char *io_name(const struct sample *s)
{
	static const char *const names[] = { "none", "io_uring", "epoll" };

	return s->io < 3 ? names[s->io] : "unknown";
}

static double uptime(const struct sample *s)
{
	return (double)(s->at_ns - table.started_ns) / 1e9;
}

#endif /* TOOLS_SAMPLE_H */
