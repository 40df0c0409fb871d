/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * format: a sample for other programs, as JSON and for Prometheus
 */
#ifndef TOOLS_FORMAT_H
#define TOOLS_FORMAT_H

#include "sample.h"

static void print_json(struct sample *s)
{
	uint32_t i;

	printf("{\"pid\":%d,\"version\":\"%.16s\",\"running\":%s,\"backend\":\"%s\"",
	       pid, table.library, s->is_running ? "true" : "false",
	       backend_name(s));
	for (i = 0; i < s->nr; i++)
		printf(",\"%s\":%" PRIu64, s->value[i].name, s->value[i].now);
	puts("}");
}

static void print_prometheus(struct sample *s)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++) {
		const struct value *v = &s->value[i];
		const char *end = v->is_gauge ? "" : "_total";

		printf("# TYPE parklot_%s%s %s\n", v->name, end,
		       v->is_gauge ? "gauge" : "counter");
		printf("parklot_%s%s{pid=\"%d\",backend=\"%s\"} %" PRIu64 "\n",
		       v->name, end, pid, backend_name(s), v->now);
	}
}

#endif /* TOOLS_FORMAT_H */
