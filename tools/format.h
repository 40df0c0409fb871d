/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * format: a sample for other programs, as JSON and for Prometheus
 */
#ifndef TOOLS_FORMAT_H
#define TOOLS_FORMAT_H

#include "sample.h"

/* ---- JSON ---- */

/* null: there were none. */
static void print_json_delays(const struct delays *d)
{
	uint64_t ns;
	size_t i;

	for (i = 0; i < 2; i++) {
		ns = delay_below(NULL, d, percents[i]);
		printf(",\"%s_p%u_ns\":", d->name, percents[i]);
		if (ns)
			printf("%" PRIu64, ns);
		else
			fputs("null", stdout);
	}
}

static void print_json_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

/* The default group, too. */
static void print_json_groups(const struct sample *s)
{
	const struct group *g;
	uint32_t i;

	fputs(",\"groups\":[", stdout);
	for (i = 0; i < s->nr_groups; i++) {
		g = &s->group[i];
		printf("%s{\"group\":%u,\"name\":", i ? "," : "", i + 1);
		print_json_text(g->name);
		printf(",\"workers\":%" PRIu64 ",\"workers_parked\":%" PRIu64
		       ",\"workers_blocked\":%" PRIu64 ",\"workers_active\":%" PRIu64
		       "}", g->workers, g->parked, g->blocked, g->active);
	}
	putchar(']');
}

static void print_json(struct sample *s)
{
	uint32_t i;

	printf("{\"pid\":%d,\"version\":\"%.16s\",\"running\":%s,\"backend\":\"%s\",\"io\":\"%s\",\"uptime_s\":",
	       pid, table.library, s->is_running ? "true" : "false",
	       backend_name(s), io_name(s));
	if (s->is_running)
		printf("%.3f", uptime(s));
	else
		fputs("null", stdout);
	for (i = 0; i < s->nr; i++)
		printf(",\"%s\":%" PRIu64, s->value[i].name, s->value[i].now);
	for (i = 0; i < s->nr_delays; i++)
		print_json_delays(&s->delays[i]);
	print_json_groups(s);
	puts("}");
}

/* ---- Prometheus ---- */

static const struct help {
	const char *name, *text;
} helps[] = {
	{ "active_lowered", "Times that fewer workers were to run by the load." },
	{ "active_raised", "Times that more workers were to run by the load." },
	{ "all_blocked", "Times that all workers were blocked while tasks waited." },
	{ "background_late", "Background tasks that ran though others were ready." },
	{ "background_ready", "Background tasks that are ready and wait." },
	{ "blocks", "Times that a worker was found blocked." },
	{ "io_completed", "Requests to the kernel that are complete." },
	{ "io_delay", "Time from seeing that I/O is complete until its task runs." },
	{ "io_enters", "Calls that wait for I/O or submit it." },
	{ "io_in_flight", "Requests to the kernel that are not complete." },
	{ "io_submitted", "Requests to the kernel." },
	{ "lowered_back", "Times that a trial with more workers did no better." },
	{ "lowered_trial",
	  "Times that fewer were to run to see whether these do as well." },
	{ "max_tasks", "Tasks that may be alive at a time; 0: no limit." },
	{ "nosignals", "Tasks that were spawned without waking a worker." },
	{ "parks", "Times that a worker parked." },
	{ "queue_delay", "Time from ready to run, of new tasks and after I/O." },
	{ "raised_back", "Times that a trial with fewer workers did worse." },
	{ "raised_stuck",
	  "Times that more were to run as tasks waited behind one." },
	{ "raised_trial",
	  "Times that more were to run to see whether these do better." },
	{ "raised_waits",
	  "Times that more were to run as tasks waited for long." },
	{ "set_aside", "Tasks that were set aside, as they were expected to block or compute." },
	{ "signals", "Times that a worker notified others of new tasks." },
	{ "spares", "Workers that were started ahead of need." },
	{ "spawns_refused", "Spawns that max_tasks refused." },
	{ "spawns_waited", "Spawns that waited for max_tasks." },
	{ "stacks", "Stacks that tasks have, and those kept for the next ones." },
	{ "stalls", "Times that a worker was found stalled." },
	{ "stalls_over", "Times that one more worker was allowed to be stalled." },
	{ "steals", "Tasks stolen from the run queue of another worker." },
	{ "switches", "Switches from one stack to another." },
	{ "tasks_alive", "Tasks that have not ended." },
	{ "tasks_ended", "Tasks that ended." },
	{ "tasks_spawned", "Tasks that were spawned." },
	{ "timer_delay", "Time from the deadline of a sleep until its task runs." },
	{ "timers_added", "Timers that were added." },
	{ "timers_alive", "Timers that have neither fired nor been deleted." },
	{ "timers_deleted", "Timers that were deleted." },
	{ "timers_fired", "Timers that fired." },
	{ "wakes", "Workers that were woken." },
	{ "wakes_empty", "System calls for a wake that woke no worker." },
	{ "workers", "Worker threads." },
	{ "workers_active", "Workers that are to run by the load." },
	{ "workers_blocked", "Workers with a task that is blocked in the kernel." },
	{ "workers_parked", "Workers that are parked." },
	{ "workers_running", "Workers that run." },
	{ "workers_stalled", "Workers that are stalled in a task that computes." },
};

/* Of a library that is newer there are others. */
static const char *help_of(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(helps) / sizeof(*helps); i++)
		if (!strcmp(helps[i].name, name))
			return helps[i].text;
	return "See pl_runtime(3).";
}

static void print_head(const char *name, const char *end, const char *type)
{
	printf("# HELP parklot_%s%s %s\n# TYPE parklot_%s%s %s\n", name, end,
	       help_of(name), name, end, type);
}

/* In seconds; what is not known, a sum, is left out. */
static void print_histogram(const struct delays *d)
{
	uint64_t nr = 0;
	unsigned int i;

	print_head(d->name, "_seconds", "histogram");
	for (i = 0; i < PL__LATENCY_BINS - 1; i++) {
		nr += d->bin[i];
		printf("parklot_%s_seconds_bucket{pid=\"%d\",le=\"%.9g\"} %" PRIu64 "\n",
		       d->name, pid,
		       (double)(1ULL << (i + PL__LATENCY_SHIFT)) / 1e9, nr);
	}
	nr += d->bin[i];
	printf("parklot_%s_seconds_bucket{pid=\"%d\",le=\"+Inf\"} %" PRIu64 "\n",
	       d->name, pid, nr);
	printf("parklot_%s_seconds_count{pid=\"%d\"} %" PRIu64 "\n", d->name,
	       pid, nr);
}

static void print_prometheus(struct sample *s)
{
	uint32_t i;

	printf("# HELP parklot_info What the process runs on.\n"
	       "# TYPE parklot_info gauge\n"
	       "parklot_info{pid=\"%d\",version=\"%.16s\",backend=\"%s\",io=\"%s\"} 1\n",
	       pid, table.library, backend_name(s), io_name(s));
	if (s->is_running)
		printf("# HELP parklot_uptime_seconds Time since the runtime started.\n"
		       "# TYPE parklot_uptime_seconds gauge\n"
		       "parklot_uptime_seconds{pid=\"%d\"} %.3f\n", pid,
		       uptime(s));
	for (i = 0; i < s->nr; i++) {
		const struct value *v = &s->value[i];
		const char *end = v->is_gauge ? "" : "_total";

		print_head(v->name, end, v->is_gauge ? "gauge" : "counter");
		printf("parklot_%s%s{pid=\"%d\"} %" PRIu64 "\n", v->name, end,
		       pid, v->now);
	}
	for (i = 0; i < s->nr_delays; i++)
		print_histogram(&s->delays[i]);
}

#endif /* TOOLS_FORMAT_H */
