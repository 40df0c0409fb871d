// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bad input, field by field: refused with the documented error, without effect.
 */
#include "kselftest_harness.h"

#include "mod.h"

FIXTURE(input)
{
	struct space s;
	struct parker parker;			/* on lot 0 throughout */
	struct parklot_wake_entry entry[2];	/* nr 0, of lots 0 and 1 */
	struct parklot_park park;		/* polls lot 1 */
	struct parklot_wake wake;
	struct parklot_wake_park both;
	unsigned char *edge;			/* start of an unmapped page */
};

/* The end of accessible memory: memory below it is readable and writable. */
static unsigned char *make_edge(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	unsigned char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED || munmap(p + page, page) ? NULL : p + page;
}

FIXTURE_SETUP(input)
{
	SPACE_SETUP(&self->s, 2);
	ASSERT_EQ(0, parker_start(&self->parker, &self->s, 0,
				  PARKLOT_FOREVER));
	self->entry[1].lot = 1;
	self->park.lot = 1;
	self->park.pollfd = -1;
	self->wake.entries = (uintptr_t)self->entry;
	self->wake.nr_entries = 2;
	self->wake.limit = ~0U;
	self->both.wake = self->wake;
	self->both.park = self->park;
	self->edge = make_edge();
	ASSERT_NE(NULL, (void *)self->edge);
}

/* No refused call has woken the parker on lot 0. */
FIXTURE_TEARDOWN(input)
{
	EXPECT_EQ(0, nr_parked(&self->s, 1));
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&self->parker));
	space_close(&self->s);
}

/* The commands that the tests modify are accepted unmodified. */
TEST_F(input, good_commands_are_accepted)
{
	int fd = self->s.fd;

	EXPECT_EQ(0, dev_ioctl(fd, PARKLOT_IOC_PARK, &self->park));
	EXPECT_EQ(0, dev_ioctl(fd, PARKLOT_IOC_WAKE, &self->wake));
	EXPECT_EQ(0, dev_ioctl(fd, PARKLOT_IOC_WAKE_PARK, &self->both));
}

TEST_F(input, bad_setup_fields_are_refused)
{
	struct parklot_setup bad[] = {
		{ .nr_lots = 0 },
		{ .nr_lots = 1025 },
		{ .nr_lots = 0x80000001 },
		{ .nr_lots = 1, .nr_workers = 65537 },
		{ .nr_lots = 1, .flags = 1 },
		{ .nr_lots = 1, .flags = 0x80000000 },
		{ .nr_lots = 1, .reserved = 1 },
		{ .nr_lots = 1, .reserved = 0x80000000 },
	};
	int fd = dev_open();
	size_t i;

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, dev_ioctl(fd, PARKLOT_IOC_SETUP, &bad[i])) {
			TH_LOG("bad setup %zu", i);
		}
	}
	EXPECT_EQ(0, dev_setup(fd, 1));
	close(fd);
}

TEST_F(input, bad_park_fields_are_refused)
{
	struct {
		int err;
		struct parklot_park park;
	} bad[] = {
		{ -EINVAL, { .lot = 2, .pollfd = -1 } },
		{ -EINVAL, { .lot = 0x80000000, .pollfd = -1 } },
		{ -EINVAL, { .lot = ~0U, .pollfd = -1 } },
		{ -EINVAL, { .flags = 2, .pollfd = -1 } },
		{ -EINVAL, { .flags = 0x80000000, .pollfd = -1 } },
		{ -EINVAL, { .flags = ~0U, .pollfd = -1 } },
		{ -EINVAL, { .pollfd = -1, .poll_events = 1 } },
		{ -EINVAL, { .pollfd = -1, .poll_events = 0x80000000 } },
		{ -EINVAL, { .pollfd = 0, .poll_events = 0x10000 } },
		{ -EINVAL, { .pollfd = 0, .poll_events = 0x80000000 } },
		{ -EBADF, { .pollfd = -2 } },
		{ -EBADF, { .pollfd = 0x7fffffff, .poll_events = 1 } },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(bad[i].err, dev_ioctl(self->s.fd, PARKLOT_IOC_PARK,
						&bad[i].park)) {
			TH_LOG("bad park %zu", i);
		}
	}
}

TEST_F(input, bad_wake_fields_are_refused)
{
	static const uint32_t nr_entries[] = {
		65, 0x10000000, 0x10000001, 0x80000000, ~0U,
	};
	int bit, fd = self->s.fd;
	size_t i;

	self->entry[0].nr = 1;
	for (i = 0; i < ARRAY_SIZE(nr_entries); i++) {
		self->wake.nr_entries = nr_entries[i];
		EXPECT_EQ(-EINVAL, dev_ioctl(fd, PARKLOT_IOC_WAKE,
					     &self->wake));
	}
	self->wake.nr_entries = 2;
	for (bit = 0; bit < 32; bit++) {
		self->wake.flags = 1U << bit;
		EXPECT_EQ(-EINVAL, dev_ioctl(fd, PARKLOT_IOC_WAKE,
					     &self->wake));
	}
}

/* The second entry is bad: the good first entry must not be served. */
TEST_F(input, bad_wake_entries_are_refused)
{
	static const struct parklot_wake_entry bad[] = {
		{ .lot = 2 },
		{ .lot = 0x80000000 },
		{ .lot = ~0U },
		{ .lot = 1, .reserved = 1 },
		{ .lot = 1, .reserved = 0x80000000 },
	};
	size_t i;

	self->entry[0].nr = 1;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		self->entry[1] = bad[i];
		EXPECT_EQ(-EINVAL, dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE,
					     &self->wake)) {
			TH_LOG("bad entry %zu", i);
		}
		self->both.wake = self->wake;
		EXPECT_EQ(-EINVAL, dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE_PARK,
					     &self->both)) {
			TH_LOG("bad entry %zu", i);
		}
	}
}

#define UNTOUCHED	0xdeadbeef

/*
 * Refused for its second entry: no output is written to the first one either.
 */
TEST_F(input, refused_calls_write_nothing)
{
	int fd = self->s.fd;

	self->entry[0].nr = 1;
	self->entry[0].woken = UNTOUCHED;
	self->entry[1].woken = UNTOUCHED;
	self->entry[1].reserved = 1;
	self->wake.woken = UNTOUCHED;
	self->both.wake = self->wake;
	self->both.park.reason = UNTOUCHED;
	self->park.reason = UNTOUCHED;
	self->park.lot = 2;
	EXPECT_EQ(-EINVAL, dev_ioctl(fd, PARKLOT_IOC_PARK, &self->park));
	EXPECT_EQ(-EINVAL, dev_ioctl(fd, PARKLOT_IOC_WAKE, &self->wake));
	EXPECT_EQ(-EINVAL, dev_ioctl(fd, PARKLOT_IOC_WAKE_PARK, &self->both));
	self->wake.entries = (uintptr_t)self->edge;
	EXPECT_EQ(-EFAULT, dev_ioctl(fd, PARKLOT_IOC_WAKE, &self->wake));
	EXPECT_EQ(UNTOUCHED, self->park.reason);
	EXPECT_EQ(UNTOUCHED, self->wake.woken);
	EXPECT_EQ(UNTOUCHED, self->both.wake.woken);
	EXPECT_EQ(UNTOUCHED, self->both.park.reason);
	EXPECT_EQ(UNTOUCHED, self->entry[0].woken);
	EXPECT_EQ(UNTOUCHED, self->entry[1].woken);
}

/* One page is writable and the next is read-only: the first stays unchanged. */
TEST_F(input, read_only_entries_are_left_alone)
{
	size_t page = sysconf(_SC_PAGESIZE);
	unsigned char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct parklot_wake_entry *entry = (void *)(p + page);

	ASSERT_NE(MAP_FAILED, (void *)p);
	entry[-1].nr = 1;
	entry[-1].woken = UNTOUCHED;
	ASSERT_EQ(0, mprotect(entry, page, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_wake_batch(self->s.fd, entry - 1, 2, ~0U));
	EXPECT_EQ(UNTOUCHED, entry[-1].woken);
}

static void ignore(int sig)
{
	(void)sig;
}

static void *interrupted_park(void *arg)
{
	FIXTURE_DATA(input) *self = arg;

	self->park.deadline_ns = PARKLOT_FOREVER;
	self->park.reason = UNTOUCHED;
	return (void *)(intptr_t)dev_ioctl(self->s.fd, PARKLOT_IOC_PARK,
					   &self->park);
}

TEST_F(input, signal_leaves_the_reason_alone)
{
	struct sigaction action = { .sa_handler = ignore };
	pthread_t thread;
	void *err;

	sigaction(SIGUSR1, &action, NULL);
	ASSERT_EQ(0, pthread_create(&thread, NULL, interrupted_park, self));
	wait_parked(&self->s, 1, 1);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, &err);
	EXPECT_EQ(-EINTR, (intptr_t)err);
	EXPECT_EQ(UNTOUCHED, self->park.reason);
}

/* The outputs are written even if no sleeper was woken. */
TEST_F(input, outputs_of_an_empty_wake_are_zero)
{
	self->entry[0].woken = UNTOUCHED;
	self->entry[1].woken = UNTOUCHED;
	self->wake.woken = UNTOUCHED;
	EXPECT_EQ(0, dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE, &self->wake));
	EXPECT_EQ(0, self->wake.woken);
	EXPECT_EQ(0, self->entry[0].woken);
	EXPECT_EQ(0, self->entry[1].woken);
}

/*
 * Flags of each bit; a bad half is refused before the other half has effects.
 */
TEST_F(input, bad_wake_park_flags_are_refused)
{
	int bit;

	self->entry[0].nr = 1;
	self->both.park.deadline_ns = PARKLOT_FOREVER;
	for (bit = 1; bit < 32; bit++) {
		self->both.wake.flags = 1U << bit;
		EXPECT_EQ(-EINVAL,
			  dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE_PARK,
				    &self->both));
	}
	self->both.wake.flags = 0;
	for (bit = 1; bit < 32; bit++) {
		self->both.park.flags = 1U << bit;
		EXPECT_EQ(-EINVAL, dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE_PARK,
					     &self->both));
	}
}

TEST_F(input, masked_crew_is_refused)
{
	struct parklot_worker worker = {};
	struct parklot_crew crew = { .target = 1, .max = 1 };
	int fd = self->s.fd;
	bool is_built = dev_features(fd) & PARKLOT_FEAT_CREW;

	if (!set_features(~(unsigned long)PARKLOT_FEAT_CREW))
		SKIP(return, "not root");
	EXPECT_EQ(-EOPNOTSUPP, dev_ioctl(fd, PARKLOT_IOC_CREW, &crew));
	EXPECT_EQ(-EOPNOTSUPP, dev_ioctl(fd, PARKLOT_IOC_WORKER_JOIN, &worker));
	/* A thread that has joined may leave; in this space no thread has. */
	EXPECT_EQ(is_built ? -EINVAL : -EOPNOTSUPP,
		  dev_ioctl(fd, PARKLOT_IOC_WORKER_LEAVE, &worker));
	EXPECT_TRUE(set_features(~0UL));
}

struct command {
	const char *name;
	unsigned long cmd;
	const void *good;
};

#define NR_COMMANDS	4

static void list_commands(FIXTURE_DATA(input) *self, struct command *c)
{
	static const struct parklot_query query;

	c[0] = (struct command){ "QUERY", PARKLOT_IOC_QUERY, &query };
	c[1] = (struct command){ "PARK", PARKLOT_IOC_PARK, &self->park };
	c[2] = (struct command){ "WAKE", PARKLOT_IOC_WAKE, &self->wake };
	c[3] = (struct command){
		"WAKE_PARK", PARKLOT_IOC_WAKE_PARK, &self->both,
	};
}

static unsigned long resize(unsigned long cmd, size_t size)
{
	return _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), size);
}

static int frozen(const struct command *c, int err)
{
	return c->cmd == PARKLOT_IOC_WAKE_PARK ? -ENOTTY : err;
}

TEST_F(input, smaller_structs_are_refused)
{
	struct command c[NR_COMMANDS];
	unsigned char buf[256];
	size_t size;
	int i;

	list_commands(self, c);
	for (i = 0; i < NR_COMMANDS; i++) {
		memcpy(buf, c[i].good, _IOC_SIZE(c[i].cmd));
		for (size = 0; size < _IOC_SIZE(c[i].cmd); size++) {
			EXPECT_EQ(frozen(&c[i], -EINVAL),
				  dev_ioctl(self->s.fd, resize(c[i].cmd, size),
					    buf)) {
				TH_LOG("%s of %zu bytes", c[i].name, size);
			}
		}
	}
}

/* A struct of a later header: accepted if its new fields are zero. */
TEST_F(input, larger_structs_are_accepted_if_zero)
{
	struct command c[NR_COMMANDS];
	size_t size, at, extra;
	unsigned char buf[256];
	int i;

	list_commands(self, c);
	for (i = 0; i < NR_COMMANDS; i++) {
		size = _IOC_SIZE(c[i].cmd);
		for (extra = 1; extra <= 64; extra += 7) {
			memset(buf, 0, sizeof(buf));
			memcpy(buf, c[i].good, size);
			EXPECT_EQ(frozen(&c[i], 0),
				  dev_ioctl(self->s.fd,
					    resize(c[i].cmd, size + extra),
					    buf)) {
				TH_LOG("%s and %zu", c[i].name, extra);
			}
			for (at = size; at < size + extra; at++) {
				if (c[i].cmd == PARKLOT_IOC_QUERY)
					break;
				memcpy(buf, c[i].good, size);
				buf[at] = 1;
				EXPECT_EQ(frozen(&c[i], -E2BIG),
					  dev_ioctl(self->s.fd,
						    resize(c[i].cmd,
							   size + extra),
						    buf)) {
					TH_LOG("%s, byte %zu", c[i].name, at);
				}
				buf[at] = 0;
			}
		}
	}
}

/*
 * The largest size that the command's number can hold, with and without memory
 * behind it.
 */
TEST_F(input, largest_structs_are_accepted)
{
	size_t size = _IOC_SIZEMASK;
	struct command c[NR_COMMANDS];
	unsigned char *buf = calloc(1, size);
	int i;

	list_commands(self, c);
	ASSERT_NE(NULL, (void *)buf);
	for (i = 0; i < NR_COMMANDS; i++) {
		memset(buf, 0, 256);
		memcpy(buf, c[i].good, _IOC_SIZE(c[i].cmd));
		EXPECT_EQ(frozen(&c[i], 0),
			  dev_ioctl(self->s.fd, resize(c[i].cmd, size), buf));
		memcpy(self->edge - _IOC_SIZE(c[i].cmd), c[i].good,
		       _IOC_SIZE(c[i].cmd));
		EXPECT_EQ(frozen(&c[i], -EFAULT),
			  dev_ioctl(self->s.fd, resize(c[i].cmd, size),
				    self->edge - _IOC_SIZE(c[i].cmd)));
	}
	free(buf);
}

TEST_F(input, bad_pointers_are_refused)
{
	void *const bad[] = {
		NULL, (void *)8, (void *)-1L, (void *)-4096L, self->edge,
		(void *)(1UL << 63), self->edge - 4,
	};
	struct parklot_setup setup = { .nr_lots = 1 };
	struct command c[NR_COMMANDS];
	int i, fd = dev_open();
	size_t j;

	ASSERT_LE(0, fd);
	memcpy(self->edge - 4, &setup, 4);
	list_commands(self, c);
	for (j = 0; j < ARRAY_SIZE(bad); j++) {
		for (i = 0; i < NR_COMMANDS; i++) {
			EXPECT_EQ(-EFAULT, dev_ioctl(self->s.fd, c[i].cmd,
						     bad[j])) {
				TH_LOG("%s at %p", c[i].name, bad[j]);
			}
		}
		EXPECT_EQ(-EFAULT, dev_ioctl(fd, PARKLOT_IOC_SETUP, bad[j]));
	}
	/* The failed calls did not use up the single SETUP. */
	EXPECT_EQ(0, dev_setup(fd, 1));
	close(fd);
}

/* Unwritable results are refused before a thread sleeps or is woken. */
TEST_F(input, read_only_structs_are_refused)
{
	struct parklot_setup setup = { .nr_lots = 1 };
	size_t page = sysconf(_SC_PAGESIZE);
	unsigned char *p = self->edge - page;
	struct command c[NR_COMMANDS];
	int i, fd = dev_open();

	ASSERT_LE(0, fd);
	self->entry[0].nr = 1;
	self->park.deadline_ns = PARKLOT_FOREVER;
	self->both.park.deadline_ns = PARKLOT_FOREVER;
	list_commands(self, c);
	for (i = 0; i < NR_COMMANDS; i++)
		memcpy(p + 256 * i, c[i].good, _IOC_SIZE(c[i].cmd));
	memcpy(p + 2048, &setup, sizeof(setup));
	ASSERT_EQ(0, mprotect(p, page, PROT_READ));
	for (i = 0; i < NR_COMMANDS; i++) {
		EXPECT_EQ(-EFAULT, dev_ioctl(self->s.fd, c[i].cmd,
					     p + 256 * i)) {
			TH_LOG("%s", c[i].name);
		}
	}
	EXPECT_EQ(-EFAULT, dev_ioctl(fd, PARKLOT_IOC_SETUP, p + 2048));
	EXPECT_EQ(0, dev_setup(fd, 1));
	close(fd);
}

/* Entries nowhere, half mapped, or read-only: no sleeper is woken. */
TEST_F(input, bad_entries_pointers_are_refused)
{
	size_t page = sysconf(_SC_PAGESIZE);
	const uint64_t bad[] = {
		0, 8, ~0ULL, 1ULL << 63, (uintptr_t)self->edge,
		(uintptr_t)self->edge - sizeof(self->entry[0]),
		(uintptr_t)self->edge - page,
	};
	size_t i;

	self->entry[0].nr = 1;
	memcpy(self->edge - page, self->entry, sizeof(self->entry));
	memcpy(self->edge - sizeof(self->entry[0]), self->entry,
	       sizeof(self->entry[0]));
	ASSERT_EQ(0, mprotect(self->edge - page, page, PROT_READ));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		self->wake.entries = bad[i];
		self->both.wake = self->wake;
		self->both.park.deadline_ns = PARKLOT_FOREVER;
		EXPECT_EQ(-EFAULT, dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE,
					     &self->wake)) {
			TH_LOG("entries at %llx", (unsigned long long)bad[i]);
		}
		EXPECT_EQ(-EFAULT, dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE_PARK,
					     &self->both)) {
			TH_LOG("entries at %llx", (unsigned long long)bad[i]);
		}
	}
	/* Zero entries are accepted with any pointer. */
	self->wake.nr_entries = 0;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		self->wake.entries = bad[i];
		EXPECT_EQ(0, dev_ioctl(self->s.fd, PARKLOT_IOC_WAKE,
				       &self->wake));
	}
}

TEST_F(input, unaligned_structs_are_accepted)
{
	struct parklot_wake_entry *entry;
	struct command c[NR_COMMANDS];
	unsigned char buf[256];
	size_t shift;
	int i;

	for (shift = 1; shift < 8; shift++) {
		entry = (void *)(buf + 128 + shift);
		memcpy(entry, self->entry, sizeof(self->entry));
		self->wake.entries = (uintptr_t)entry;
		self->both.wake = self->wake;
		list_commands(self, c);
		for (i = 0; i < NR_COMMANDS; i++) {
			memcpy(buf + shift, c[i].good, _IOC_SIZE(c[i].cmd));
			EXPECT_EQ(0, dev_ioctl(self->s.fd, c[i].cmd,
					       buf + shift)) {
				TH_LOG("%s + %zu", c[i].name, shift);
			}
		}
	}
}

TEST_F(input, unknown_commands_are_refused)
{
	unsigned int nr, dir;
	bool is_known;

	for (nr = 0; nr < 256; nr++) {
		is_known = nr >= _IOC_NR(PARKLOT_IOC_QUERY) &&
			   nr <= _IOC_NR(PARKLOT_IOC_WORKER_LEAVE);
		for (dir = 0; dir < 4 && !is_known; dir++) {
			EXPECT_EQ(-ENOTTY,
				  dev_ioctl(self->s.fd,
					    _IOC(dir, PARKLOT_IOC_MAGIC, nr,
						 sizeof(self->wake)),
					    &self->wake)) {
				TH_LOG("number %u, direction %u", nr, dir);
			}
		}
	}
}

/* The right number with the wrong direction, or in another driver's range. */
TEST_F(input, nearly_known_commands_are_refused)
{
	struct command c[NR_COMMANDS];
	unsigned long cmd;
	unsigned int dir;
	int i;

	list_commands(self, c);
	for (i = 0; i < NR_COMMANDS; i++) {
		for (dir = 0; dir < 4; dir++) {
			if (dir == _IOC_DIR(c[i].cmd))
				continue;
			cmd = _IOC(dir, PARKLOT_IOC_MAGIC, _IOC_NR(c[i].cmd),
				   _IOC_SIZE(c[i].cmd));
			EXPECT_EQ(-ENOTTY, dev_ioctl(self->s.fd, cmd,
						     &self->wake));
		}
		cmd = _IOC(_IOC_DIR(c[i].cmd), PARKLOT_IOC_MAGIC ^ 1,
			   _IOC_NR(c[i].cmd), _IOC_SIZE(c[i].cmd));
		EXPECT_EQ(-ENOTTY, dev_ioctl(self->s.fd, cmd, &self->wake));
	}
}

/* The device cannot be read, written or seeked. */
TEST_F(input, plain_file_calls_are_refused)
{
	char c = 0;

	EXPECT_EQ(-1, read(self->s.fd, &c, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->s.fd, &c, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, lseek(self->s.fd, 0, SEEK_SET));
	EXPECT_EQ(ESPIPE, errno);
	EXPECT_EQ(-1, pread(self->s.fd, &c, 1, 0));
	EXPECT_EQ(ESPIPE, errno);
}

TEST_HARNESS_MAIN
