/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of the device share: calls that return -errno, a space with
 * its areas mapped, threads that park. The harness is included before this
 * header.
 */
#ifndef SELFTESTS_MOD_H
#define SELFTESTS_MOD_H

#include <errno.h>
#include <fcntl.h>
#include <linux/parklot.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DEVICE		"/dev/parklot"
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL
#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

/*
 * SKIP() in FIXTURE_SETUP. The harness of a kernel before 6.9, which counts
 * steps, would run the test even so; it takes 255 as the status of a skip.
 */
#ifdef __INC_STEP
#define SKIP_ALL(fmt, ...)	SKIP(_exit(255), fmt, ##__VA_ARGS__)
#else
#define SKIP_ALL(fmt, ...)	SKIP(return, fmt, ##__VA_ARGS__)
#endif

/* The kernel's harness has all tests run. */
#ifndef TEST_TIMED
#define TEST_TIMED(test, why)
#endif

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* What the calling thread has run, the kernel's part included. */
static inline uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* By how much this machine is slower than the limits of tests assume. */
static inline unsigned int time_factor(void)
{
	const char *factor = getenv("TEST_TIMEOUT_FACTOR");

	return factor && atoi(factor) > 0 ? atoi(factor) : 1;
}

static inline void sleep_ns(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC,
	};

	nanosleep(&ts, NULL);
}

static inline int dev_ioctl(int fd, unsigned long cmd, const void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

static inline int dev_open(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static inline int dev_setup(int fd, uint32_t nr_lots)
{
	struct parklot_setup setup = { .nr_lots = nr_lots };

	return dev_ioctl(fd, PARKLOT_IOC_SETUP, &setup);
}

/* Returns the reason, or -errno. */
static inline int dev_park(int fd, uint32_t lot, uint32_t seq,
			   uint64_t deadline)
{
	struct parklot_park park = {
		.lot = lot, .expected_seq = seq, .deadline_ns = deadline,
		.pollfd = -1,
	};
	int err = dev_ioctl(fd, PARKLOT_IOC_PARK, &park);

	return err ? err : (int)park.reason;
}

/* Returns the number of sleepers woken by all entries, or -errno. */
static inline int dev_wake_batch(int fd, struct parklot_wake_entry *entries,
				 uint32_t nr_entries, uint32_t limit)
{
	struct parklot_wake wake = {
		.entries = (uintptr_t)entries, .nr_entries = nr_entries,
		.limit = limit,
	};
	int err = dev_ioctl(fd, PARKLOT_IOC_WAKE, &wake);

	return err ? err : (int)wake.woken;
}

/* Returns PARKLOT_FEAT_*, or 0. */
static inline uint64_t dev_features(int fd)
{
	struct parklot_query query = {};

	dev_ioctl(fd, PARKLOT_IOC_QUERY, &query);
	return query.features;
}

static inline int dev_wake(int fd, uint32_t lot, uint32_t nr)
{
	struct parklot_wake_entry entry = { .lot = lot, .nr = nr };

	return dev_wake_batch(fd, &entry, 1, ~0U);
}

/* A descriptor after SETUP, with both areas mapped. */
struct space {
	int				fd;
	struct parklot_setup		setup;
	const struct parklot_counters	*counters;
	struct parklot_words		*words;
};

/* Returns 0, or -errno of the call that failed; -ENOENT: there is no device. */
static inline int space_open_crew(struct space *s, uint32_t nr_lots,
				  uint32_t nr_workers)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->fd = dev_open();
	if (s->fd < 0)
		return s->fd;
	s->setup.nr_lots = nr_lots;
	s->setup.nr_workers = nr_workers;
	err = dev_ioctl(s->fd, PARKLOT_IOC_SETUP, &s->setup);
	if (err)
		return err;
	s->counters = mmap(NULL, s->setup.counters_size, PROT_READ, MAP_SHARED,
			   s->fd, PARKLOT_OFF_COUNTERS);
	if (s->counters == MAP_FAILED)
		return -errno;
	s->words = mmap(NULL, s->setup.words_size, PROT_READ | PROT_WRITE,
			MAP_SHARED, s->fd, PARKLOT_OFF_WORDS);
	return s->words == MAP_FAILED ? -errno : 0;
}

static inline int space_open(struct space *s, uint32_t nr_lots)
{
	return space_open_crew(s, nr_lots, 0);
}

static inline void space_close(struct space *s)
{
	munmap((void *)s->counters, s->setup.counters_size);
	munmap(s->words, s->setup.words_size);
	close(s->fd);
}

/* For FIXTURE_SETUP(): skips the test where there is no device. */
#define SPACE_SETUP(s, nr_lots) do { \
	int __err = space_open(s, nr_lots); \
	if (__err == -ENOENT) \
		SKIP_ALL("no " DEVICE); \
	ASSERT_EQ(0, __err); \
} while (0)

/* Returns 0, or -errno of open() or write(). */
static inline int write_file(const char *dir, const char *name,
			     const char *text)
{
	char path[128];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Sets a parameter of the module; false: not root, or no such parameter. */
static inline bool set_parameter(const char *name, const char *value)
{
	return !write_file("/sys/module/parklot/parameters", name, value);
}

static inline bool cpu_set_online(int cpu, bool is_online)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "/sys/devices/system/cpu/cpu%d", cpu);
	return !write_file(dir, "online", is_online ? "1" : "0");
}

/*
 * Takes all processors but the first offline, or online, where allowed: for
 * tests that patch the kernel's text, which an emulator of several processors
 * gets wrong.
 */
static inline void set_online(bool is_online)
{
	int cpu;

	for (cpu = 1; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
		cpu_set_online(cpu, is_online);
}

/* Restricts the module to these features. */
static inline bool set_features(unsigned long features)
{
	char value[32];

	snprintf(value, sizeof(value), "%lu", features);
	return set_parameter("features", value);
}

/* The value of @noun in the fdinfo of process @pid's @fd; -1: not there. */
static inline long fdinfo(pid_t pid, int fd, const char *noun)
{
	char path[64], line[128];
	size_t len = strlen(noun);
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "parklot-", 8) &&
		    !strncmp(line + 8, noun, len) && line[8 + len] == ':')
			value = atol(line + 8 + len + 1);
	fclose(file);
	return value;
}

/* The time limit of the test ends the wait. */
#define UNTIL(cond) do { } while (!(cond) && (sleep_ns(50000), true))

static inline uint32_t nr_parked(const struct space *s, uint32_t lot)
{
	return __atomic_load_n(&s->counters->lot[lot].nr_parked,
			       __ATOMIC_SEQ_CST);
}

static inline uint32_t seq_read(const struct space *s, uint32_t lot)
{
	return __atomic_load_n(&s->words->lot[lot].seq, __ATOMIC_SEQ_CST);
}

/* ---- the crew's counts ---- */

/* Returns the line of the counters for processor @i. */
static inline const struct parklot_cpu_counters *
cpu_counters(const struct space *s, uint32_t i)
{
	return (const void *)((const char *)s->counters +
			      PARKLOT_CPU_OFFSET(s->setup.nr_lots, i));
}

static inline uint32_t nr_cpu_lines(const struct space *s)
{
	return __atomic_load_n(&s->counters->nr_cpus, __ATOMIC_SEQ_CST);
}

/* The tally at @offset: at most the true count, less workers in transit. */
static inline uint32_t crew_count(const struct space *s, size_t offset)
{
	const struct parklot_state_counters *tally;
	uint32_t i, nr = 0;

	for (i = 0; i < nr_cpu_lines(s); i++) {
		tally = (const void *)((const char *)cpu_counters(s, i) +
				       offset);
		nr += __atomic_load_n(&tally->in, __ATOMIC_SEQ_CST);
	}
	for (i = 0; i < nr_cpu_lines(s); i++) {
		tally = (const void *)((const char *)cpu_counters(s, i) +
				       offset);
		nr -= __atomic_load_n(&tally->out, __ATOMIC_SEQ_CST);
	}
	return nr;
}

static inline uint32_t nr_running(const struct space *s)
{
	return crew_count(s, offsetof(struct parklot_cpu_counters, running));
}

static inline uint32_t nr_blocked(const struct space *s)
{
	return crew_count(s, offsetof(struct parklot_cpu_counters, blocked));
}

static inline uint32_t nr_idle_workers(const struct space *s)
{
	return crew_count(s, offsetof(struct parklot_cpu_counters, parked));
}

/* Waits until @nr threads are on @lot; the time limit of the test ends it. */
static inline void wait_parked(const struct space *s, uint32_t lot, uint32_t nr)
{
	while (nr_parked(s, lot) != nr)
		sleep_ns(50000);
}

/* The waker's half of the protocol, without the call. */
static inline uint32_t seq_signal(struct space *s, uint32_t lot)
{
	return __atomic_add_fetch(&s->words->lot[lot].seq, 2, __ATOMIC_SEQ_CST);
}

/* A thread that parks once, at the lot's present seq, and keeps the result. */
struct parker {
	struct space	*space;
	uint32_t	lot;
	uint64_t	deadline;
	uint32_t	seq;
	pthread_t	thread;
	atomic_int	tid;
	atomic_int	result;		/* reason or -errno; 0 before */
};

static inline void *parker_main(void *arg)
{
	struct parker *p = arg;

	atomic_store(&p->tid, gettid());
	atomic_store(&p->result, dev_park(p->space->fd, p->lot, p->seq,
					  p->deadline));
	return NULL;
}

static inline int parker_spawn(struct parker *p, void *(*fn)(void *))
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	err = pthread_create(&p->thread, &attr, fn, p);
	pthread_attr_destroy(&attr);
	return err;
}

/* Starts the thread; returns when the thread is on its lot, or has returned. */
static inline int parker_start(struct parker *p, struct space *s, uint32_t lot,
			       uint64_t deadline)
{
	uint32_t before = nr_parked(s, lot);
	int err;

	memset(p, 0, sizeof(*p));
	p->space = s;
	p->lot = lot;
	p->deadline = deadline;
	p->seq = seq_read(s, lot);
	err = parker_spawn(p, parker_main);
	while (!err && nr_parked(s, lot) != before + 1 &&
	       !atomic_load(&p->result))
		sleep_ns(50000);
	return err;
}

static inline int parker_join(struct parker *p)
{
	pthread_join(p->thread, NULL);
	return atomic_load(&p->result);
}

/* Waits until one of @nr parkers has returned; returns its index. */
static inline int parker_returned(struct parker *p, int nr)
{
	int i;

	for (;;) {
		for (i = 0; i < nr; i++)
			if (p[i].thread && atomic_load(&p[i].result)) {
				parker_join(&p[i]);
				p[i].thread = 0;
				return i;
			}
		sleep_ns(50000);
	}
}

/* Is the device part of the kernel? Then nothing counts references to it. */
static inline bool is_built_in(void)
{
	return access("/sys/module/parklot/initstate", F_OK) != 0;
}

/* References to the module, two for each open file; or -1. */
static inline int nr_open(void)
{
	FILE *file = fopen("/sys/module/parklot/refcnt", "re");
	int nr = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &nr) != 1)
		nr = -1;
	fclose(file);
	return nr;
}

#endif /* SELFTESTS_MOD_H */
