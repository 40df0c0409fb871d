// SPDX-License-Identifier: GPL-2.0-only
/*
 * Membership of the crew: joining, leaving, and each end without leaving. A
 * thread that has joined holds the module, so a lost member shows in the
 * reference count.
 */
#include "kselftest_harness.h"

#include "mod_crew.h"

#define EXEC_ENV	"MOD_CREW_EXEC_FD"

FIXTURE(members)
{
	struct space s;
	struct worker w[4];
	int nr_open;
};

FIXTURE_SETUP(members)
{
	CREW_SETUP(&self->s, 1, 4);
	self->nr_open = nr_open();
}

/* A thread that ended without leaving holds the module a moment longer. */
FIXTURE_TEARDOWN(members)
{
	UNTIL(nr_open() <= self->nr_open);
	space_close(&self->s);
}

static int child_status(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

TEST_F(members, worker_leaves_though_crews_are_masked)
{
	int left;

	ASSERT_EQ(0, dev_join(self->s.fd, 0));
	if (!set_features(~(unsigned long)PARKLOT_FEAT_CREW))
		SKIP(return, "not root");
	left = dev_leave(self->s.fd, 0);
	EXPECT_TRUE(set_features(~0UL));
	EXPECT_EQ(0, left);
	EXPECT_EQ(0, nr_running(&self->s));
	EXPECT_EQ(-ENOENT, dev_leave(self->s.fd, 0));
}

TEST_F(members, bad_fields_are_refused)
{
	struct parklot_worker worker;
	struct parklot_crew crew;
	int bit, fd = self->s.fd;

	EXPECT_EQ(-EINVAL, dev_join(fd, 4));
	EXPECT_EQ(-EINVAL, dev_join(fd, 0x80000000));
	EXPECT_EQ(-EINVAL, dev_join(fd, ~0U));
	EXPECT_EQ(-ENOENT, dev_leave(fd, 4));
	EXPECT_EQ(-ENOENT, dev_leave(fd, ~0U));
	for (bit = 0; bit < 32; bit++) {
		worker = (struct parklot_worker){ .flags = 1U << bit };
		crew = (struct parklot_crew){ 1, 1, 0, 1U << bit };
		EXPECT_EQ(-EINVAL, dev_ioctl(fd, PARKLOT_IOC_WORKER_JOIN,
					     &worker));
		EXPECT_EQ(-EINVAL, dev_ioctl(fd, PARKLOT_IOC_WORKER_LEAVE,
					     &worker));
		EXPECT_EQ(-EINVAL, dev_ioctl(fd, PARKLOT_IOC_CREW, &crew));
	}
	EXPECT_EQ(-EINVAL, dev_crew(fd, 2, 1, 0));
	EXPECT_EQ(-EINVAL, dev_crew(fd, ~0U, ~0U - 1, 0));
	EXPECT_EQ(0, dev_crew(fd, ~0U, ~0U, ~0U));
	EXPECT_EQ(0, dev_crew(fd, 0, 0, 0));
	EXPECT_EQ(0, nr_running(&self->s));
}

/* Structs of other sizes, or unmapped: refused as in all commands. */
TEST_F(members, bad_structs_are_refused)
{
	static const unsigned long cmds[] = {
		PARKLOT_IOC_CREW, PARKLOT_IOC_WORKER_JOIN,
		PARKLOT_IOC_WORKER_LEAVE,
	};
	unsigned char buf[64];
	size_t i, size;

	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		for (size = 0; size < sizeof(buf); size++) {
			unsigned long cmd = _IOC(_IOC_WRITE, PARKLOT_IOC_MAGIC,
						 _IOC_NR(cmds[i]), size);

			memset(buf, 0, sizeof(buf));
			if (size < _IOC_SIZE(cmds[i])) {
				EXPECT_EQ(-EINVAL,
					  dev_ioctl(self->s.fd, cmd, buf));
				continue;
			}
			/* A joined thread leaves, any other joins. */
			EXPECT_EQ(i == 2 ? -ENOENT : 0,
				  dev_ioctl(self->s.fd, cmd, buf));
			dev_leave(self->s.fd, 0);
			if (size == _IOC_SIZE(cmds[i]))
				continue;
			buf[size - 1] = 1;
			EXPECT_EQ(-E2BIG, dev_ioctl(self->s.fd, cmd, buf));
		}
		EXPECT_EQ(-EFAULT, dev_ioctl(self->s.fd, cmds[i], NULL));
		EXPECT_EQ(-EFAULT, dev_ioctl(self->s.fd, cmds[i],
					     (void *)-8L));
	}
	EXPECT_EQ(0, nr_running(&self->s));
}

TEST_F(members, join_without_slots_is_refused)
{
	struct space s;

	ASSERT_EQ(0, space_open(&s, 1));
	EXPECT_EQ(-EINVAL, dev_join(s.fd, 0));
	EXPECT_EQ(-EINVAL, dev_leave(s.fd, 0));
	EXPECT_EQ(-EINVAL, dev_crew(s.fd, 1, 1, 0));
	space_close(&s);
}

TEST_F(members, join_before_setup_is_refused)
{
	int fd = dev_open();

	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENXIO, dev_join(fd, 0));
	EXPECT_EQ(-ENXIO, dev_leave(fd, 0));
	EXPECT_EQ(-ENXIO, dev_crew(fd, 1, 1, 0));
	close(fd);
}

TEST_F(members, second_join_of_a_slot_is_refused)
{
	ASSERT_EQ(0, worker_start(&self->w[0], &self->s, 2, NULL));
	EXPECT_EQ(-EBUSY, dev_join(self->s.fd, 2));
	EXPECT_EQ(-ENOENT, dev_leave(self->s.fd, 2));
	EXPECT_EQ(1, nr_running(&self->s));
	EXPECT_EQ(0, worker_finish(&self->w[0]));
	EXPECT_EQ(0, dev_join(self->s.fd, 2));
	EXPECT_EQ(0, dev_leave(self->s.fd, 2));
}

TEST_F(members, second_join_of_a_thread_is_refused)
{
	struct space s;

	ASSERT_EQ(0, space_open_crew(&s, 1, 1));
	ASSERT_EQ(0, dev_join(self->s.fd, 1));
	EXPECT_EQ(-EBUSY, dev_join(self->s.fd, 1));
	EXPECT_EQ(-EBUSY, dev_join(self->s.fd, 2));
	EXPECT_EQ(-EBUSY, dev_join(s.fd, 0));
	EXPECT_EQ(-ENOENT, dev_leave(self->s.fd, 2));
	EXPECT_EQ(-ENOENT, dev_leave(s.fd, 0));
	EXPECT_EQ(0, dev_leave(self->s.fd, 1));
	EXPECT_EQ(-ENOENT, dev_leave(self->s.fd, 1));
	EXPECT_EQ(0, dev_join(s.fd, 0));
	EXPECT_EQ(0, nr_running(&self->s));
	EXPECT_EQ(1, nr_running(&s));
	EXPECT_EQ(0, dev_leave(s.fd, 0));
	space_close(&s);
}

static void do_park_elsewhere(struct worker *w)
{
	struct space *elsewhere = w->arg;

	atomic_store(&w->result,
		     dev_park(elsewhere->fd, 0, 0, PARKLOT_FOREVER));
}

/* A plain sleep: the crew cannot call the worker there. */
TEST_F(members, park_in_another_space_counts_as_blocked)
{
	struct space s;

	ASSERT_EQ(0, space_open_crew(&s, 1, 1));
	self->w[0].arg = &s;
	ASSERT_EQ(0, worker_start(&self->w[0], &self->s, 0, do_park_elsewhere));
	worker_begin(&self->w[0]);
	UNTIL(nr_blocked(&self->s) == 1);
	EXPECT_EQ(0, nr_idle_workers(&self->s));
	EXPECT_EQ(0, nr_idle_workers(&s));
	EXPECT_EQ(1, dev_wake(s.fd, 0, 1));
	UNTIL(nr_running(&self->s) == 1);
	EXPECT_EQ(0, worker_finish(&self->w[0]));
	EXPECT_EQ(PARKLOT_WOKEN, atomic_load(&self->w[0].result));
	space_close(&s);
}

static void *exit_main(void *arg)
{
	struct space *s = arg;

	return (void *)(intptr_t)dev_join(s->fd, 0);
}

TEST_F(members, thread_that_ends_has_left)
{
	long before = nr_open();
	pthread_t thread;
	void *err;
	int i;

	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, exit_main,
					    &self->s));
		pthread_join(thread, &err);
		/*
		 * The slot is free at once, though its worker may still be
		 * dying.
		 */
		EXPECT_EQ(0, (intptr_t)err);
	}
	UNTIL(!nr_running(&self->s));
	EXPECT_EQ(0, nr_blocked(&self->s));
	UNTIL(nr_open() == before);
	EXPECT_EQ(0, dev_join(self->s.fd, 0));
	EXPECT_EQ(0, dev_leave(self->s.fd, 0));
}

/* Once the worker is dead, a parked one is called instead. */
TEST_F(members, thread_that_ends_is_replaced)
{
	pthread_t thread;

	ASSERT_EQ(0, worker_park(&self->w[1], &self->s, 1));
	set_backlog(&self->s, 1);
	ASSERT_EQ(0, worker_start(&self->w[2], &self->s, 2, NULL));
	ASSERT_EQ(0, dev_crew(self->s.fd, 2, 4, 0));
	UNTIL(atomic_load(&self->w[1].result));
	ASSERT_EQ(0, worker_park(&self->w[3], &self->s, 3));
	ASSERT_EQ(0, dev_crew(self->s.fd, 2, 4, 0));
	EXPECT_EQ(1, nr_idle_workers(&self->s));
	ASSERT_EQ(0, dev_crew(self->s.fd, 3, 4, 1000000000));
	ASSERT_EQ(0, pthread_create(&thread, NULL, exit_main, &self->s));
	pthread_join(thread, NULL);
	UNTIL(atomic_load(&self->w[3].result));
	EXPECT_EQ(PARKLOT_CALLED, atomic_load(&self->w[3].result));
	EXPECT_EQ(0, worker_finish(&self->w[1]));
	EXPECT_EQ(0, worker_finish(&self->w[2]));
	EXPECT_EQ(0, worker_finish(&self->w[3]));
}

TEST_F(members, forked_child_has_not_joined)
{
	pid_t pid;

	ASSERT_EQ(0, dev_join(self->s.fd, 0));
	pid = fork();
	if (!pid) {
		struct space s;

		/* The parent's slot does not keep the child from joining. */
		if (dev_leave(self->s.fd, 0) != -EIO ||
		    space_open_crew(&s, 1, 1) || dev_join(s.fd, 0))
			_exit(1);
		sleep_ns(NSEC_PER_MSEC);
		_exit(nr_running(&s) != 1);
	}
	EXPECT_EQ(0, child_status(pid));
	UNTIL(nr_running(&self->s) == 1);
	EXPECT_EQ(0, dev_leave(self->s.fd, 0));
	EXPECT_EQ(0, nr_running(&self->s));
}

/* A process with workers of each kind. */
static void become_manned(struct space *s)
{
	static struct worker w[3];

	if (space_open_crew(s, 1, 4))
		_exit(100);
	if (worker_start(&w[0], s, 0, NULL) || worker_block(&w[1], s, 1) ||
	    worker_park(&w[2], s, 2) || dev_join(s->fd, 3))
		_exit(101);
	if (dev_crew(s->fd, 4, 4, 1000))
		_exit(102);
}

TEST_F(members, kill_leaves_no_worker)
{
	long before = nr_open();
	struct space s;
	int i, pipefd[2];
	pid_t pid;
	char c;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, pipe(pipefd));
		pid = fork();
		if (!pid) {
			become_manned(&s);
			if (write(pipefd[1], "", 1) != 1)
				_exit(103);
			/* Called, or about to be. */
			set_backlog(&s, 1);
			dev_crew(s.fd, 4, 4, i % 2 ? 0 : 1000);
			for (;;)
				dev_park(s.fd, 0, 0, PARKLOT_FOREVER);
		}
		EXPECT_EQ(1, read(pipefd[0], &c, 1));
		EXPECT_EQ(0, kill(pid, SIGKILL));
		EXPECT_EQ(256 + SIGKILL, child_status(pid));
		close(pipefd[0]);
		close(pipefd[1]);
	}
	UNTIL(nr_open() == before);
	EXPECT_EQ(before, nr_open());
}

TEST_F(members, exit_leaves_no_worker)
{
	long before = nr_open();
	struct space s;
	pid_t pid = fork();

	if (!pid) {
		become_manned(&s);
		_exit(7);
	}
	EXPECT_EQ(7, child_status(pid));
	UNTIL(nr_open() == before);
	EXPECT_EQ(before, nr_open());
}

/*
 * The program run by exec, before any main(): its only thread had joined. The
 * old space does not belong to the program; the process that kept the
 * descriptor sees no worker in it. The program joins a new crew, and leaves by
 * exit.
 */
static void __attribute__((constructor)) exec_main(void)
{
	const char *text = getenv(EXEC_ENV);
	int fd = text ? atoi(text) : -1;
	struct space s;

	if (!text)
		return;
	if (dev_leave(fd, 3) != -EIO || space_open_crew(&s, 1, 1))
		_exit(1);
	UNTIL(!fdinfo(getpid(), fd, "running"));
	if (fdinfo(getpid(), fd, "blocked"))
		_exit(2);
	if (dev_join(s.fd, 0))
		_exit(3);
	sleep_ns(NSEC_PER_MSEC);
	_exit(nr_running(&s) == 1 ? 0 : 4);
}

TEST_F(members, exec_ends_the_crew)
{
	char *argv[] = { "exec", NULL }, fd[16];
	long before = nr_open();
	struct space s;
	pid_t pid = fork();

	if (!pid) {
		become_manned(&s);
		fcntl(s.fd, F_SETFD, 0);
		snprintf(fd, sizeof(fd), "%d", s.fd);
		setenv(EXEC_ENV, fd, 1);
		execv("/proc/self/exe", argv);
		_exit(104);
	}
	EXPECT_EQ(0, child_status(pid));
	UNTIL(nr_open() == before);
	EXPECT_EQ(before, nr_open());
}

/* The space is closed while its workers run, block and dwell. */
TEST_F(members, close_releases_all_workers)
{
	long before;
	struct space s;
	int round;

	for (round = 0; round < 10; round++) {
		before = nr_open();
		memset(self->w, 0, sizeof(self->w));
		ASSERT_EQ(0, space_open_crew(&s, 1, 4));
		ASSERT_EQ(0, worker_start(&self->w[0], &s, 0, NULL));
		ASSERT_EQ(0, worker_block(&self->w[1], &s, 1));
		ASSERT_EQ(0, worker_park(&self->w[2], &s, 2));
		set_backlog(&s, round & 1);
		ASSERT_EQ(0, dev_crew(s.fd, 4, 4, round & 2 ? 0 : 10000));
		space_close(&s);
		/* The workers are in no crew, and may join another. */
		UNTIL(atomic_load(&self->w[2].is_done));
		EXPECT_TRUE(worker_unblock(&self->w[1]));
		worker_finish(&self->w[0]);
		worker_finish(&self->w[1]);
		worker_finish(&self->w[2]);
		UNTIL(nr_open() == before);
	}
	EXPECT_EQ(before, nr_open());
}

TEST_F(members, worker_of_a_closed_space_joins_another)
{
	struct space s;
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, space_open_crew(&s, 1, 1));
		EXPECT_EQ(0, dev_join(s.fd, 0));
		space_close(&s);
	}
	EXPECT_EQ(0, dev_join(self->s.fd, 0));
	EXPECT_EQ(1, nr_running(&self->s));
	EXPECT_EQ(0, dev_leave(self->s.fd, 0));
}

struct joiner {
	struct space *s;
	pthread_barrier_t *start;
	int nr_joined;
};

static void *join_often(void *arg)
{
	struct joiner *joiner = arg;
	int i, slot;

	pthread_barrier_wait(joiner->start);
	/* The other threads may win each time, until they have finished. */
	for (i = 0; i < 2000 || !joiner->nr_joined; i++) {
		slot = i % 2;
		if (dev_join(joiner->s->fd, slot))
			continue;
		joiner->nr_joined++;
		dev_park(joiner->s->fd, 0, 0, now_ns() + 1000);
		if (dev_leave(joiner->s->fd, slot))
			return NULL;
	}
	return joiner;
}

TEST_F(members, concurrent_joins_of_a_slot_admit_one)
{
	struct joiner joiner[4];
	pthread_barrier_t start;
	pthread_t thread[4];
	void *is_ok;
	int i;

	pthread_barrier_init(&start, NULL, 4);
	set_backlog(&self->s, 1);
	ASSERT_EQ(0, dev_crew(self->s.fd, 2, 2, 0));
	for (i = 0; i < 4; i++) {
		joiner[i] = (struct joiner){ &self->s, &start, 0 };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, join_often,
					    &joiner[i]));
	}
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], &is_ok);
		EXPECT_NE(NULL, is_ok);
		EXPECT_LT(0, joiner[i].nr_joined);
	}
	EXPECT_EQ(0, nr_running(&self->s));
	EXPECT_EQ(0, nr_blocked(&self->s));
	EXPECT_EQ(0, nr_idle_workers(&self->s));
}

TEST_HARNESS_MAIN
