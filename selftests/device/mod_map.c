// SPDX-License-Identifier: GPL-2.0-only
/* The two mapped areas: sizes, offsets, permissions, lifetime. */
#include "kselftest_harness.h"

#include "mod.h"

FIXTURE(map)
{
	struct space s;
	size_t page;
};

FIXTURE_SETUP(map)
{
	self->page = sysconf(_SC_PAGESIZE);
	SPACE_SETUP(&self->s, 200);
}

FIXTURE_TEARDOWN(map)
{
	space_close(&self->s);
}

/* Maps and unmaps again; returns 0, or -errno. */
static int try_map(int fd, size_t size, int prot, int flags, off_t offset)
{
	void *p = mmap(NULL, size, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, size);
	return 0;
}

TEST_F(map, mapping_begins_zeroed)
{
	const unsigned char *c = (const unsigned char *)self->s.counters;
	const unsigned char *w = (const unsigned char *)self->s.words;
	size_t i, nr_set = 0;

	for (i = 0; i < self->s.setup.counters_size; i++)
		nr_set += !!c[i];
	for (i = 0; i < self->s.setup.words_size; i++)
		nr_set += !!w[i];
	EXPECT_EQ(0, nr_set);
}

/* The first and last lot, and the lots at the edges of a page. */
TEST_F(map, every_lot_has_its_own_words)
{
	static const uint32_t lots[] = { 0, 1, 62, 63, 64, 127, 199 };
	struct parker parker;
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(lots); i++) {
		ASSERT_EQ(0, parker_start(&parker, &self->s, lots[i],
					  PARKLOT_FOREVER));
		for (j = 0; j < 200; j++)
			EXPECT_EQ(j == lots[i], nr_parked(&self->s, j));
		EXPECT_EQ(1, dev_wake(self->s.fd, lots[i], 1));
		EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));

		self->s.words->lot[lots[i]].seq = 7;
		for (j = 0; j < 200; j++)
			EXPECT_EQ(j == lots[i] ? PARKLOT_CHANGED :
						 PARKLOT_TIMEDOUT,
				  dev_park(self->s.fd, j, 0, 0));
		self->s.words->lot[lots[i]].seq = 0;
	}
}

TEST_F(map, partial_mapping_is_refused)
{
	size_t size = self->s.setup.counters_size;
	int fd = self->s.fd;

	EXPECT_EQ(0, try_map(fd, size, PROT_READ, MAP_SHARED,
			     PARKLOT_OFF_COUNTERS));
	EXPECT_EQ(-EINVAL, try_map(fd, size - self->page, PROT_READ, MAP_SHARED,
				   PARKLOT_OFF_COUNTERS));
	EXPECT_EQ(-EINVAL, try_map(fd, size + self->page, PROT_READ, MAP_SHARED,
				   PARKLOT_OFF_COUNTERS));
	EXPECT_EQ(-EINVAL, try_map(fd, size - self->page, PROT_READ, MAP_SHARED,
				   PARKLOT_OFF_WORDS));
	EXPECT_EQ(-EINVAL, try_map(fd, size + self->page, PROT_READ, MAP_SHARED,
				   PARKLOT_OFF_WORDS));
}

TEST_F(map, other_offsets_are_refused)
{
	size_t size = self->s.setup.words_size;
	int fd = self->s.fd;

	EXPECT_EQ(-EINVAL, try_map(fd, size, PROT_READ, MAP_SHARED,
				   self->page));
	EXPECT_EQ(-EINVAL, try_map(fd, size, PROT_READ, MAP_SHARED,
				   PARKLOT_OFF_WORDS + self->page));
	EXPECT_EQ(-EINVAL, try_map(fd, size, PROT_READ, MAP_SHARED,
				   PARKLOT_OFF_WORDS * 2));
	EXPECT_EQ(-EINVAL, try_map(fd, size, PROT_READ, MAP_SHARED,
				   1LL << 40));
}

TEST_F(map, private_mapping_is_refused)
{
	size_t size = self->s.setup.words_size;
	int fd = self->s.fd;

	EXPECT_EQ(-EINVAL, try_map(fd, size, PROT_READ, MAP_PRIVATE,
				   PARKLOT_OFF_COUNTERS));
	EXPECT_EQ(-EINVAL, try_map(fd, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE, PARKLOT_OFF_COUNTERS));
	EXPECT_EQ(-EINVAL, try_map(fd, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE, PARKLOT_OFF_WORDS));
}

TEST_F(map, counters_are_never_writable)
{
	size_t size = self->s.setup.counters_size;
	void *counters = (void *)self->s.counters;

	EXPECT_EQ(-EACCES, try_map(self->s.fd, size, PROT_READ | PROT_WRITE,
				   MAP_SHARED, PARKLOT_OFF_COUNTERS));
	EXPECT_EQ(-EACCES, try_map(self->s.fd, size, PROT_WRITE, MAP_SHARED,
				   PARKLOT_OFF_COUNTERS));
	EXPECT_EQ(-1, mprotect(counters, size, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
}

TEST_F_SIGNAL(map, write_to_the_counters_is_a_fault, SIGSEGV)
{
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	*(volatile uint32_t *)&self->s.counters->lot[0].nr_parked = 1;
}

/* By /proc/self/mem, as a debugger writes to read-only memory. */
TEST_F(map, forced_write_leaves_the_counters)
{
	off_t offset = (uintptr_t)&self->s.counters->lot[0].nr_parked;
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint32_t value = 1;

	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, &value, sizeof(value), offset));
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	close(mem);
}

TEST_F(map, executable_mapping_is_refused)
{
	size_t size = self->s.setup.words_size;
	int fd = self->s.fd;

	EXPECT_EQ(-EACCES, try_map(fd, size, PROT_READ | PROT_EXEC, MAP_SHARED,
				   PARKLOT_OFF_COUNTERS));
	EXPECT_EQ(-EACCES, try_map(fd, size,
				   PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_SHARED, PARKLOT_OFF_WORDS));
	EXPECT_EQ(-1, mprotect(self->s.words, size, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect((void *)self->s.counters, size,
			       PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(map, words_need_a_writable_descriptor)
{
	int fd = open(DEVICE, O_RDONLY | O_CLOEXEC);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, dev_setup(fd, 1));
	EXPECT_EQ(-EACCES, try_map(fd, self->page, PROT_READ | PROT_WRITE,
				   MAP_SHARED, PARKLOT_OFF_WORDS));
	close(fd);
}

TEST_F(map, mapping_does_not_grow)
{
	size_t size = self->s.setup.words_size;

	EXPECT_EQ(MAP_FAILED, mremap(self->s.words, size, size + self->page,
				     MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F(map, moved_mapping_works)
{
	size_t size = self->s.setup.words_size;
	void *place = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	ASSERT_NE(MAP_FAILED, place);
	EXPECT_EQ(place, mremap(self->s.words, size, size,
				MREMAP_MAYMOVE | MREMAP_FIXED, place));
	self->s.words = place;
	EXPECT_EQ(2, seq_signal(&self->s, 0));
	EXPECT_EQ(PARKLOT_CHANGED, dev_park(self->s.fd, 0, 0, 0));
}

/* Returns how a child that reads @p ends. */
static int read_in_child(const void *p)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(*(const volatile uint32_t *)p ? 1 : 0);
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_F(map, forked_child_has_no_mapping)
{
	EXPECT_EQ(SIGSEGV, read_in_child(self->s.counters));
	EXPECT_EQ(SIGSEGV, read_in_child(self->s.words));
	EXPECT_EQ(0, nr_parked(&self->s, 0));
}

/* Returns the flags that smaps shows for the mapping at @p. */
static bool vm_flags(const void *p, char *flags, size_t size)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	bool is_here = false, found = false;
	char line[512], start[32];

	if (!smaps)
		return false;
	snprintf(start, sizeof(start), "%lx-", (unsigned long)p);
	while (!found && fgets(line, sizeof(line), smaps)) {
		if (!strncmp(line, start, strlen(start)))
			is_here = true;
		found = is_here && !strncmp(line, "VmFlags:", 8);
	}
	fclose(smaps);
	snprintf(flags, size, "%s", line);
	return found;
}

TEST_F(map, mapping_has_the_documented_flags)
{
	static const char *const both[] = { " sh ", " dc ", " de ", " dd " };
	char c[512], w[512];
	size_t i;

	ASSERT_TRUE(vm_flags(self->s.counters, c, sizeof(c)));
	ASSERT_TRUE(vm_flags(self->s.words, w, sizeof(w)));
	for (i = 0; i < ARRAY_SIZE(both); i++) {
		EXPECT_TRUE(!!strstr(c, both[i])) {
			TH_LOG("no%sin %s", both[i], c);
		}
		EXPECT_TRUE(!!strstr(w, both[i])) {
			TH_LOG("no%sin %s", both[i], w);
		}
	}
	EXPECT_FALSE(!!strstr(c, " mw "));
	EXPECT_TRUE(!!strstr(w, " mw "));
	EXPECT_FALSE(!!strstr(c, " me "));
	EXPECT_FALSE(!!strstr(w, " me "));
}

/* A mapping holds the space, which no thread can reach any more. */
TEST_F(map, mapping_outlives_its_descriptor)
{
	EXPECT_EQ(0, close(self->s.fd));
	EXPECT_EQ(2, seq_signal(&self->s, 199));
	EXPECT_EQ(2, seq_read(&self->s, 199));
	EXPECT_EQ(0, nr_parked(&self->s, 199));
	self->s.fd = dev_open();
	EXPECT_LE(0, self->s.fd);
}

/* The kernel does not use the mapping of user space. */
TEST_F(map, park_works_without_a_mapping)
{
	struct parker parker;

	EXPECT_EQ(0, munmap(self->s.words, self->s.setup.words_size));
	memset(&parker, 0, sizeof(parker));
	parker.space = &self->s;
	parker.deadline = PARKLOT_FOREVER;
	ASSERT_EQ(0, parker_spawn(&parker, parker_main));
	wait_parked(&self->s, 0, 1);
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
}

TEST_HARNESS_MAIN
