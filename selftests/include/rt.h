/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the tests of the running library; tests of its lower rooms use
 * lib.h. The harness is included before this header.
 *
 * RT_FIXTURE(name) makes the fixture of a file's tests. It starts nothing,
 * since the runtime starts by itself, but stops the runtime and checks that
 * nothing is left behind.
 *
 * No test sleeps for luck. UNTIL(condition) polls for so long that only a hang
 * can fail it.
 *
 * Environment: LIB_TEST_SCALE=N runs N percent of the rounds of long loops, for
 * emulators; sanitizers run fewer anyway.
 */
#ifndef SELFTESTS_RT_H
#define SELFTESTS_RT_H

#include "parklot.h"
#include "objects.h"
#include "parklot/sim.h"
#include "ring/ring.h"
#include "rt/config.h"
#include "wait/wait_lone.h"

#include <fcntl.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#ifndef NSEC_PER_SEC
# define NSEC_PER_SEC	1000000000ULL
#endif
#define STUCK_NS	(20 * NSEC_PER_SEC)

#ifndef ARRAY_SIZE
# define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

#if defined(__has_feature)
# define RT_HAS(x)	__has_feature(x)
#else
# define RT_HAS(x)	0
#endif
#if defined(__SANITIZE_THREAD__) || RT_HAS(thread_sanitizer)
# define RT_TSAN	1
#else
# define RT_TSAN	0
#endif
#if defined(__SANITIZE_ADDRESS__) || RT_HAS(address_sanitizer)
# define RT_ASAN	1
#else
# define RT_ASAN	0
#endif

#ifdef PL_TEST_INJECT
# define RT_INJECT	1
#else
# define RT_INJECT	0
#endif

/* The present test, for checks in tasks and threads. */
static struct __test_metadata __attribute__((unused)) *_metadata;

/* Sets how workers wait; skips the test where that is not available. */
static inline void rt_force_wait(const char *way)
{
	setenv("PARKLOT_WAIT", way, 1);
	if (!strcmp(way, "park") && access("/dev/parklot", R_OK | W_OK))
		SKIP(return, "no /dev/parklot");
	if (!strcmp(way, "futex") && !pl__ring_uring_has_futex())
		SKIP(return, "io_uring waits on no futex here");
}

static inline void rt_begin(struct __test_metadata *test)
{
	_metadata = test;
	objects_begin();
}

/* NULL leaves the choice to the library. */
static inline void rt_begin_io(struct __test_metadata *test, const char *io,
			       const char *wait)
{
	rt_begin(test);
	if (io)
		setenv("PARKLOT_IO", io, 1);
	if (wait)
		rt_force_wait(wait);
}

static inline struct pl_stat rt_stat(void)
{
	struct pl_stat st = PL_STAT_INIT;

	EXPECT_EQ(0, pl_stat_read(&st));
	return st;
}

/* Also those that are surplus. */
static inline bool is_all_parked(void)
{
	struct pl_stat st = rt_stat();

	return st.workers_parked == st.workers;
}

/* CPU time of all workers, also of those that have ended. */
static inline uint64_t rt_cpu_ns(void)
{
	struct pl_stat_worker st = PL_STAT_WORKER_INIT;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; !pl_stat_worker(i, &st); i++)
		sum += st.cpu_ns;
	return sum;
}

static inline void rt_end(void)
{
	int ret = pl_runtime_stop();
	struct pl_stat st = rt_stat();

	if (ret != -EALREADY)
		EXPECT_EQ(0, ret);
	EXPECT_EQ(st.tasks_spawned, st.tasks_ended);
	EXPECT_EQ(0, st.tasks_alive);
	EXPECT_EQ(0, st.timers_alive);
	EXPECT_EQ(0, st.io_in_flight);
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	EXPECT_EQ(0, objects_left());
}

#define RT_FIXTURE(name) \
	FIXTURE(name) { char unused; }; \
	FIXTURE_SETUP(name) { rt_begin(_metadata); } \
	FIXTURE_TEARDOWN(name) { rt_end(); }

/*
 * Stands after FIXTURE(name): its tests run with the back end that the library
 * chooses, which is io_uring where it is allowed, and with epoll. The set-up
 * calls rt_begin_io() with the variant's io and wait.
 */
#define RT_IO_VARIANTS(name) \
	FIXTURE_VARIANT(name) { const char *io, *wait; }; \
	FIXTURE_VARIANT_ADD(name, uring) { .io = NULL }; \
	FIXTURE_VARIANT_ADD(name, poll) { .io = "poll" };

#define RT_IO_FIXTURE(name) \
	FIXTURE(name) { char unused; }; \
	RT_IO_VARIANTS(name) \
	FIXTURE_SETUP(name) \
	{ \
		rt_begin_io(_metadata, variant->io, variant->wait); \
	} \
	FIXTURE_TEARDOWN(name) { rt_end(); }

/* ---- how much, how long ---- */

static inline int scaled(int nr)
{
	const char *s = getenv("LIB_TEST_SCALE");
	long long n = nr;

	if (s && atoi(s) > 0)
		n = n * atoi(s) / 100;
	if (RT_TSAN)
		n /= 20;
	else if (RT_ASAN)
		n /= 4;
	return n < 2 ? 2 : (int)n;
}

/* The deadline in @ms milliseconds. */
static inline uint64_t in_ms(uint64_t ms)
{
	return pl_now() + ms * NSEC_PER_MSEC;
}

static inline void breathe(void)
{
	struct timespec ts = { .tv_nsec = 20 * NSEC_PER_USEC };

	if (pl_self()) {
		pl_yield();
		sched_yield();
	} else {
		nanosleep(&ts, NULL);
	}
}

/* How long a wait lasts until it counts as stuck, on slow machines too. */
static inline uint64_t stuck_ns(void)
{
	const char *factor = getenv("TEST_TIMEOUT_FACTOR");
	int n = factor ? atoi(factor) : 1;

	return STUCK_NS * (uint64_t)(n > 1 ? n : 1);
}

/*
 * How long a thread has waited. If the whole machine stands still, its clock
 * goes on but nothing else does, so a single step counts only a little.
 */
struct patience {
	uint64_t	last_ns;
	uint64_t	spent_ns;
};

static inline bool is_patient(struct patience *p)
{
	uint64_t now = pl_now(), limit = stuck_ns();
	uint64_t step = p->last_ns ? now - p->last_ns : 0;

	p->last_ns = now;
	p->spent_ns += step < limit / 100 ? step : limit / 100;
	return p->spent_ns < limit;
}

/* The condition, or false after a time in which it should have come true. */
#define UNTIL(condition) __extension__ ({ \
	struct patience __patience = { 0, 0 }; \
	bool __is; \
	while (!(__is = (condition)) && is_patient(&__patience)) \
		breathe(); \
	__is; \
})

/*
 * The condition, or false after a time in which neither it came true nor
 * @progress changed: for waits that last as long as the machine takes.
 */
#define UNTIL_NO_MORE(condition, progress) __extension__ ({ \
	struct patience __patience = { 0, 0 }; \
	uint64_t __last = (progress), __next; \
	bool __is; \
	while (!(__is = (condition)) && is_patient(&__patience)) { \
		breathe(); \
		__next = (progress); \
		if (__next != __last) \
			__patience.spent_ns = 0; \
		__last = __next; \
	} \
	__is; \
})

/* The same in a task that keeps its worker to itself. */
#define UNTIL_BUSY(condition) __extension__ ({ \
	struct patience __patience = { 0, 0 }; \
	bool __is; \
	while (!(__is = (condition)) && is_patient(&__patience)) \
		sched_yield(); \
	__is; \
})

/* Simulated, at one point: a look at the clock is one, too. */
static inline void spin_ns(uint64_t ns)
{
	uint64_t end = pl_now() + ns;

#ifdef PL_SIM
	pl_sim_compute(ns);
#endif
	while (pl_now() < end)
		;
}

/* xorshift: the same numbers for the same seed, which is not 0. */
static inline uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* ---- the runtime as a test wants it ---- */

static inline void set_env(const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	setenv(name, text, 1);
}

/* Starts @nr workers, whatever the environment says; @max 0: the default. */
static inline void start_with(uint32_t nr, uint32_t max)
{
	set_env("PARKLOT_WORKERS", nr);
	if (max)
		set_env("PARKLOT_MAX_WORKERS", max);
	else
		unsetenv("PARKLOT_MAX_WORKERS");
	ASSERT_EQ(0, pl_runtime_start(NULL));
}

/* The same, and as many run whatever the load. */
static inline void start_fixed(uint32_t nr, uint32_t max)
{
	set_env("PARKLOT_ELASTIC", 0);
	start_with(nr, max);
	unsetenv("PARKLOT_ELASTIC");
}

static inline int nr_entries(const char *path)
{
	DIR *dir = opendir(path);
	int nr = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr - 2;
}

/* The number of threads with names that begin with @name. */
static inline int nr_threads_named(const char *name)
{
	char path[300], comm[32];
	struct dirent *e;
	int nr = 0;
	DIR *dir;
	FILE *f;

	dir = opendir("/proc/self/task");
	ASSERT_NE(NULL, dir);
	while ((e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f))
			nr += !strncmp(comm, name, strlen(name));
		fclose(f);
	}
	closedir(dir);
	return nr;
}

/* Takes all memory; returns false if memory cannot be limited. */
static inline bool take_all_memory(void)
{
	struct rlimit none = { 0, RLIM_INFINITY };
	void *volatile p;
	size_t size;

	if (RT_ASAN || RT_TSAN || setrlimit(RLIMIT_AS, &none))
		return false;
	p = malloc(64UL << 20);
	if (p)
		return false;
	for (size = 1UL << 20; size >= 16; size /= 2) {
		do {
			p = malloc(size);
		} while (p);
	}
	return true;
}

static inline void give_memory_back(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	EXPECT_EQ(0, setrlimit(RLIMIT_AS, &all));
}

/* Returns true if sysmon runs. */
static inline bool rt_has_sysmon(void)
{
	const char *s = getenv("PARKLOT_WATCH");

	return !s || strcmp(s, "0");
}

/* Expects @nr threads; or more, if one was blocked, stalled, or a spare. */
static inline void expect_workers(uint32_t nr)
{
	struct pl_stat st = rt_stat();

	EXPECT_LE(nr, st.workers);
	if (!st.blocks && !st.stalls && !st.spares)
		EXPECT_EQ(nr, st.workers);
}

/* Workers read it for a hint. */
static __attribute__((unused, noinline, no_sanitize_thread))
void pretend_nr_cpus(uint32_t nr)
{
	pl__rt.nr_cpus = nr;
}

#define NEEDS_CPUS() do { \
	if (pl__cpus_usable() < 2) \
		SKIP(return, "one CPU only"); \
} while (0)

/* Binds the calling thread to @cpu. */
static inline void bind_to_cpu(int cpu)
{
	cpu_set_t one;

	ASSERT_LE(0, cpu);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
}

/* Binds the calling thread to the CPU that comes after @nth others in @set. */
static inline void run_on_cpu(const cpu_set_t *set, int nth)
{
	int cpu = -1;

	do
		cpu++;
	while (!CPU_ISSET(cpu, set) || nth--);
	bind_to_cpu(cpu);
}

/* ---- tasks and threads ---- */

static inline pl_task_t spawn_by(const struct pl_spawn_opts *opts,
				 void (*fn)(void *arg), void *arg)
{
	pl_task_t t = 0;

	ASSERT_EQ(0, pl_spawn(&t, fn, arg, opts));
	return t;
}

static inline pl_task_t spawn_as(uint32_t stack, void (*fn)(void *arg),
				 void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.stack = stack;
	return spawn_by(&opts, fn, arg);
}

static inline pl_task_t spawn_flags(uint32_t flags, void (*fn)(void *arg),
				    void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.flags = flags;
	return spawn_by(&opts, fn, arg);
}

static inline pl_task_t spawn_named(const char *name, void (*fn)(void *arg),
				    void *arg)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.name = name;
	return spawn_by(&opts, fn, arg);
}

static inline pl_task_t spawn(void (*fn)(void *arg), void *arg)
{
	return spawn_as(PL_STACK_NORMAL, fn, arg);
}

static inline void join(pl_task_t t)
{
	EXPECT_EQ(0, pl_join(t));
}

/* Runs @fn(@arg) as a task, to its end. */
static inline void run_as(uint32_t stack, void (*fn)(void *arg), void *arg)
{
	join(spawn_as(stack, fn, arg));
}

static inline void run_in_task(void (*fn)(void *arg), void *arg)
{
	run_as(PL_STACK_NORMAL, fn, arg);
}

/* To a number that no other file gets once it is closed: a low one is free. */
static inline int move_up(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 500);

	close(fd);
	return high;
}

static inline void rt_probe_io(void *arg)
{
	char c;

	*(ssize_t *)arg = pl_read(-1, &c, 1);
}

/* Returns true if tasks wait for I/O by io_uring. */
static inline bool rt_has_uring(void)
{
	ssize_t ret = 0;

	run_in_task(rt_probe_io, &ret);
	EXPECT_EQ(-EBADF, ret);
	return rt_stat().io == PL_IO_URING;
}

/* Tasks and threads that run the same function. */
struct mixed {
	void		(*fn)(void *arg);
	void		*arg;
	int		nr_tasks, nr_threads;
	pl_task_t	task[512];
	pthread_t	thread[16];
};

static inline void *mixed_thread(void *arg)
{
	struct mixed *m = arg;

	m->fn(m->arg);
	return NULL;
}

static inline void mixed_start(struct mixed *m, int nr_tasks, int nr_threads,
			       void (*fn)(void *arg), void *arg)
{
	int i;

	m->fn = fn;
	m->arg = arg;
	m->nr_tasks = nr_tasks;
	m->nr_threads = nr_threads;
	for (i = 0; i < nr_tasks; i++)
		m->task[i] = spawn(fn, arg);
	for (i = 0; i < nr_threads; i++)
		ASSERT_EQ(0, pthread_create(&m->thread[i], NULL, mixed_thread,
					    m));
}

static inline void mixed_join(struct mixed *m)
{
	int i;

	for (i = 0; i < m->nr_tasks; i++)
		join(m->task[i]);
	for (i = 0; i < m->nr_threads; i++)
		pthread_join(m->thread[i], NULL);
}

static inline void mixed_run(int nr_tasks, int nr_threads,
			     void (*fn)(void *arg), void *arg)
{
	static struct mixed m;

	mixed_start(&m, nr_tasks, nr_threads, fn, arg);
	mixed_join(&m);
}

static inline bool may_not(struct pl__task *t, uint64_t arg)
{
	(void)t;
	return false;
}

/* Others can wake it: a task that waits alone has switched away by then. */
static inline bool is_waiting(pl_task_t t)
{
	_Atomic uint32_t *word = atomic_load(&pl__task_slot(t)->waiter.word);

	return word && pl__wait_bits(word) != PL__WAIT_AWAKE;
}

/*
 * Acts as a late waker of the object that lay where task @t waits now; or, if
 * it waits alone, as the timer of an earlier wait.
 */
static inline void wake_late(pl_task_t t)
{
	_Atomic uint32_t *word = atomic_load(&pl__task_slot(t)->waiter.word);

	if (word && pl__wait_is_lone(word))
		pl__wait_abort(pl__task_slot(t), 0, may_not, 0);
	else if (word)
		pl__wake(word, 1);
}

/* The number of waiters on @w; leaves them waiting. */
static inline int nr_waiters(struct pl_word *w)
{
	return (int)pl__nr_waiting(&w->value);
}

#endif /* SELFTESTS_RT_H */
