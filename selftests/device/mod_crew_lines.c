// SPDX-License-Identifier: GPL-2.0-only
/*
 * The crew's counts lie on one line for each processor: a worker that blocks,
 * and goes on, writes only its processor's line. The sums are right wherever
 * workers change their state.
 */
#include "kselftest_harness.h"

#include "mod_crew.h"

#define NR_WORKERS	4
#define NR_BLOCKS	1000
#define STORM_NS	(3 * NSEC_PER_SEC)
#define MAX_LINES	256

FIXTURE(lines)
{
	struct space s;
	struct worker w[NR_WORKERS];
	int nr_cpus;
};

FIXTURE_SETUP(lines)
{
	CREW_SETUP(&self->s, 1, NR_WORKERS);
	self->nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
}

FIXTURE_TEARDOWN(lines)
{
	set_online(true);
	EXPECT_EQ(0, nr_running(&self->s));
	EXPECT_EQ(0, nr_blocked(&self->s));
	EXPECT_EQ(0, nr_idle_workers(&self->s));
	space_close(&self->s);
}

static bool pin(pthread_t thread, int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return !pthread_setaffinity_np(thread, sizeof(cpus), &cpus);
}

/* Lines of the counters, and whether each was seen to change. */
struct lines {
	char		last[MAX_LINES][PARKLOT_LINE];
	bool		has_changed[MAX_LINES];
	unsigned int	nr;
};

static void lines_begin(struct lines *lines, const struct space *s)
{
	memset(lines, 0, sizeof(*lines));
	lines->nr = s->setup.counters_size / PARKLOT_LINE;
	if (lines->nr > MAX_LINES)
		lines->nr = MAX_LINES;
	memcpy(lines->last, s->counters, lines->nr * PARKLOT_LINE);
}

static void lines_look(struct lines *lines, const struct space *s)
{
	const char (*now)[PARKLOT_LINE] = (const void *)s->counters;
	unsigned int i;

	for (i = 0; i < lines->nr; i++) {
		if (!memcmp(lines->last[i], now[i], PARKLOT_LINE))
			continue;
		lines->has_changed[i] = true;
		memcpy(lines->last[i], now[i], PARKLOT_LINE);
	}
}

static unsigned int nr_changed(const struct lines *lines)
{
	unsigned int i, nr = 0;

	for (i = 0; i < lines->nr; i++)
		nr += lines->has_changed[i];
	return nr;
}

static void do_block_often(struct worker *w)
{
	char c;

	while (read(w->fd[0], &c, 1) == 1)
		atomic_fetch_add(&w->result, 1);
}

/*
 * @w blocks and goes on, NR_BLOCKS times; the lines are looked at in between.
 */
static bool block_often(struct worker *w, struct lines *lines)
{
	struct space *s = w->space;
	int i, last = atomic_load(&w->result) + NR_BLOCKS;

	for (i = last - NR_BLOCKS; i < last; i++) {
		UNTIL(nr_blocked(s) == 2);
		lines_look(lines, s);
		if (write(w->fd[1], "", 1) != 1)
			return false;
		UNTIL(atomic_load(&w->result) == i + 1);
		lines_look(lines, s);
	}
	UNTIL(nr_blocked(s) == 2);
	lines_look(lines, s);
	return true;
}

/* Starts @w on that processor, and blocks it there once. */
static int worker_on(struct worker *w, struct space *s, uint32_t slot, int cpu)
{
	int err = pipe(w->fd) ? -errno :
				worker_start(w, s, slot, do_block_often);

	if (err)
		return err;
	if (!pin(w->thread, cpu))
		return -EINVAL;
	worker_begin(w);
	UNTIL(nr_blocked(s) == slot + 1);
	return 0;
}

static int worker_off(struct worker *w)
{
	close(w->fd[1]);
	UNTIL(atomic_load(&w->is_done));
	close(w->fd[0]);
	return worker_finish(w);
}

TEST_F_TIMEOUT(lines, block_and_unblock_write_one_line_of_the_processor, 60)
{
	struct lines lines[2];
	unsigned int i, both = 0;

	if (self->nr_cpus < 2)
		SKIP(return, "takes two processors");
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, worker_on(&self->w[i], &self->s, i, i));
	for (i = 0; i < 2; i++) {
		lines_begin(&lines[i], &self->s);
		EXPECT_TRUE(block_often(&self->w[i], &lines[i]));
		EXPECT_EQ(1, nr_changed(&lines[i]));
	}
	for (i = 0; i < lines[0].nr; i++)
		both += lines[0].has_changed[i] && lines[1].has_changed[i];
	EXPECT_EQ(0, both);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, worker_off(&self->w[i]));
}

/* Nor where there is a backlog, but no parked worker to call. */
TEST_F_TIMEOUT(lines, backlog_alone_writes_no_other_line, 60)
{
	struct lines lines;
	unsigned int i;

	if (self->nr_cpus < 2)
		SKIP(return, "takes two processors");
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, worker_on(&self->w[i], &self->s, i, i));
	ASSERT_EQ(0, dev_crew(self->s.fd, 2, 4, 0));
	set_backlog(&self->s, 1);
	lines_begin(&lines, &self->s);
	EXPECT_TRUE(block_often(&self->w[0], &lines));
	EXPECT_EQ(1, nr_changed(&lines));
	EXPECT_FALSE(lines.has_changed[0]);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, worker_off(&self->w[i]));
}

static atomic_int is_over;

/* Blocks, parks and computes, on one processor after the other. */
static void do_move(struct worker *w)
{
	int nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	unsigned int i;

	for (i = w->slot; !atomic_load(&is_over); i++) {
		/* Skips a processor that is offline. */
		pin(pthread_self(), i % nr_cpus);
		sleep_ns(i % 7 * 10000);
		dev_park(w->space->fd, 0, 0, now_ns() + i % 5 * 20000);
		dev_wake(w->space->fd, 0, 1);
		atomic_fetch_add(&w->result, 1);
	}
}

/* Until the end of the storm; returns how often a processor went offline. */
static int hotplug(int nr_cpus, uint64_t end)
{
	int cpu, nr = 0;

	while (now_ns() < end) {
		for (cpu = 1; cpu < nr_cpus; cpu++) {
			if (!cpu_set_online(cpu, false))
				continue;
			nr++;
			sleep_ns(NSEC_PER_MSEC);
			cpu_set_online(cpu, true);
		}
		sleep_ns(NSEC_PER_MSEC);
	}
	return nr;
}

TEST_F_TIMEOUT(lines, sums_are_right_after_moves_and_hotplug, 120)
{
	int i, nr_offline, nr_moves = 0;

	if (self->nr_cpus < 2)
		SKIP(return, "takes two processors");
	ASSERT_EQ(0, dev_crew(self->s.fd, 2, 3, 20000));
	set_backlog(&self->s, 1);
	atomic_store(&is_over, 0);
	for (i = 0; i < NR_WORKERS; i++) {
		ASSERT_EQ(0, worker_start(&self->w[i], &self->s, i, do_move));
		worker_begin(&self->w[i]);
	}
	nr_offline = hotplug(self->nr_cpus, now_ns() + STORM_NS);
	atomic_store(&is_over, 1);
	for (i = 0; i < NR_WORKERS; i++) {
		UNTIL(atomic_load(&self->w[i].is_done));
		nr_moves += atomic_load(&self->w[i].result);
	}
	UNTIL(nr_running(&self->s) == NR_WORKERS);
	EXPECT_EQ(0, nr_blocked(&self->s));
	EXPECT_EQ(0, nr_idle_workers(&self->s));
	EXPECT_LT(1, nr_cpu_lines(&self->s));
	EXPECT_GE(sysconf(_SC_NPROCESSORS_CONF), nr_cpu_lines(&self->s));
	TH_LOG("%d moves, a processor offline %d times", nr_moves, nr_offline);
	set_backlog(&self->s, 0);
	for (i = 0; i < NR_WORKERS; i++)
		EXPECT_EQ(0, worker_finish(&self->w[i]));
}

TEST_HARNESS_MAIN
