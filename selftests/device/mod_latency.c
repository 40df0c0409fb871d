// SPDX-License-Identifier: GPL-2.0-only
/*
 * How late a real-time thread gets a processor while other threads make the
 * module do the most work that a call may ask for. The thread sleeps to
 * absolute times; its worst lateness is an upper bound of the time that
 * interrupts or preemption are off and that a raw spinlock is held. SECURITY.md
 * has a table.
 *
 * Only a clock that counts instructions tells such times: the machine is booted
 * with --icount, and says so by MOD_LATENCY=1.
 */
#include "kselftest_harness.h"

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "mod_crew.h"

#define NR_THREADS	500
#define NR_WORKERS	64	/* of a storm */
#define NR_LOTS		PARKLOT_MAX_BATCH
#define PERIOD_NS	25000

/* In instructions, of which the kernel alone takes up to half. */
#define BOUND		30000

/* The measuring thread. */
struct meter {
	pthread_t	thread;
	atomic_int	is_ready, must_end;
	uint64_t	worst;		/* read after the thread's end */
	unsigned long	nr;		/* sleeps; read after the end */
};

static void *meter_main(void *arg)
{
	struct meter *meter = arg;
	struct timespec ts;
	uint64_t due, now;

	atomic_store(&meter->is_ready, 1);
	for (now = now_ns(); !atomic_load(&meter->must_end); meter->nr++) {
		due = now + PERIOD_NS;
		ts.tv_sec = due / NSEC_PER_SEC;
		ts.tv_nsec = due % NSEC_PER_SEC;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		now = now_ns();
		if (now - due > meter->worst)
			meter->worst = now - due;
	}
	return NULL;
}

static bool meter_start(struct meter *meter)
{
	struct sched_param param = { .sched_priority = 50 };
	pthread_attr_t attr;
	int err;

	memset(meter, 0, sizeof(*meter));
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	err = pthread_create(&meter->thread, &attr, meter_main, meter);
	pthread_attr_destroy(&attr);
	if (err)
		return false;
	UNTIL(atomic_load(&meter->is_ready));
	return true;
}

/* Returns the worst lateness since the start. */
static uint64_t meter_stop(struct meter *meter)
{
	atomic_store(&meter->must_end, 1);
	pthread_join(meter->thread, NULL);
	return meter->worst;
}

FIXTURE(latency)
{
	struct space s;
	struct meter meter;
};

FIXTURE_SETUP(latency)
{
	if (!getenv("MOD_LATENCY"))
		SKIP_ALL("no clock that counts instructions");
	SPACE_SETUP(&self->s, NR_LOTS);
	ASSERT_EQ(0, mlockall(MCL_CURRENT));
	/* Earlier work does not count. */
	sleep_ns(NSEC_PER_SEC);
}

FIXTURE_TEARDOWN(latency)
{
	space_close(&self->s);
}

/* Measures work that is done in this thread. */
#define MEASURE(self)	ASSERT_TRUE(meter_start(&(self)->meter))
#define MEASURED(self, bound) do { \
	uint64_t __late = meter_stop(&(self)->meter); \
	TH_LOG("late by %llu at most, of %lu", (unsigned long long)__late, \
	       (self)->meter.nr); \
	EXPECT_GE((uint64_t)(bound), __late); \
} while (0)

/* A thread that only runs: this lateness is not the module's. */
TEST_F(latency, user_space_alone_keeps_the_bound)
{
	uint64_t end;

	MEASURE(self);
	for (end = now_ns() + 20 * NSEC_PER_MSEC; now_ns() < end;)
		getppid();
	MEASURED(self, BOUND);
}

/* Threads that park, or wait for a futex, and then for the test's end. */
struct crowd {
	struct space	*space;
	atomic_uint	nr_ready, nr_back;
	atomic_uint	word, end;
	atomic_uint	next_slot;
	bool		joins;
	uint32_t	nr_lots;	/* in turn; 0: one */
	pthread_t	thread[NR_THREADS];
};

static long futex(atomic_uint *word, int op, unsigned int val)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, val, NULL,
		       NULL, 0);
}

static void *crowd_park(void *arg)
{
	struct crowd *crowd = arg;
	uint32_t nth = atomic_fetch_add(&crowd->next_slot, 1);

	if (crowd->joins)
		dev_join(crowd->space->fd, nth);
	atomic_fetch_add(&crowd->nr_ready, 1);
	dev_park(crowd->space->fd, crowd->nr_lots ? nth % crowd->nr_lots : 0,
		 0, PARKLOT_FOREVER);
	atomic_fetch_add(&crowd->nr_back, 1);
	futex(&crowd->end, FUTEX_WAIT, 0);
	return NULL;
}

static void *crowd_futex(void *arg)
{
	struct crowd *crowd = arg;

	atomic_fetch_add(&crowd->nr_ready, 1);
	futex(&crowd->word, FUTEX_WAIT, 0);
	atomic_fetch_add(&crowd->nr_back, 1);
	futex(&crowd->end, FUTEX_WAIT, 0);
	return NULL;
}

static bool crowd_start(struct crowd *crowd, struct space *s, int nr,
			void *(*fn)(void *))
{
	pthread_attr_t attr;
	int i, err = 0;

	crowd->space = s;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (i = 0; i < nr && !err; i++)
		err = pthread_create(&crowd->thread[i], &attr, fn, crowd);
	pthread_attr_destroy(&attr);
	UNTIL(atomic_load(&crowd->nr_ready) == (unsigned int)nr);
	/* On one processor all of them sleep when this thread runs again. */
	sleep_ns(20 * NSEC_PER_MSEC);
	return !err;
}

TEST_F(latency, wake_of_all_threads_keeps_the_bound)
{
	static struct crowd crowd;

	ASSERT_TRUE(crowd_start(&crowd, &self->s, NR_THREADS,
				crowd_park));
	EXPECT_EQ(NR_THREADS, nr_parked(&self->s, 0));
	MEASURE(self);
	EXPECT_EQ(NR_THREADS, dev_wake(self->s.fd, 0, ~0U));
	UNTIL(atomic_load(&crowd.nr_back) == NR_THREADS);
	MEASURED(self, BOUND);
}

TEST_F(latency, wake_of_all_lots_keeps_the_bound)
{
	static struct crowd crowd = { .nr_lots = NR_LOTS };
	struct parklot_wake_entry entry[NR_LOTS];
	int i;

	for (i = 0; i < NR_LOTS; i++)
		entry[i] = (struct parklot_wake_entry){ .lot = i, .nr = ~0U };
	ASSERT_TRUE(crowd_start(&crowd, &self->s, NR_THREADS, crowd_park));
	MEASURE(self);
	EXPECT_EQ(NR_THREADS, dev_wake_batch(self->s.fd, entry, NR_LOTS, ~0U));
	for (i = 0; i < 1000; i++)
		dev_wake_batch(self->s.fd, entry, NR_LOTS, ~0U);
	MEASURED(self, BOUND);
}

/* Without the module, for comparison. */
TEST_F(latency, wake_of_a_futex_is_measured)
{
	static struct crowd crowd;

	ASSERT_TRUE(crowd_start(&crowd, &self->s, NR_THREADS,
				crowd_futex));
	MEASURE(self);
	EXPECT_EQ(NR_THREADS, futex(&crowd.word, FUTEX_WAKE, INT32_MAX));
	UNTIL(atomic_load(&crowd.nr_back) == NR_THREADS);
	MEASURED(self, UINT64_MAX);
}

TEST_F(latency, close_with_a_crew_keeps_the_bound)
{
	static struct crowd crowd = { .joins = true };
	struct space s;

	ASSERT_EQ(0, space_open_crew(&s, 1024, 65536));
	ASSERT_TRUE(crowd_start(&crowd, &s, NR_THREADS, crowd_park));
	EXPECT_EQ(NR_THREADS, nr_idle_workers(&s));
	munmap((void *)s.counters, s.setup.counters_size);
	munmap(s.words, s.setup.words_size);
	MEASURE(self);
	close(s.fd);
	UNTIL(atomic_load(&crowd.nr_back) == NR_THREADS);
	MEASURED(self, BOUND);
}

/* As many as are missing are called, in parts, with interrupts off. */
TEST_F(latency, call_of_a_whole_crew_keeps_the_bound)
{
	static struct crowd crowd = { .joins = true };
	struct space s;

	ASSERT_EQ(0, space_open_crew(&s, 1, NR_THREADS));
	ASSERT_TRUE(crowd_start(&crowd, &s, NR_THREADS, crowd_park));
	set_backlog(&s, 1);
	MEASURE(self);
	EXPECT_EQ(0, dev_crew(s.fd, NR_THREADS, NR_THREADS, 0));
	UNTIL(nr_called(&s) == NR_THREADS);
	MEASURED(self, BOUND);
	UNTIL(atomic_load(&crowd.nr_back) == NR_THREADS);
	space_close(&s);
}

#define NR_SPACES	8
#define SPACE_SIZE	(5 << 20)	/* more than the largest takes */

/*
 * The kernel returns pages by the hundred, under a lock, to any ending process;
 * by how many hundred at a time is a matter of luck.
 */
TEST_F(latency, largest_space_is_no_worse_than_its_memory)
{
	uint64_t worst;
	struct space s;
	void *mem;
	int i;

	MEASURE(self);
	for (i = 0; i < NR_SPACES; i++) {
		mem = mmap(NULL, SPACE_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		ASSERT_NE(MAP_FAILED, mem);
		munmap(mem, SPACE_SIZE);
	}
	MEASURED(self, UINT64_MAX);
	worst = self->meter.worst;
	MEASURE(self);
	for (i = 0; i < NR_SPACES; i++) {
		ASSERT_EQ(0, space_open_crew(&s, 1024, 65536));
		space_close(&s);
	}
	MEASURED(self, 3 * worst);
}

/* The other descriptor in the table has the largest possible number. */
TEST_F(latency, close_in_a_sparse_table_keeps_the_bound)
{
	struct rlimit limit = { 1 << 20, 1 << 20 };
	int fd, last;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	last = dup2(0, (1 << 20) - 1);
	ASSERT_EQ((1 << 20) - 1, last);
	fd = dup(self->s.fd);
	MEASURE(self);
	close(fd);
	close(self->s.fd);
	MEASURED(self, BOUND);
}

/* The close looks at all of them. */
TEST_F(latency, close_in_a_full_table_keeps_the_bound)
{
	struct rlimit limit = { 1 << 16, 1 << 16 };
	int fd;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	while (dup(0) >= 0)
		;
	fd = self->s.fd;
	MEASURE(self);
	close(fd);
	MEASURED(self, BOUND);
}

#define NR_ROUNDS	50

/* A worker that blocks, or parks, and soon returns. */
static void *crowd_storm(void *arg)
{
	struct crowd *crowd = arg;
	uint32_t slot = atomic_fetch_add(&crowd->next_slot, 1);
	uint64_t ns = 100000 + 997 * slot;
	int i;

	dev_join(crowd->space->fd, slot);
	atomic_fetch_add(&crowd->nr_ready, 1);
	futex(&crowd->word, FUTEX_WAIT, 0);
	for (i = 0; i < NR_ROUNDS; i++) {
		if (slot % 2)
			sleep_ns(ns);
		else
			dev_park(crowd->space->fd, slot % 4, 0,
				 now_ns() + 10 * ns);
	}
	atomic_fetch_add(&crowd->nr_back, 1);
	futex(&crowd->end, FUTEX_WAIT, 0);
	return NULL;
}

/* Each worker that blocks is replaced at once. */
TEST_F(latency, storm_of_a_crew_keeps_the_bound)
{
	static struct crowd crowd;
	struct space s;

	ASSERT_EQ(0, space_open_crew(&s, 4, NR_THREADS));
	ASSERT_EQ(0, dev_crew(s.fd, NR_WORKERS / 2, NR_WORKERS, 0));
	ASSERT_TRUE(set_parameter("crew_interval_us", "0"));
	set_backlog(&s, 1);
	ASSERT_TRUE(crowd_start(&crowd, &s, NR_WORKERS, crowd_storm));
	MEASURE(self);
	atomic_store(&crowd.word, 1);
	while (futex(&crowd.word, FUTEX_WAKE, 1))
		;
	UNTIL(atomic_load(&crowd.nr_back) == NR_WORKERS);
	MEASURED(self, BOUND);
	TH_LOG("%ld were replaced", nr_called(&s));
	EXPECT_LT(0, nr_called(&s));
	set_parameter("crew_interval_us", "50");
	space_close(&s);
}

TEST_HARNESS_MAIN
