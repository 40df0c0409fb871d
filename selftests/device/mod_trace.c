// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints: each operation is in the trace, with its numbers. */
#include "kselftest_harness.h"

#include "mod_crew.h"

#define TRACING	"/sys/kernel/tracing/"
#define EVENTS	TRACING "events/parklot/"

FIXTURE(trace)
{
	struct space s;
};

static bool put_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	bool is_put;

	if (!file)
		return false;
	is_put = fputs(text, file) >= 0;
	return !fclose(file) && is_put;
}

FIXTURE_SETUP(trace)
{
	SPACE_SETUP(&self->s, 8);
	if (!put_text(TRACING "trace", "") ||
	    !put_text(EVENTS "enable", "1"))
		SKIP_ALL("no tracing");
}

FIXTURE_TEARDOWN(trace)
{
	put_text(EVENTS "enable", "0");
	space_close(&self->s);
}

/* How many lines of the trace have @text. */
static int nr_lines(const char *text)
{
	FILE *file = fopen(TRACING "trace", "re");
	char line[512];
	int nr = 0;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		nr += strstr(line, text) != NULL;
	fclose(file);
	return nr;
}

TEST_F(trace, parks_and_wakes_are_traced)
{
	struct parker parker;

	ASSERT_EQ(0, parker_start(&parker, &self->s, 5, PARKLOT_FOREVER));
	EXPECT_EQ(1, dev_wake(self->s.fd, 5, 3));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
	/* What is too late already does not park. */
	UNTIL(dev_park(self->s.fd, 6, 0, now_ns() + NSEC_PER_MSEC) !=
	      PARKLOT_TIMEDOUT || nr_lines("parklot_park: lot=6 reason="));
	EXPECT_EQ(0, dev_wake(self->s.fd, 6, 1));
	EXPECT_EQ(1, nr_lines("parklot_park: lot=5 reason=woken ns="));
	EXPECT_EQ(1, nr_lines("parklot_park: lot=6 reason=timedout ns="));
	EXPECT_EQ(1, nr_lines("parklot_wake: lot=5 nr=3 woken=1"));
	EXPECT_EQ(1, nr_lines("parklot_wake: lot=6 nr=1 woken=0"));
}

TEST_F(trace, crew_events_are_traced)
{
	struct worker blocker = {}, parker = {};
	struct space s;

	if (space_open_crew(&s, 1, 8))
		SKIP(return, "no crew");
	ASSERT_EQ(0, worker_park(&parker, &s, 6));
	ASSERT_EQ(0, worker_block(&blocker, &s, 4));
	/* A call is counted first and traced afterwards. */
	UNTIL(nr_lines("parklot_blocked: slot=4 running=0") > 0);
	set_backlog(&s, 1);
	ASSERT_EQ(0, dev_crew(s.fd, 1, 8, 0));
	UNTIL(nr_called(&s) == 1);
	UNTIL(nr_lines("parklot_replace: slot=6 running=1") == 1);
	EXPECT_TRUE(worker_unblock(&blocker));
	UNTIL(nr_lines("parklot_unblocked: slot=4 running=") > 0);
	EXPECT_EQ(0, worker_finish(&blocker));
	EXPECT_EQ(0, worker_finish(&parker));
	space_close(&s);
}

TEST_HARNESS_MAIN
