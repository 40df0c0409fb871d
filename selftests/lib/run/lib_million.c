/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Very many tasks, parked: what each costs, and what is given back when they
 * have ended.
 *
 * Environment: LIB_MANY=N parks N tasks, 100,000 by default; a million take 5
 * GB.  There are never more than fit into half of the free memory.
 */
#include "kselftest_harness.h"

#include "rt.h"

RT_FIXTURE(million)

#define NR_WORDS	4096
#define FEW		1024	/* stacks may stay for long */
#define BYTES_A_TASK	4608	/* a page, the task, its share of page tables */

static struct pl_word words[NR_WORDS];
static atomic_uint nr_parked;

/* ---- what the process uses ---- */

/* A line of the kernel's, "Name:   12345 kB", in bytes. */
static uint64_t kernel_says(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	unsigned long long kb = 0;
	char line[256];

	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), ": %llu", &kb);
	fclose(f);
	return kb << 10;
}

struct usage {
	uint64_t	resident;	/* bytes */
	uint64_t	tables;		/* of pages, bytes */
	int		mappings;
};

static int nr_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int c, nr = 0;

	ASSERT_NE(NULL, f);
	while ((c = getc(f)) != EOF)
		nr += c == '\n';
	fclose(f);
	return nr;
}

static struct usage usage_now(void)
{
	return (struct usage){
		.resident = kernel_says("/proc/self/status", "VmRSS"),
		.tables = kernel_says("/proc/self/status", "VmPTE"),
		.mappings = nr_mappings(),
	};
}

/* To be asked often: the mappings would keep others from unmapping. */
static uint64_t bytes_since(struct usage then)
{
	uint64_t a = kernel_says("/proc/self/status", "VmRSS") +
		     kernel_says("/proc/self/status", "VmPTE");
	uint64_t b = then.resident + then.tables;

	return a > b ? a - b : 0;
}

/* ---- the tasks ---- */

static uint32_t how_many(void)
{
	uint64_t room = kernel_says("/proc/meminfo", "MemAvailable") / 2;
	const char *s = getenv("LIB_MANY");
	uint32_t nr = (uint32_t)scaled(RT_INJECT ? 20000 : 100000);

	if (s && atoi(s) > 0)
		nr = (uint32_t)atoi(s);
	return nr < room / BYTES_A_TASK ? nr : (uint32_t)(room / BYTES_A_TASK);
}

static void wait_on_word(void *arg)
{
	struct pl_word *w = arg;

	atomic_fetch_add(&nr_parked, 1);
	while (!atomic_load(&w->value))
		EXPECT_EQ(0, pl_word_wait(w, 0, PL_FOREVER));
}

static void spawn_all(uint32_t nr)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	uint32_t i;

	opts.stack = PL_STACK_SMALL;
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, pl_spawn(NULL, wait_on_word, &words[i % NR_WORDS],
				      &opts));
}

static void park(uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < NR_WORDS; i++)
		atomic_store(&words[i].value, 0);
	nr_parked = 0;
	spawn_all(nr);
	ASSERT_TRUE(UNTIL_NO_MORE(nr_parked == nr, nr_parked));
	ASSERT_TRUE(UNTIL(rt_stat().workers_running == 0));
}

static void wake_all(void)
{
	uint32_t i;

	for (i = 0; i < NR_WORDS; i++) {
		atomic_store(&words[i].value, 1);
		pl_word_wake(&words[i], UINT32_MAX);
	}
}

static void end_all(void)
{
	wake_all();
	ASSERT_TRUE(UNTIL_NO_MORE(rt_stat().tasks_alive == 0,
				  rt_stat().tasks_alive));
}

static double ms_since(uint64_t ns)
{
	return (double)(pl_now() - ns) / NSEC_PER_MSEC;
}

static long max_mappings(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	long nr = 0;

	if (f) {
		EXPECT_EQ(1, fscanf(f, "%ld", &nr));
		fclose(f);
	}
	return nr;
}

/*
 * Sanitizers keep something beside each stack, and emulators beside each
 * mapping: a kernel without guards that cost nothing may be emulated.
 */
static bool is_exact(uint32_t nr)
{
	return !RT_ASAN && !RT_TSAN && nr >= 10000 &&
	       !rt_stat().stacks_unguarded;
}

/* @more of them since @before, when some were parked already. */
static void check_parked(uint32_t more, struct usage before, bool exact)
{
	struct usage now = usage_now();
	uint64_t bytes = bytes_since(before) / more;
	int mappings = now.mappings - before.mappings;
	uint64_t unguarded = rt_stat().stacks_unguarded;

	printf("# %u more tasks parked: %llu bytes each, of which %llu in page tables; %d mappings of %ld; %llu stacks without a guard\n",
	       more, (unsigned long long)bytes,
	       (unsigned long long)(now.tables - before.tables) / more,
	       mappings, max_mappings(), (unsigned long long)unguarded);
	EXPECT_GE(max_mappings(), mappings);
	if (exact)
		EXPECT_GE(BYTES_A_TASK, bytes);
}

static void check_given_back(struct usage before, uint64_t used, bool exact)
{
	if (exact)
		EXPECT_TRUE(UNTIL_NO_MORE(bytes_since(before) <= used / 10,
					  bytes_since(before) >> 20));
	printf("# %.1f %% given back\n",
	       100 - 100.0 * (double)bytes_since(before) / (double)used);
}

/*
 * Some memory stays however many tasks there were: the table of waiters, and
 * stacks for the next tasks.  It is as much as few tasks leave, which keep all
 * their stacks.
 */
TEST_REAL(parked_tasks_take_a_page_each_and_free_it, "it measures memory")
TEST_F_TIMEOUT(million, parked_tasks_take_a_page_each_and_free_it, 120)
{
	uint32_t nr = how_many(), few = nr / 10 < FEW ? nr / 10 : FEW;
	struct usage few_parked, before;
	uint64_t used, since;
	bool exact;

	/* No further workers where mapping blocks: they would cost, too. */
	start_with(2, 2);
	park(few);
	few_parked = usage_now();
	end_all();
	before = usage_now();

	since = pl_now();
	park(nr);
	printf("# %.0f ms to start %u\n", ms_since(since), nr);
	EXPECT_EQ(nr, rt_stat().tasks_alive);
	exact = is_exact(nr);
	check_parked(nr - few, few_parked, exact);
	used = bytes_since(before);

	since = pl_now();
	end_all();
	printf("# %.0f ms to end\n", ms_since(since));
	check_given_back(before, used, exact);
}

static atomic_int is_held, may_end;

static void hold_worker(void *arg)
{
	is_held = 1;
	EXPECT_TRUE(UNTIL_BUSY(may_end));
}

TEST_F(million, unstarted_tasks_own_no_stack)
{
	uint32_t nr = (uint32_t)scaled(100000);
	struct usage before;
	uint64_t bytes;

	start_with(1, 1);
	/* The one worker is kept by a task. */
	spawn(hold_worker, NULL);
	ASSERT_TRUE(UNTIL(is_held));
	before = usage_now();
	spawn_all(nr);
	bytes = bytes_since(before) / nr;
	printf("# %u tasks not started: %llu bytes each\n", nr,
	       (unsigned long long)bytes);
	if (!RT_ASAN && !RT_TSAN)
		EXPECT_GE(1024, bytes);
	wake_all();
	may_end = 1;
	EXPECT_TRUE(UNTIL_NO_MORE(rt_stat().tasks_alive == 0,
				  rt_stat().tasks_alive));
}

TEST_HARNESS_MAIN
