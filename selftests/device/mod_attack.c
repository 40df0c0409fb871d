// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attacks and bad luck: words overwritten while the kernel reads them, opens
 * without end, a kill at the worst moment, a machine that freezes. Bad input is
 * in mod_input.c, other processes' descriptors in mod_owner.c, the areas in
 * mod_map.c.
 */
#include "kselftest_harness.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include "mod_crew.h"

#define NR_LOTS		4
#define NR_PARKERS	3
#define NR_ROUNDS	500
#define NR_OPENS	100000
#define MEMLOCK		(4 << 20)
/* The number of opens, or as many as a debug kernel makes in this time. */
#define SLOW_NS		(20 * NSEC_PER_SEC)

FIXTURE(attack)
{
	struct space s;
	uint32_t nr_workers;
};

FIXTURE_SETUP(attack)
{
	SPACE_SETUP(&self->s, NR_LOTS);
	if (!(dev_features(self->s.fd) & PARKLOT_FEAT_CREW))
		return;
	space_close(&self->s);
	self->nr_workers = NR_PARKERS;
	ASSERT_EQ(0, space_open_crew(&self->s, NR_LOTS, self->nr_workers));
}

FIXTURE_TEARDOWN(attack)
{
	space_close(&self->s);
}

static uint64_t next_of(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* State of the threads of scribbled_words_break_no_count. */
struct mess {
	struct space	*s;
	uint32_t	nr_workers;
	atomic_int	nr_left;	/* threads that still park */
	atomic_int	nr_slots;
	atomic_int	nr_woken;	/* as counted by the wakees */
	uint64_t	end;		/* for slow machines */
	atomic_int	err;
};

/* Writes any value anywhere in the words. */
static void *scribble(void *arg)
{
	struct mess *mess = arg;
	uint32_t *words = (uint32_t *)mess->s->words;
	size_t nr = mess->s->setup.words_size / sizeof(*words);
	uint64_t state = 88172645463325252;

	while (atomic_load(&mess->nr_left)) {
		uint64_t now = next_of(&state);

		__atomic_store_n(&words[now % nr],
				 now & 1 << 20 ? now >> 32 : now >> 62,
				 __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *park_in_a_mess(void *arg)
{
	struct mess *mess = arg;
	struct space *s = mess->s;
	uint32_t slot = atomic_fetch_add(&mess->nr_slots, 1);
	int i, err = mess->nr_workers ? dev_join(s->fd, slot) : 0;

	for (i = 0; !err && i < NR_ROUNDS && now_ns() < mess->end; i++) {
		uint32_t lot = (slot + i) % NR_LOTS;
		int reason = dev_park(s->fd, lot, seq_read(s, lot),
				      now_ns() + 200000);

		if (reason == PARKLOT_WOKEN)
			atomic_fetch_add(&mess->nr_woken, 1);
		else if (reason < 0 || reason == PARKLOT_INTERRUPTED)
			err = reason;
	}
	if (mess->nr_workers && !err)
		err = dev_leave(s->fd, slot);
	if (err)
		atomic_store(&mess->err, err);
	atomic_fetch_sub(&mess->nr_left, 1);
	return NULL;
}

static int wake_in_a_mess(struct mess *mess)
{
	struct parklot_wake_entry entry[NR_LOTS];
	int i, woken, all = 0;

	while (atomic_load(&mess->nr_left)) {
		for (i = 0; i < NR_LOTS; i++)
			entry[i] = (struct parklot_wake_entry){
				.lot = i, .nr = 1,
			};
		woken = dev_wake_batch(mess->s->fd, entry, NR_LOTS, ~0U);
		if (woken < 0)
			return woken;
		all += woken;
		sleep_ns(50000);
	}
	return all;
}

TEST_F_TIMEOUT(attack, scribbled_words_break_no_count, 60)
{
	struct mess mess = {
		.s = &self->s, .nr_workers = self->nr_workers,
		.nr_left = NR_PARKERS, .end = now_ns() + SLOW_NS,
	};
	pthread_t parker[NR_PARKERS], scribbler;
	int i, all;

	if (self->nr_workers)
		EXPECT_EQ(0, dev_crew(self->s.fd, 2, NR_PARKERS, 0));
	ASSERT_EQ(0, pthread_create(&scribbler, NULL, scribble, &mess));
	for (i = 0; i < NR_PARKERS; i++)
		ASSERT_EQ(0, pthread_create(&parker[i], NULL, park_in_a_mess,
					    &mess));
	all = wake_in_a_mess(&mess);
	for (i = 0; i < NR_PARKERS; i++)
		pthread_join(parker[i], NULL);
	pthread_join(scribbler, NULL);
	EXPECT_EQ(0, atomic_load(&mess.err));
	EXPECT_EQ(all, atomic_load(&mess.nr_woken));
	for (i = 0; i < NR_LOTS; i++)
		EXPECT_EQ(0, nr_parked(&self->s, i));
	EXPECT_EQ(0, nr_running(&self->s));
	EXPECT_EQ(0, nr_blocked(&self->s));
	EXPECT_EQ(0, nr_idle_workers(&self->s));
}

/* A process that leaves all spaces open pins at most RLIMIT_MEMLOCK. */
TEST_F_TIMEOUT(attack, hundred_thousand_setups_pin_no_more_than_one, 120)
{
	struct rlimit files = { NR_OPENS, NR_OPENS };
	struct rlimit memlock = { MEMLOCK, MEMLOCK };
	uint64_t end = now_ns() + SLOW_NS;
	int i, fd, err, nr_made = 0, nr_refused = 0, last = -1;

	if (setrlimit(RLIMIT_NOFILE, &files) ||
	    setrlimit(RLIMIT_MEMLOCK, &memlock) || setgid(65534) ||
	    setuid(65534))
		SKIP(return, "cannot become nobody with many files");
	for (i = 0; i < NR_OPENS && now_ns() < end; i++) {
		fd = dev_open();
		if (fd < 0)
			break;
		err = dev_setup(fd, 64);
		nr_made += !err;
		nr_refused += err == -ENOMEM;
		if (!err)
			last = fd;
		else if (i & 1)
			close(fd);
	}
	/* Two pages for an area, and more for the lots. */
	EXPECT_LT(0, nr_made);
	EXPECT_GE(MEMLOCK / (4 * sysconf(_SC_PAGESIZE)), nr_made);
	EXPECT_EQ(i - nr_made, nr_refused);
	EXPECT_EQ(0, dev_wake(last, 0, 1));
}

/*
 * A process that shares our memory, and so the space, and may be killed alone.
 */
static int park_apart(void *arg)
{
	parker_main(arg);
	return 0;
}

static pid_t parker_apart(struct parker *p, struct space *s, void *stack,
			  size_t size)
{
	pid_t pid;

	memset(p, 0, sizeof(*p));
	p->space = s;
	p->deadline = PARKLOT_FOREVER;
	p->seq = seq_read(s, 0);
	pid = clone(park_apart, (char *)stack + size,
		    CLONE_VM | CLONE_FILES | SIGCHLD, p);
	wait_parked(s, 0, 2);
	return pid;
}

/*
 * From now on, threads bound to our processor run only while this one sleeps.
 */
static bool rule_processor(void)
{
	struct sched_param param = { .sched_priority = 1 };

	return !sched_setscheduler(0, SCHED_FIFO, &param);
}

static bool bind_to_one(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

/* The first of two parkers is woken, and killed before it runs. */
#define KILL_ONE(wakes_first) do { \
	static char stack[64 << 10] __attribute__((aligned(64))); \
	struct parker stays, goes; \
	int status; \
	pid_t pid; \
	\
	ASSERT_EQ(0, parker_start(&stays, &self->s, 0, PARKLOT_FOREVER)); \
	ASSERT_TRUE(bind_to_one()); \
	pid = parker_apart(&goes, &self->s, stack, sizeof(stack)); \
	ASSERT_LT(0, pid); \
	if (!rule_processor()) \
		SKIP(return, "not root"); \
	if (!(wakes_first)) \
		EXPECT_EQ(0, kill(pid, SIGKILL)); \
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1)); \
	if (wakes_first) \
		EXPECT_EQ(0, kill(pid, SIGKILL)); \
	EXPECT_EQ(pid, waitpid(pid, &status, 0)); \
	EXPECT_EQ(0, atomic_load(&goes.result)); \
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&stays)); \
	EXPECT_EQ(0, nr_parked(&self->s, 0)); \
} while (0)

TEST_F(attack, wake_of_a_dying_sleeper_passes_on)
{
	KILL_ONE(true);
}

TEST_F(attack, wake_of_a_killed_sleeper_passes_on)
{
	KILL_ONE(false);
}

/* Known and unknown commands, with good and bad pointers. */
static void call_at_random(int fd, uint64_t *seed)
{
	static const unsigned long cmds[] = {
		PARKLOT_IOC_QUERY, PARKLOT_IOC_SETUP, PARKLOT_IOC_PARK,
		PARKLOT_IOC_WAKE, PARKLOT_IOC_WAKE_PARK, PARKLOT_IOC_CREW,
		PARKLOT_IOC_WORKER_JOIN, PARKLOT_IOC_WORKER_LEAVE,
	};
	unsigned long cmd = cmds[next_of(seed) % ARRAY_SIZE(cmds)];
	static char buf[1 << _IOC_SIZEBITS];	/* all writable */
	unsigned int i;

	for (i = 0; i < 256; i++)
		buf[i] = next_of(seed);
	if (next_of(seed) & 1)
		cmd ^= 1UL << next_of(seed) % 32;
	dev_ioctl(fd, cmd, next_of(seed) & 3 ? buf : (void *)(uintptr_t)*seed);
}

/* Counts the lines of @fd that come from the module. */
static int nr_logged(int fd)
{
	char line[8192];
	ssize_t len;
	int nr = 0;

	for (;;) {
		len = read(fd, line, sizeof(line) - 1);
		if (len < 0 && errno == EAGAIN)
			return nr;
		line[len < 0 ? 0 : len] = 0;
		nr += strstr(line, "parklot") != NULL;
	}
}

/* The kernel's log has no line for any use or abuse of the device. */
TEST_F(attack, attacks_log_nothing)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	uint64_t seed = 1;
	int i, fd = self->s.fd;

	ASSERT_LE(0, log);
	EXPECT_LE(0, lseek(log, 0, SEEK_END));
	for (i = 0; i < 1000; i++) {
		call_at_random(fd, &seed);
		dev_park(fd, 0, seq_read(&self->s, 0), now_ns() + 1000);
	}
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 4096));
	EXPECT_EQ(0, nr_logged(log));
	close(log);
}

/* All processes but the caller are frozen, and thawed again. */
TEST_F(attack, freeze_leaves_sleepers_parked)
{
	struct parker parker[2];
	int i;

	if (write_file("/sys/power", "pm_test", "freezer") ||
	    write_file("/sys/module/suspend/parameters", "pm_test_delay", "0"))
		SKIP(return, "this kernel cannot freeze for a test");
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, parker_start(&parker[i], &self->s, i,
					  PARKLOT_FOREVER));
	EXPECT_EQ(0, write_file("/sys/power", "state", "freeze"));
	EXPECT_EQ(0, write_file("/sys/power", "pm_test", "none"));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(1, nr_parked(&self->s, i));
		EXPECT_EQ(0, atomic_load(&parker[i].result));
		EXPECT_EQ(1, dev_wake(self->s.fd, i, 1));
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker[i]));
	}
}

TEST_HARNESS_MAIN
