// SPDX-License-Identifier: GPL-2.0-only
/* SETUP: once, within bounds, before all other commands. */
#include "kselftest_harness.h"

#include "mod.h"

FIXTURE(setup)
{
	int fd;
	struct parklot_setup setup;
};

FIXTURE_SETUP(setup)
{
	self->fd = dev_open();
	if (self->fd == -ENOENT)
		SKIP_ALL("no " DEVICE);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(setup)
{
	EXPECT_EQ(0, close(self->fd));
}

static int setup(int fd, struct parklot_setup *setup)
{
	return dev_ioctl(fd, PARKLOT_IOC_SETUP, setup);
}

/* A cache line for the space and one for each lot, in whole pages. */
static uint32_t area_size(uint32_t nr_lots)
{
	uint32_t page = sysconf(_SC_PAGESIZE);

	return ((1 + nr_lots) * 64 + page - 1) / page * page;
}

/* How many processors the machine may have; 0: it does not say. */
static uint32_t nr_possible_cpus(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
	uint32_t last = 0;
	int nr;

	if (!file)
		return 0;
	nr = fscanf(file, "0-%u", &last);
	fclose(file);
	return nr < 0 ? 0 : last + 1;
}

TEST_F(setup, setup_returns_sizes_in_whole_pages)
{
	static const uint32_t nr_lots[] = { 1, 4, 63, 64, 127, 1024 };
	struct parklot_setup s;
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(nr_lots); i++) {
		fd = dev_open();
		ASSERT_LE(0, fd);
		memset(&s, 0, sizeof(s));
		s.nr_lots = nr_lots[i];
		EXPECT_EQ(0, setup(fd, &s));
		EXPECT_EQ(area_size(nr_lots[i]), s.counters_size);
		EXPECT_EQ(area_size(nr_lots[i]), s.words_size);
		close(fd);
	}
}

TEST_F(setup, setup_ignores_outputs_on_input)
{
	self->setup.nr_lots = 1;
	self->setup.counters_size = 0xdeadbeef;
	self->setup.words_size = 0xdeadbeef;
	EXPECT_EQ(0, setup(self->fd, &self->setup));
	EXPECT_EQ(area_size(1), self->setup.counters_size);
	EXPECT_EQ(area_size(1), self->setup.words_size);
}

TEST_F(setup, setup_without_lots_is_refused)
{
	EXPECT_EQ(-EINVAL, setup(self->fd, &self->setup));
}

TEST_F(setup, setup_beyond_1024_lots_is_refused)
{
	self->setup.nr_lots = 1025;
	EXPECT_EQ(-EINVAL, setup(self->fd, &self->setup));
	self->setup.nr_lots = ~0U;
	EXPECT_EQ(-EINVAL, setup(self->fd, &self->setup));
}

TEST_F(setup, setup_with_workers_needs_the_crew_feature)
{
	self->setup.nr_lots = 1;
	self->setup.nr_workers = 1;
	if (!set_features(~(unsigned long)PARKLOT_FEAT_CREW))
		SKIP(return, "not root");
	EXPECT_EQ(-EOPNOTSUPP, setup(self->fd, &self->setup));
	self->setup.nr_workers = 65536;
	EXPECT_EQ(-EOPNOTSUPP, setup(self->fd, &self->setup));
	self->setup.nr_workers = 65537;
	EXPECT_EQ(-EINVAL, setup(self->fd, &self->setup));
	EXPECT_TRUE(set_features(~0UL));
}

TEST_F(setup, setup_beyond_65536_workers_is_refused)
{
	if (!(dev_features(self->fd) & PARKLOT_FEAT_CREW))
		SKIP(return, "no crew");
	self->setup.nr_lots = 1;
	self->setup.nr_workers = 65537;
	EXPECT_EQ(-EINVAL, setup(self->fd, &self->setup));
	self->setup.nr_workers = 65536;
	EXPECT_EQ(0, setup(self->fd, &self->setup));
	EXPECT_EQ(area_size(1 + nr_possible_cpus()), self->setup.counters_size);
	EXPECT_EQ(area_size(1 + 65536), self->setup.words_size);
}

/* Its size says so where the lots fill a page. */
TEST_F(setup, counters_have_a_line_for_each_processor)
{
	uint32_t nr_cpus = nr_possible_cpus();

	if (!(dev_features(self->fd) & PARKLOT_FEAT_CREW))
		SKIP(return, "no crew");
	ASSERT_LT(0, nr_cpus);
	self->setup.nr_lots = 63;
	self->setup.nr_workers = 1;
	EXPECT_EQ(0, setup(self->fd, &self->setup));
	EXPECT_EQ(area_size(63 + nr_cpus), self->setup.counters_size);
	EXPECT_LT(area_size(63), self->setup.counters_size);
}

TEST_F(setup, second_setup_is_refused)
{
	self->setup.nr_lots = 2;
	EXPECT_EQ(0, setup(self->fd, &self->setup));
	EXPECT_EQ(-EBUSY, setup(self->fd, &self->setup));
}

TEST_F(setup, failed_setup_leaves_its_struct_alone)
{
	struct parklot_setup before;

	self->setup.nr_lots = 2;
	EXPECT_EQ(0, setup(self->fd, &self->setup));
	before = self->setup;
	EXPECT_EQ(-EBUSY, setup(self->fd, &self->setup));
	EXPECT_EQ(0, memcmp(&before, &self->setup, sizeof(before)));
	self->setup.flags = 1;
	before = self->setup;
	EXPECT_EQ(-EINVAL, setup(self->fd, &self->setup));
	EXPECT_EQ(0, memcmp(&before, &self->setup, sizeof(before)));
}

TEST_F(setup, failed_setup_may_be_repeated)
{
	self->setup.flags = 1;
	EXPECT_EQ(-EINVAL, setup(self->fd, &self->setup));
	self->setup.flags = 0;
	self->setup.nr_lots = 2;
	EXPECT_EQ(0, setup(self->fd, &self->setup));
}

struct racer {
	pthread_barrier_t *start;
	int fd, err;
};

static void *race(void *arg)
{
	struct racer *racer = arg;

	pthread_barrier_wait(racer->start);
	racer->err = dev_setup(racer->fd, 1024);
	return NULL;
}

TEST_F(setup, concurrent_setups_succeed_once)
{
	pthread_barrier_t start;
	struct racer racer[4];
	pthread_t thread[4];
	int i, nr_won = 0;

	pthread_barrier_init(&start, NULL, 4);
	for (i = 0; i < 4; i++) {
		racer[i].start = &start;
		racer[i].fd = self->fd;
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, race, &racer[i]));
	}
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		nr_won += !racer[i].err;
		if (racer[i].err)
			EXPECT_EQ(-EBUSY, racer[i].err);
	}
	EXPECT_EQ(1, nr_won);
}

TEST_F(setup, other_commands_before_setup_are_refused)
{
	struct parklot_wake_park both = { .park = { .pollfd = -1 } };
	long page = sysconf(_SC_PAGESIZE);

	EXPECT_EQ(-ENXIO, dev_park(self->fd, 0, 0, 0));
	EXPECT_EQ(-ENXIO, dev_wake(self->fd, 0, 1));
	EXPECT_EQ(-ENXIO, dev_ioctl(self->fd, PARKLOT_IOC_WAKE_PARK, &both));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, page, PROT_READ, MAP_SHARED, self->fd,
				   PARKLOT_OFF_COUNTERS));
	EXPECT_EQ(ENXIO, errno);
	EXPECT_EQ(0, dev_setup(self->fd, 1));
	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park(self->fd, 0, 0, 0));
}

TEST_F(setup, two_setups_make_independent_spaces)
{
	struct space a, b;

	ASSERT_EQ(0, space_open(&a, 1));
	ASSERT_EQ(0, space_open(&b, 1));
	seq_signal(&a, 0);
	EXPECT_EQ(2, seq_read(&a, 0));
	EXPECT_EQ(0, seq_read(&b, 0));
	EXPECT_EQ(PARKLOT_CHANGED, dev_park(a.fd, 0, 0, 0));
	EXPECT_EQ(PARKLOT_TIMEDOUT, dev_park(b.fd, 0, 0, 0));
	space_close(&a);
	space_close(&b);
}

TEST_HARNESS_MAIN
