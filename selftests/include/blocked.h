/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that block their workers in read() or at a page, and tasks of nothing.
 * rt.h is included before this.
 */
#ifndef SELFTESTS_BLOCKED_H
#define SELFTESTS_BLOCKED_H

#include "count.h"
#include "run/run.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static inline void blocked_begin(struct __test_metadata *test)
{
	rt_begin(test);
	if (!rt_has_sysmon())
		SKIP(return, "PARKLOT_WATCH=0");
}

#define BLOCKED_FIXTURE(name) \
	FIXTURE(name) { char unused; }; \
	FIXTURE_SETUP(name) { blocked_begin(_metadata); } \
	FIXTURE_TEARDOWN(name) { rt_end(); }

static atomic_int nr_begun;

static inline bool is_sysmon_asleep(void)
{
	return atomic_load(&pl__rt.sysmon) == PL__SYSMON_ASLEEP;
}

static inline void spawn_tiny(int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, pl_spawn(NULL, count, NULL, NULL));
}

static atomic_int nr_yields;

/*
 * Until so many tasks have run.  Where two do so, their worker finds a task
 * ready at each yield, and never parks.
 */
static inline void yield_until_ran(void *nr)
{
	while (nr_ran < (intptr_t)nr) {
		atomic_fetch_add(&nr_yields, 1);
		pl_yield();
	}
}

/* ---- tasks that wait for a byte ---- */

#define NR_PIPES	4

static int pipes[NR_PIPES][2];
static pl_task_t readers[NR_PIPES];

static inline void read_byte(void *arg)
{
	const int *fd = arg;
	char c;

	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(1, read(fd[0], &c, 1));
}

static inline void let_reader_go(int i)
{
	EXPECT_EQ(1, write(pipes[i][1], "x", 1));
	join(readers[i]);
}

static inline void block_in_read(int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		if (!pipes[i][1])
			ASSERT_EQ(0, pipe2(pipes[i], O_CLOEXEC));
		readers[i] = spawn_named("reader", read_byte, pipes[i]);
	}
}

/* ---- a gate at which tasks block in the kernel ---- */

static int gate[2];

static inline void make_gate(void)
{
	ASSERT_EQ(0, pipe2(gate, O_CLOEXEC));
}

static inline void open_gate(void)
{
	EXPECT_EQ(0, close(gate[1]));
}

static inline void read_gate(void *arg)
{
	char c;

	atomic_fetch_add(&nr_begun, 1);
	EXPECT_EQ(0, read(gate[0], &c, 1));
}

/* ---- tasks that block until they may go on ---- */

static atomic_int may_go;

/* Counts as begun, and computes meanwhile. */
static inline void compute_until_may_go(void *arg)
{
	atomic_fetch_add(&nr_begun, 1);
	while (!may_go)
		pl__cpu_relax();
}

/* Three tasks block one worker by @block, until @release. */
static inline void check_call(void (*block)(void *arg), void (*release)(void))
{
	pl_task_t t[3];
	size_t i;

	start_with(1, 0);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		t[i] = spawn(block, NULL);
	spawn_tiny(100);
	EXPECT_TRUE(UNTIL(nr_ran == 100));
	EXPECT_TRUE(UNTIL(nr_begun == (int)ARRAY_SIZE(t)));
	/* Counted behind what it has done. */
	EXPECT_TRUE(UNTIL(rt_stat().blocks >= 1));
	may_go = 1;
	release();
	for (i = 0; i < ARRAY_SIZE(t); i++)
		join(t[i]);
	EXPECT_EQ(0, pl_runtime_stop());
}

/* ---- a page that is not there until it is brought ---- */

static char *slow_page;
static int uffd;

static inline void bring_page(void)
{
	struct uffdio_zeropage zero = {
		.range = { (uintptr_t)slow_page, 4096 },
	};

	EXPECT_EQ(0, ioctl(uffd, UFFDIO_ZEROPAGE, &zero));
}

static inline bool make_page_slow(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		return false;
	slow_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, slow_page);
	reg.range.start = (uintptr_t)slow_page;
	reg.range.len = 4096;
	return !ioctl(uffd, UFFDIO_REGISTER, &reg);
}

#endif /* SELFTESTS_BLOCKED_H */
