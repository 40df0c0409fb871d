// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocations that fail. In each call the first allocation or copy is made to
 * fail, then the second, and so on to the last; and all of it again with every
 * later allocation failing too. The caller gets an error, nothing is left
 * behind, and the same call works afterwards. kmemleak reports leaks when the
 * machine shuts down.
 *
 * With MOD_FUZZ_MODULE=FILE.ko, loading the module is tested in the same way.
 */
#include "kselftest_harness.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include "fail_nth.h"
#include "mod_crew.h"

#define NR_LOTS		64	/* the lots take more than one page */
#define NR_WORKERS	2048
#define NTH_MAX		10000
#define NR_PASSES	10
#define MEMLOCK		(1 << 20)
/* The last allocations of loading are those of the module and its device. */
#define NTH_OF_INIT	150

FIXTURE(nomem)
{
	struct fail_nth fail;
	struct space s;
	int nr_open;
	int fd;			/* opened by the call itself */
	void *map;
	struct parklot_park park;
	struct parklot_wake_entry entry[PARKLOT_MAX_BATCH];
	struct parklot_wake wake;
	char text[512];
};

FIXTURE_SETUP(nomem)
{
	CREW_SETUP(&self->s, NR_LOTS, NR_WORKERS);
	if (!fail_set_up(&self->fail))
		SKIP_ALL("this kernel cannot make allocations fail");
	self->nr_open = nr_open();
	self->park = (struct parklot_park){
		.lot = 1, .deadline_ns = PARKLOT_FOREVER, .pollfd = -1,
	};
	self->wake = (struct parklot_wake){
		.entries = (uintptr_t)self->entry, .limit = ~0U,
		.nr_entries = PARKLOT_MAX_BATCH,
	};
}

FIXTURE_TEARDOWN(nomem)
{
	space_close(&self->s);
}

/*
 * before() and after() are given all memory that they need; call() returns 0 or
 * -errno.
 */
typedef FIXTURE_DATA(nomem) nomem_t;

struct trial {
	int (*before)(nomem_t *self);
	int (*call)(nomem_t *self);
	/*
	 * Undoes the call, which it repeats if it failed; returns 0, or the
	 * fault.
	 */
	int (*after)(nomem_t *self, int err);
};

static int nothing(nomem_t *self)
{
	(void)self;
	return 0;
}

static bool is_refusal(int err)
{
	return err == -ENOMEM || err == -EFAULT || err == -EAGAIN ||
	       err == -ENFILE;
}

/* How many allocations and copies failed and gave the caller an error. */
static int try_all(struct __test_metadata *_metadata, nomem_t *self,
		   const struct trial *trial, bool and_all_after)
{
	int nth, err, left = 0, nr_refused = 0;

	for (nth = 1; !left && nth < NTH_MAX; nth++) {
		ASSERT_EQ(0, trial->before(self));
		fail_arm(&self->fail, nth, and_all_after);
		err = trial->call(self);
		left = fail_disarm(&self->fail);
		nr_refused += err < 0;
		EXPECT_TRUE(!err || (!left && is_refusal(err))) {
			TH_LOG("the %d. failed: %d", nth, err);
		}
		EXPECT_EQ(0, trial->after(self, err)) {
			TH_LOG("after the %d. failed: %d", nth, err);
		}
		EXPECT_EQ(self->nr_open, nr_open());
		EXPECT_EQ(0, fdinfo(getpid(), self->s.fd, "parked"));
		EXPECT_EQ(0, nr_running(&self->s));
	}
	EXPECT_LT(nth, NTH_MAX);
	return nr_refused;
}

/*
 * Until as many calls were refused as there are known allocations. The kernel's
 * own checkers allocate too, now and then, so one may be missed.
 */
static void try_until(struct __test_metadata *_metadata, nomem_t *self,
		      const struct trial *trial, bool and_all_after, int nr)
{
	int i;

	for (i = 0; nr > 0 && i < NR_PASSES; i++)
		nr -= try_all(_metadata, self, trial, and_all_after);
	EXPECT_LE(nr, 0);
}

/* With single failures, and with all later allocations failing. */
#define TRY(trial, nr_single, nr_together) do { \
	try_until(_metadata, self, trial, false, nr_single); \
	try_until(_metadata, self, trial, true, nr_together); \
} while (0)

static int call_open(nomem_t *self)
{
	self->fd = dev_open();
	return self->fd < 0 ? self->fd : 0;
}

static int after_open(nomem_t *self, int err)
{
	if (err)
		self->fd = dev_open();
	return self->fd < 0 ? self->fd : close(self->fd);
}

static const struct trial opening = { nothing, call_open, after_open };

/* The file, the space, the user's own counter. */
TEST_F(nomem, failed_open_leaves_no_trace)
{
	TRY(&opening, 2, 2);
}

static int before_setup(nomem_t *self)
{
	self->fd = dev_open();
	return self->fd < 0 ? self->fd : 0;
}

static int call_setup(nomem_t *self)
{
	struct parklot_setup setup = {
		.nr_lots = NR_LOTS, .nr_workers = NR_WORKERS,
	};

	return dev_ioctl(self->fd, PARKLOT_IOC_SETUP, &setup);
}

static int after_setup(nomem_t *self, int err)
{
	if (err)
		err = call_setup(self);
	if (!err)
		err = dev_wake(self->fd, NR_LOTS - 1, 1);
	close(self->fd);
	return err;
}

static const struct trial setting_up = {
	before_setup, call_setup, after_setup,
};

/* The copy, the struct of lots, its lots, both areas page by page, the crew. */
TEST_F(nomem, failed_setup_leaves_no_trace)
{
	int nr_pages = (self->s.setup.counters_size +
			self->s.setup.words_size) / sysconf(_SC_PAGESIZE);

	TRY(&setting_up, nr_pages + 4, nr_pages + 6);
}

/* How many spaces the user may have at a time. */
static int nr_setups(nomem_t *self)
{
	int fd[MEMLOCK / 4096], nr = 0, i, err = 0;

	while (!err && nr < (int)ARRAY_SIZE(fd)) {
		err = before_setup(self);
		if (err)
			break;
		fd[nr++] = self->fd;
		err = call_setup(self);
	}
	for (i = 0; i < nr; i++)
		close(fd[i]);
	return err == -ENOMEM ? nr - 1 : -1;
}

/* What a failed SETUP has charged the user for is returned. */
TEST_F(nomem, setup_that_fails_is_not_charged)
{
	struct rlimit limit = { MEMLOCK, MEMLOCK };
	int nr;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(65534) ||
	    setuid(65534))
		SKIP(return, "cannot become nobody");
	nr = nr_setups(self);
	EXPECT_LT(0, nr);
	/* Only root may have all allocations fail. */
	try_until(_metadata, self, &setting_up, false, 3);
	/* Spaces with workers are freed by a work item. */
	UNTIL(nr_setups(self) == nr);
}

static int before_mmap(nomem_t *self)
{
	int err = before_setup(self);

	return err ? err : call_setup(self);
}

static int call_mmap(nomem_t *self)
{
	self->map = mmap(NULL, self->s.setup.words_size, PROT_READ | PROT_WRITE,
			 MAP_SHARED, self->fd, PARKLOT_OFF_WORDS);
	return self->map == MAP_FAILED ? -errno : 0;
}

static int after_mmap(nomem_t *self, int err)
{
	if (err)
		err = call_mmap(self);
	if (!err)
		((char *)self->map)[self->s.setup.words_size - 1] = 1;
	munmap(self->map, self->s.setup.words_size);
	close(self->fd);
	return err;
}

TEST_F(nomem, failed_mapping_leaves_no_trace)
{
	static const struct trial trial = {
		before_mmap, call_mmap, after_mmap,
	};

	TRY(&trial, 1, 1);
}

static int call_query(nomem_t *self)
{
	struct parklot_query query = { 0 };

	return dev_ioctl(self->s.fd, PARKLOT_IOC_QUERY, &query);
}

static int call_crew(nomem_t *self)
{
	return dev_crew(self->s.fd, 1, 2, 1000);
}

static int after_crew(nomem_t *self, int err)
{
	(void)err;
	return dev_crew(self->s.fd, 0, ~0U, 0);
}

static int after_query(nomem_t *self, int err)
{
	return err ? call_query(self) : 0;
}

TEST_F(nomem, failed_query_leaves_no_trace)
{
	static const struct trial query = { nothing, call_query, after_query };
	static const struct trial crew = { nothing, call_crew, after_crew };

	TRY(&query, 1, 1);
	TRY(&crew, 1, 1);
}

static int call_join(nomem_t *self)
{
	return dev_join(self->s.fd, NR_WORKERS - 1);
}

static int call_leave(nomem_t *self)
{
	return dev_leave(self->s.fd, NR_WORKERS - 1);
}

static int after_join(nomem_t *self, int err)
{
	if (err)
		err = call_join(self);
	return err ? err : call_leave(self);
}

static int after_leave(nomem_t *self, int err)
{
	return err ? call_leave(self) : 0;
}

TEST_F(nomem, failed_join_leaves_no_trace)
{
	static const struct trial join = { nothing, call_join, after_join };
	static const struct trial leave = {
		call_join, call_leave, after_leave,
	};

	TRY(&join, 2, 2);
	TRY(&leave, 1, 1);
}

/*
 * A repeated call after a failure would sleep for ever: the deadline is past.
 */
static int before_park(nomem_t *self)
{
	self->park.deadline_ns = now_ns() + 2 * NSEC_PER_MSEC;
	return 0;
}

static int call_park(nomem_t *self)
{
	return dev_ioctl(self->s.fd, PARKLOT_IOC_PARK, &self->park);
}

static int after_park(nomem_t *self, int err)
{
	if (err)
		err = call_park(self);
	return err ? err : self->park.reason != PARKLOT_TIMEDOUT;
}

TEST_F(nomem, failed_park_leaves_no_trace)
{
	static const struct trial trial = {
		before_park, call_park, after_park,
	};
	int pipefd[2];

	TRY(&trial, 1, 1);
	ASSERT_EQ(0, pipe(pipefd));
	self->park.pollfd = pipefd[0];
	self->park.poll_events = 1;
	TRY(&trial, 1, 1);
}

static int call_wake(nomem_t *self)
{
	return dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE, &self->wake);
}

static int after_wake(nomem_t *self, int err)
{
	return err ? call_wake(self) : 0;
}

/* It copies a word at a time, which no fault is injected into. */
TEST_F(nomem, wake_takes_no_memory)
{
	static const struct trial trial = { nothing, call_wake, after_wake };

	EXPECT_EQ(0, try_all(_metadata, self, &trial, false));
	EXPECT_EQ(0, try_all(_metadata, self, &trial, true));
}

static int call_wake_park(nomem_t *self)
{
	struct parklot_wake_park both = {
		.wake = self->wake, .park = self->park,
	};
	int err = dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE_PARK, &both);

	self->park.reason = both.park.reason;
	return err;
}

TEST_F(nomem, failed_wake_park_leaves_no_trace)
{
	static const struct trial trial = {
		before_park, call_wake_park, after_park,
	};

	TRY(&trial, 1, 1);
}

static int before_fdinfo(nomem_t *self)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->s.fd);
	self->fd = open(path, O_RDONLY | O_CLOEXEC);
	return self->fd < 0 ? -errno : 0;
}

static int call_fdinfo(nomem_t *self)
{
	ssize_t len = pread(self->fd, self->text, sizeof(self->text) - 1, 0);

	self->text[len < 0 ? 0 : len] = 0;
	return len < 0 ? -errno : 0;
}

static int after_fdinfo(nomem_t *self, int err)
{
	if (err)
		err = call_fdinfo(self);
	close(self->fd);
	return err ? err : !strstr(self->text, "parklot-lots:\t64\n");
}

TEST_F(nomem, failed_fdinfo_leaves_no_trace)
{
	static const struct trial trial = {
		before_fdinfo, call_fdinfo, after_fdinfo,
	};

	TRY(&trial, 1, 1);
}

/* The module may be loaded; its last file may still be closing. */
#define UNLOAD() \
	UNTIL(!syscall(SYS_delete_module, "parklot", O_NONBLOCK) || \
	      errno == ENOENT)

static int load(struct fail_nth *fail, int fd, unsigned int nth,
		unsigned int *left)
{
	int err;

	fail_arm(fail, nth, false);
	err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	*left = fail_disarm(fail);
	return err;
}

/* How many allocations the load takes, once it takes no more at first use. */
static unsigned int nr_of_load(struct __test_metadata *_metadata,
			       struct fail_nth *fail, int fd)
{
	unsigned int nr = 0, before, left;
	int i = 0;

	do {
		before = nr;
		UNLOAD();
		ASSERT_EQ(0, load(fail, fd, 1U << 30, &left));
		nr = (1U << 30) - left;
	} while (nr != before && ++i < 10);
	return nr;
}

TEST_F_TIMEOUT(nomem, module_is_loaded_or_not, 120)
{
	const char *path = getenv("MOD_FUZZ_MODULE");
	unsigned int left, nr, nth, nr_refused = 0;
	int fd, err;

	if (!path || !*path)
		SKIP(return, "no module to load again");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	space_close(&self->s);
	nr = nr_of_load(_metadata, &self->fail, fd);
	for (nth = nr - NTH_OF_INIT; nth <= nr; nth++) {
		UNLOAD();
		err = load(&self->fail, fd, nth, &left);
		EXPECT_TRUE(!err || is_refusal(err)) {
			TH_LOG("the %u. of %u failed: %d", nth, nr, err);
		}
		EXPECT_EQ(err ? -1 : 0, nr_open());
		nr_refused += !!err;
	}
	EXPECT_LT(2, nr_refused);
	/* The guest may lack the device's node. */
	UNLOAD();
	EXPECT_EQ(0, syscall(SYS_finit_module, fd, "", 0));
	EXPECT_EQ(0, space_open(&self->s, 1));
}

TEST_HARNESS_MAIN
