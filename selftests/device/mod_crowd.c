// SPDX-License-Identifier: GPL-2.0-only
/*
 * Crowds of processes are killed, with workers of all kinds and mappings. None
 * of them holds the module for longer than the kernel takes to end a process.
 */
#include "kselftest_harness.h"

#include "mod_crew.h"

#define NR_ROUNDS	12
#define NR_PROCS	6
#define SOON_NS		(4 * NSEC_PER_SEC * time_factor())

FIXTURE(crowd)
{
	int nr_open, pipe[2];
};

FIXTURE_SETUP(crowd)
{
	struct space s;

	CREW_SETUP(&s, 1, 1);
	space_close(&s);
	self->nr_open = nr_open();
	ASSERT_EQ(0, pipe2(self->pipe, O_CLOEXEC));
}

FIXTURE_TEARDOWN(crowd)
{
	close(self->pipe[0]);
	close(self->pipe[1]);
}

/* A process that holds all of these for ever; it reports when it is ready. */
static void live(int fd)
{
	static struct worker w[3];
	struct space s;

	if (space_open_crew(&s, 1, 4) || worker_start(&w[0], &s, 0, NULL) ||
	    worker_block(&w[1], &s, 1) || worker_park(&w[2], &s, 2) ||
	    dev_join(s.fd, 3) || dev_crew(s.fd, 4, 4, 1000))
		_exit(1);
	set_backlog(&s, 1);
	if (write(fd, "", 1) != 1)
		_exit(2);
	for (;;)
		dev_park(s.fd, 0, 0, PARKLOT_FOREVER);
}

/* How long the module is held once all have been killed and reaped. */
static uint64_t kill_crowd(FIXTURE_DATA(crowd) *self)
{
	pid_t pid[NR_PROCS];
	uint64_t begun;
	int i, status;
	char c;

	for (i = 0; i < NR_PROCS; i++) {
		pid[i] = fork();
		if (!pid[i])
			live(self->pipe[1]);
	}
	for (i = 0; i < NR_PROCS; i++)
		if (read(self->pipe[0], &c, 1) != 1)
			return UINT64_MAX;
	for (i = 0; i < NR_PROCS; i++)
		kill(pid[i], SIGKILL);
	for (i = 0; i < NR_PROCS; i++)
		waitpid(pid[i], &status, 0);
	begun = now_ns();
	UNTIL(nr_open() <= self->nr_open || now_ns() - begun > SOON_NS);
	return now_ns() - begun;
}

TEST_TIMED(killed_processes_soon_let_the_module_go, "time that passed")
TEST_F_TIMEOUT(crowd, killed_processes_soon_let_the_module_go, 120)
{
	uint64_t ns, longest = 0;
	int i;

	for (i = 0; i < NR_ROUNDS; i++) {
		ns = kill_crowd(self);
		longest = ns > longest ? ns : longest;
	}
	EXPECT_GT(SOON_NS, longest);
	EXPECT_EQ(self->nr_open, nr_open());
	TH_LOG("at most %llu us", (unsigned long long)longest / 1000);
}

TEST_HARNESS_MAIN
