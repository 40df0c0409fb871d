// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes of two cgroups make and close spaces; the first cgroup is at its
 * limit of memory: the second process does not wait for the reclaim, or the
 * throttling, of the first.
 */
#include "kselftest_harness.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include "mod_crew.h"
#include "cgroup.h"

#define NR_ROUNDS	40
#define BALLAST		(24 << 20)	/* of the cgroup at its limit */
#define HIGH		"4M"
#define MAX		"26M"
#define FEW_WORKERS	4096
#define MANY_WORKERS	65536		/* throttled again and again */
#define NR_HELD		64		/* spaces: more than MAX allows */
/* A throttled allocation takes up to 2 s; a busy machine's guest, less. */
#define LONGEST_NS	NSEC_PER_SEC
#define MEDIAN_NS	(250 * NSEC_PER_MSEC)

/* Shared with the process in the cgroup */
struct state {
	atomic_int	is_ready;	/* the process is at its limit */
	atomic_ullong	nr_done;	/* spaces made, or refused */
	atomic_ullong	nr_refused;	/* spaces refused with -ENOMEM */
	bool		has_crew;
};

FIXTURE(reclaim)
{
	struct cgroup cgroup;
	struct state *state;
	uint64_t ns[NR_ROUNDS];
};

FIXTURE_SETUP(reclaim)
{
	int fd = dev_open();

	if (fd == -ENOENT)
		SKIP_ALL("no " DEVICE);
	ASSERT_LE(0, fd);
	self->state = mmap(NULL, sizeof(*self->state), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->state);
	self->state->has_crew = dev_features(fd) & PARKLOT_FEAT_CREW;
	close(fd);
	if (!cgroup_make(&self->cgroup, "reclaim"))
		SKIP_ALL("no memory cgroup");
}

FIXTURE_TEARDOWN(reclaim)
{
	cgroup_remove(&self->cgroup);
}

/* A space that a worker has joined and left; 0, or -errno. */
static int make(uint64_t nr_workers, int *fd)
{
	struct parklot_setup setup = {
		.nr_lots = 1024, .nr_workers = nr_workers,
	};
	int err;

	*fd = dev_open();
	if (*fd < 0)
		return *fd;
	err = dev_ioctl(*fd, PARKLOT_IOC_SETUP, &setup);
	if (!err && nr_workers)
		err = dev_join(*fd, 0);
	if (!err && nr_workers)
		err = dev_leave(*fd, 0);
	return err;
}

/* As many spaces as the cgroup may have, and their closes; 0, or -errno. */
static int make_all(struct state *state)
{
	int err = 0, nr = 0, fd[NR_HELD];

	while (nr < NR_HELD && !err) {
		err = make(state->has_crew ? MANY_WORKERS : 0, &fd[nr]);
		atomic_fetch_add(&state->nr_done, 1);
		nr += fd[nr] >= 0;
	}
	while (nr)
		close(fd[--nr]);
	return err;
}

/* In the cgroup, for ever; as long as that has no limit, none is refused. */
static void __attribute__((noreturn))
live_at_the_limit(const struct cgroup *cgroup, struct state *state)
{
	char *mem;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (cgroup_enter(cgroup))
		_exit(1);
	mem = mmap(NULL, BALLAST, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		_exit(2);
	memset(mem, 1, BALLAST);
	atomic_store(&state->is_ready, 1);
	do {
		err = make_all(state);
		atomic_fetch_add(&state->nr_refused, err == -ENOMEM);
	} while (!err || err == -ENOMEM);
	_exit(3);
}

static int ns_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The durations of some rounds, sorted; 0, or -errno. */
static int measure(FIXTURE_DATA(reclaim) *self)
{
	uint64_t begun;
	int i, fd, err = 0;

	for (i = 0; i < NR_ROUNDS && !err; i++) {
		begun = now_ns();
		err = make(self->state->has_crew ? FEW_WORKERS : 0, &fd);
		close(fd);
		self->ns[i] = now_ns() - begun;
		sleep_ns(50 * NSEC_PER_MSEC);
	}
	qsort(self->ns, NR_ROUNDS, sizeof(self->ns[0]), ns_compare);
	return err;
}

/* A machine that stands still does so once: then all rounds are done again. */
#define EXPECT_NO_WAIT(self, when) do { \
	int __err = measure(self); \
	if (!__err && (self)->ns[NR_ROUNDS - 1] > LONGEST_NS) \
		__err = measure(self); \
	EXPECT_EQ(0, __err); \
	TH_LOG("%s: median %llu us, longest %llu us", when, \
	       (unsigned long long)(self)->ns[NR_ROUNDS / 2] / 1000, \
	       (unsigned long long)(self)->ns[NR_ROUNDS - 1] / 1000); \
	EXPECT_GE(MEDIAN_NS, (self)->ns[NR_ROUNDS / 2]); \
	EXPECT_GE(LONGEST_NS, (self)->ns[NR_ROUNDS - 1]); \
} while (0)

static pid_t start(FIXTURE_DATA(reclaim) *self)
{
	pid_t pid = fork();

	if (!pid)
		live_at_the_limit(&self->cgroup, self->state);
	UNTIL(atomic_load(&self->state->is_ready) ||
	      waitpid(pid, NULL, WNOHANG));
	return pid;
}

static int stop(pid_t pid)
{
	int status = 0;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return status;
}

/* Its memory is more than memory.high: each SETUP sleeps for seconds. */
TEST_TIMED(throttled_cgroup_delays_no_other,
	   "time that passed; one of several tries")
TEST_F_TIMEOUT(reclaim, throttled_cgroup_delays_no_other, 120)
{
	uint64_t nr_done, begun, seconds;
	pid_t pid;

	EXPECT_NO_WAIT(self, "alone");
	pid = start(self);
	ASSERT_EQ(1, atomic_load(&self->state->is_ready));
	EXPECT_EQ(0, cgroup_set(&self->cgroup, "memory.high", HIGH));
	/* The process has been in one SETUP for a second at least. */
	UNTIL((nr_done = atomic_load(&self->state->nr_done),
	       sleep_ns(NSEC_PER_SEC),
	       nr_done == atomic_load(&self->state->nr_done)));
	begun = now_ns();
	EXPECT_NO_WAIT(self, "beside");
	nr_done = atomic_load(&self->state->nr_done) - nr_done;
	seconds = (now_ns() - begun) / NSEC_PER_SEC;
	TH_LOG("the throttled cgroup made %llu in %llu s",
	       (unsigned long long)nr_done, (unsigned long long)seconds);
	EXPECT_GE(NR_ROUNDS / 10 + seconds, nr_done);
	EXPECT_EQ(SIGKILL, stop(pid));
}

/* At memory.max: each SETUP looks for memory to reclaim and finds none. */
TEST_TIMED(cgroup_without_memory_delays_no_other,
	   "time that passed; one of several tries")
TEST_F_TIMEOUT(reclaim, cgroup_without_memory_delays_no_other, 120)
{
	pid_t pid;

	EXPECT_NO_WAIT(self, "alone");
	EXPECT_EQ(0, cgroup_set(&self->cgroup, "memory.max", MAX));
	pid = start(self);
	ASSERT_EQ(1, atomic_load(&self->state->is_ready));
	UNTIL(atomic_load(&self->state->nr_refused));
	EXPECT_NO_WAIT(self, "beside");
	TH_LOG("the cgroup at its limit was refused %llu times",
	       (unsigned long long)atomic_load(&self->state->nr_refused));
	EXPECT_EQ(SIGKILL, stop(pid));
}

TEST_HARNESS_MAIN
