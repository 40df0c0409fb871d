/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * On which node the memory of tasks is: that of the worker which touches it
 * first.  Workers are pinned, one to each CPU, so that a worker has a node.
 */
#include "kselftest_harness.h"

#include "rt.h"

#include "queue/rt.h"
#include "queue/task.h"

#include <sys/syscall.h>

#define WORKERS_MAX	64
#define NR_HELD		96	/* tasks alive at once, of each worker */

RT_FIXTURE(placement)

static uint32_t nr_workers;
static atomic_uint nr_there, nr_done, nr_held, is_over;
static struct pl_word over;

/* One task and its memory.  @ran_on, @spawned_by: workers by their index. */
static struct sample {
	void		*slot, *stack;
	uint32_t	spawned_by, ran_on;
} samples[WORKERS_MAX][NR_HELD];

static int node_of_worker[WORKERS_MAX];

/* The node of the page at @p, which is mapped; or -errno. */
static int node_of_page(void *p)
{
	void *page = (void *)((uintptr_t)p & ~4095UL);
	int node = -1;

	if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &node, 0))
		return -errno;
	return node;
}

static int node_here(void)
{
	unsigned int cpu, node;

	return getcpu(&cpu, &node) ? -errno : (int)node;
}

/* Any of the CPUs on which this process may run is on another one. */
static bool has_nodes(void)
{
	cpu_set_t all;
	int first = -1, node, nr, i;

	EXPECT_EQ(0, sched_getaffinity(0, sizeof(all), &all));
	nr = CPU_COUNT(&all);
	for (i = 0; i < nr; i++) {
		run_on_cpu(&all, i);
		node = node_here();
		if (i && node != first)
			break;
		first = node;
	}
	EXPECT_EQ(0, sched_setaffinity(0, sizeof(all), &all));
	return i < nr;
}

#define NEEDS_NODES() do { \
	if (!has_nodes()) \
		SKIP(return, "one node only"); \
} while (0)

/*
 * Runs @fn once on each worker, with its index; none has time to steal before
 * all have done.
 */
static void (*in_worker)(uint32_t i);

static void run_in_worker(void *arg)
{
	uint32_t i = pl__self()->index;

	ASSERT_GT(nr_workers, i);
	node_of_worker[i] = node_here();
	atomic_fetch_add(&nr_there, 1);
	while (atomic_load(&nr_there) < nr_workers)
		sched_yield();
	in_worker(i);
	atomic_fetch_add(&nr_done, 1);
	while (atomic_load(&nr_done) < nr_workers)
		sched_yield();
}

static void run_in_each(void (*fn)(uint32_t i))
{
	struct pl_config cfg = PL_CONFIG_INIT;

	/* None but these: sysmon would start others beside them. */
	setenv("PARKLOT_WATCH", "0", 1);
	nr_workers = pl__cpus_usable();
	ASSERT_GE(WORKERS_MAX, nr_workers);
	set_env("PARKLOT_WORKERS", nr_workers);
	cfg.min_workers = nr_workers;
	cfg.pin_workers = 1;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	in_worker = fn;
	mixed_run((int)nr_workers, 0, run_in_worker, NULL);
}

/* Nodes of all workers; there are several. */
static void expect_several_nodes(void)
{
	uint32_t i;
	bool differ = false;

	for (i = 0; i < nr_workers; i++) {
		EXPECT_LE(0, node_of_worker[i]);
		differ |= node_of_worker[i] != node_of_worker[0];
	}
	EXPECT_TRUE(differ);
}

static void note_sample(struct sample *s)
{
	s->slot = pl__current();
	s->stack = &s;
	s->ran_on = pl__self()->index;
}

/* ---- memory that is new ---- */

static void hold(void *arg)
{
	note_sample(arg);
	atomic_fetch_add(&nr_held, 1);
	while (!atomic_load(&is_over))
		pl_word_wait(&over, 0, PL_FOREVER);
}

static void spawn_held(uint32_t i)
{
	uint32_t nr;

	for (nr = 0; nr < NR_HELD; nr++) {
		samples[i][nr].spawned_by = i;
		ASSERT_EQ(0, pl_spawn(NULL, hold, &samples[i][nr], NULL));
	}
	/* Each of its own tasks has run once, then. */
	for (nr = 0; nr < 2; nr++)
		pl_yield();
}

static void end_held(void)
{
	atomic_store(&is_over, 1);
	atomic_store(&over.value, 1);
	pl_word_wake(&over, UINT32_MAX);
}

TEST_F_TIMEOUT(placement, new_memory_is_on_the_node_of_its_worker, 120)
{
	uint32_t i, nr;
	struct sample *s;

	NEEDS_NODES();
	run_in_each(spawn_held);
	ASSERT_TRUE(UNTIL(atomic_load(&nr_held) == nr_workers * NR_HELD));
	expect_several_nodes();
	for (i = 0; i < nr_workers; i++) {
		for (nr = 0; nr < NR_HELD; nr++) {
			s = &samples[i][nr];
			EXPECT_EQ(node_of_worker[s->spawned_by],
				  node_of_page(s->slot));
			EXPECT_EQ(node_of_worker[s->ran_on],
				  node_of_page(s->stack));
		}
	}
	end_held();
}

/* ---- memory that is used again ---- */

static atomic_uint nr_far;

static void look(void *arg)
{
	struct sample *s = arg;
	int node = node_of_worker[pl__self()->index];

	note_sample(s);
	if (node_of_page(s->slot) != node || node_of_page(s->stack) != node)
		atomic_fetch_add(&nr_far, 1);
}

static void spawn_and_join(uint32_t i)
{
	struct sample s;
	pl_task_t t;
	int nr;

	(void)i;
	for (nr = 0; nr < scaled(1000); nr++) {
		ASSERT_EQ(0, pl_spawn(&t, look, &s, NULL));
		ASSERT_EQ(0, pl_join(t));
		ASSERT_EQ(i, pl__self()->index);
	}
}

TEST_F_TIMEOUT(placement, memory_used_again_stays_on_its_node, 120)
{
	NEEDS_NODES();
	run_in_each(spawn_and_join);
	expect_several_nodes();
	EXPECT_EQ(0, atomic_load(&nr_far));
}

TEST_HARNESS_MAIN
