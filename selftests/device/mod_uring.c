// SPDX-License-Identifier: GPL-2.0-only
/* PARK and WAKE as commands of io_uring, and each way in which they end. */
#include "kselftest_harness.h"

#include <liburing.h>
#include "uffd_page.h"
#include "mod.h"

#include <sys/wait.h>

#define NR_MANY	20

FIXTURE(uring)
{
	struct space s;
	struct io_uring ring;
};

FIXTURE_SETUP(uring)
{
	SPACE_SETUP(&self->s, 2);
	if (!(dev_features(self->s.fd) & PARKLOT_FEAT_URING))
		SKIP_ALL("this kernel has no such commands");
	ASSERT_EQ(0, io_uring_queue_init(64, &self->ring, 0));
}

FIXTURE_TEARDOWN(uring)
{
	io_uring_queue_exit(&self->ring);
	UNTIL(!nr_parked(&self->s, 0) && !nr_parked(&self->s, 1));
	space_close(&self->s);
}

static struct io_uring_sqe *prep(struct io_uring *ring, int fd, uint32_t op,
				 const void *arg, uint64_t data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct parklot_uring *area = (void *)sqe->cmd;

	io_uring_prep_nop(sqe);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = op;
	sqe->user_data = data;
	area->arg = (uintptr_t)arg;
	area->reserved = 0;
	return sqe;
}

/* The struct need not outlive the submission. */
static int submit_park(struct io_uring *ring, struct space *s, uint32_t lot,
		       uint64_t deadline, uint64_t data)
{
	struct parklot_park park = {
		.lot = lot, .expected_seq = seq_read(s, lot),
		.deadline_ns = deadline, .pollfd = -1,
	};
	int nr;

	prep(ring, s->fd, PARKLOT_IOC_PARK, &park, data);
	nr = io_uring_submit(ring);
	memset(&park, 0xff, sizeof(park));
	return nr;
}

/* The next result, and the user_data of its command. */
static int result(struct io_uring *ring, uint64_t *data)
{
	struct io_uring_cqe *cqe;
	int res = io_uring_wait_cqe(ring, &cqe);

	if (res)
		return res;
	res = cqe->res;
	if (data)
		*data = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

TEST_F(uring, parked_command_is_woken)
{
	ASSERT_EQ(1, submit_park(&self->ring, &self->s, 0, PARKLOT_FOREVER, 1));
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	EXPECT_EQ(PARKLOT_WOKEN, result(&self->ring, NULL));
}

TEST_F(uring, last_parked_command_is_woken_first)
{
	uint64_t i, data;

	for (i = 0; i < NR_MANY; i++)
		ASSERT_EQ(1, submit_park(&self->ring, &self->s, 0,
					 PARKLOT_FOREVER, i));
	EXPECT_EQ(NR_MANY, nr_parked(&self->s, 0));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, result(&self->ring, &data));
	EXPECT_EQ(NR_MANY - 1, data);
	EXPECT_EQ(NR_MANY - 1, dev_wake(self->s.fd, 0, ~0U));
	for (i = 1; i < NR_MANY; i++)
		EXPECT_EQ(PARKLOT_WOKEN, result(&self->ring, NULL));
}

TEST_F(uring, commands_and_threads_share_a_lot)
{
	struct parker parker;

	ASSERT_EQ(1, submit_park(&self->ring, &self->s, 0, PARKLOT_FOREVER, 1));
	ASSERT_EQ(0, parker_start(&parker, &self->s, 0, 0, PARKLOT_FOREVER));
	ASSERT_EQ(1, submit_park(&self->ring, &self->s, 0, PARKLOT_FOREVER, 2));
	EXPECT_EQ(3, dev_wake(self->s.fd, 0, 8));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
	EXPECT_EQ(PARKLOT_WOKEN, result(&self->ring, NULL));
	EXPECT_EQ(PARKLOT_WOKEN, result(&self->ring, NULL));
}

TEST_F(uring, command_heeds_seq_and_deadline)
{
	struct parklot_park park = { .expected_seq = 2, .pollfd = -1 };
	uint64_t deadline = now_ns() + 20 * NSEC_PER_MSEC;

	prep(&self->ring, self->s.fd, PARKLOT_IOC_PARK, &park, 0);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(PARKLOT_CHANGED, result(&self->ring, NULL));
	ASSERT_EQ(1, submit_park(&self->ring, &self->s, 0, 0, 0));
	EXPECT_EQ(PARKLOT_TIMEDOUT, result(&self->ring, NULL));
	ASSERT_EQ(1, submit_park(&self->ring, &self->s, 0, deadline, 0));
	EXPECT_EQ(PARKLOT_TIMEDOUT, result(&self->ring, NULL));
	EXPECT_LE(deadline, now_ns());
	EXPECT_EQ(0, nr_parked(&self->s, 0));
}

TEST_F(uring, wake_command_wakes_a_sleeper)
{
	struct parklot_wake_entry entry = { .lot = 1, .nr = 5 };
	struct parklot_wake wake = {
		.entries = (uintptr_t)&entry, .nr_entries = 1, .limit = ~0U,
	};
	struct parker parker[2];

	ASSERT_EQ(0, parker_start(&parker[0], &self->s, 1, 0, PARKLOT_FOREVER));
	ASSERT_EQ(0, parker_start(&parker[1], &self->s, 1, 0, PARKLOT_FOREVER));
	prep(&self->ring, self->s.fd, PARKLOT_IOC_WAKE, &wake, 0);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(2, result(&self->ring, NULL));
	EXPECT_EQ(2, wake.woken);
	EXPECT_EQ(2, entry.woken);
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker[0]));
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker[1]));
}

static int one(struct io_uring *ring, int fd, uint32_t op, const void *arg)
{
	prep(ring, fd, op, arg, 0);
	if (io_uring_submit(ring) != 1)
		return -1;
	return result(ring, NULL);
}

/* Of io_uring's own flags of commands the device knows none. */
static int one_with_a_flag(struct io_uring *ring, int fd)
{
	struct parklot_wake wake = {};
	struct iovec buf = { &wake, sizeof(wake) };
	struct io_uring_sqe *sqe;

	if (io_uring_register_buffers(ring, &buf, 1))
		return -1;
	sqe = prep(ring, fd, PARKLOT_IOC_WAKE, &wake, 0);
	sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
	return io_uring_submit(ring) == 1 ? result(ring, NULL) : -1;
}

TEST_F(uring, bad_input_is_refused)
{
	struct parklot_park park = { .lot = 2, .pollfd = -1 };
	struct parklot_wake wake = { .nr_entries = 65 };
	int fd = dev_open();

	EXPECT_EQ(-EINVAL, one(&self->ring, self->s.fd, PARKLOT_IOC_PARK,
			       &park));
	park = (struct parklot_park){ .flags = 2, .pollfd = -1 };
	EXPECT_EQ(-EINVAL, one(&self->ring, self->s.fd, PARKLOT_IOC_PARK,
			       &park));
	park = (struct parklot_park){ .pollfd = 0 };
	EXPECT_EQ(-EINVAL, one(&self->ring, self->s.fd, PARKLOT_IOC_PARK,
			       &park));
	EXPECT_EQ(-EFAULT, one(&self->ring, self->s.fd, PARKLOT_IOC_PARK,
			       NULL));
	EXPECT_EQ(-EINVAL, one(&self->ring, self->s.fd, PARKLOT_IOC_WAKE,
			       &wake));
	EXPECT_EQ(-EFAULT, one(&self->ring, self->s.fd, PARKLOT_IOC_WAKE,
			       NULL));
	EXPECT_EQ(-ENOTTY, one(&self->ring, self->s.fd, PARKLOT_IOC_QUERY,
			       &park));
	EXPECT_EQ(-ENXIO, one(&self->ring, fd, PARKLOT_IOC_PARK, &park));
	EXPECT_EQ(-EINVAL, one_with_a_flag(&self->ring, self->s.fd));
	EXPECT_EQ(0, nr_parked(&self->s, 0));
	close(fd);
	if (!set_features(~(unsigned long)PARKLOT_FEAT_URING))
		SKIP(return, "not root");
	EXPECT_EQ(-EOPNOTSUPP, one(&self->ring, self->s.fd, PARKLOT_IOC_PARK,
				   &park));
	EXPECT_TRUE(set_features(~0UL));
}

TEST_F(uring, close_ends_parked_commands)
{
	ASSERT_EQ(1, submit_park(&self->ring, &self->s, 0, PARKLOT_FOREVER, 1));
	EXPECT_EQ(0, close(self->s.fd));
	EXPECT_EQ(PARKLOT_INTERRUPTED, result(&self->ring, NULL));
	self->s.fd = dev_open();
}

static void *submit(void *ring)
{
	return (void *)(intptr_t)io_uring_submit(ring);
}

/* The command holds the file, and has not looked at its lot yet. */
TEST_F(uring, last_close_ends_a_command_before_it_parks)
{
	struct parklot_park park = {
		.deadline_ns = PARKLOT_FOREVER, .pollfd = -1,
	};
	struct uffd_page page;
	pthread_t thread;
	void *nr;

	if (uffd_page_open(&page, 0))
		SKIP(return, "no userfaultfd");
	prep(&self->ring, self->s.fd, PARKLOT_IOC_PARK, page.mem, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, submit, &self->ring));
	uffd_page_await(&page);
	EXPECT_EQ(0, close(self->s.fd));
	EXPECT_EQ(0, uffd_page_bring(&page, &park, sizeof(park)));
	pthread_join(thread, &nr);
	EXPECT_EQ(1, (intptr_t)nr);
	EXPECT_EQ(PARKLOT_INTERRUPTED, result(&self->ring, NULL));
	self->s.fd = dev_open();
	uffd_page_close(&page);
}

/* A registered file needs no descriptor, neither to park nor to wake. */
TEST_F(uring, registered_file_parks_and_wakes)
{
	struct parklot_park park = {
		.deadline_ns = PARKLOT_FOREVER, .pollfd = -1,
	};
	struct parklot_wake_entry entry = { .nr = 1 };
	struct parklot_wake wake = {
		.entries = (uintptr_t)&entry, .nr_entries = 1, .limit = ~0U,
	};
	uint64_t data;
	int res;

	ASSERT_EQ(0, io_uring_register_files(&self->ring, &self->s.fd, 1));
	EXPECT_EQ(0, close(self->s.fd));
	prep(&self->ring, 0, PARKLOT_IOC_PARK, &park, 1)->flags =
		IOSQE_FIXED_FILE;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	prep(&self->ring, 0, PARKLOT_IOC_WAKE, &wake, 2)->flags =
		IOSQE_FIXED_FILE;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	/* In either order, one result each. */
	res = result(&self->ring, &data);
	EXPECT_EQ(data == 1 ? PARKLOT_WOKEN : 1, res);
	res = result(&self->ring, &data);
	EXPECT_EQ(data == 1 ? PARKLOT_WOKEN : 1, res);
	EXPECT_EQ(1, wake.woken);
	self->s.fd = dev_open();
}

TEST_F(uring, end_of_a_ring_cancels_commands)
{
	uint64_t later = now_ns() + 1000 * NSEC_PER_SEC;
	int i;

	for (i = 0; i < NR_MANY; i++)
		ASSERT_EQ(1, submit_park(&self->ring, &self->s, i & 1,
					 i % 3 ? later : PARKLOT_FOREVER, i));
	EXPECT_EQ(NR_MANY / 2, nr_parked(&self->s, 1));
	io_uring_queue_exit(&self->ring);
	UNTIL(!nr_parked(&self->s, 0) && !nr_parked(&self->s, 1));
	ASSERT_EQ(0, io_uring_queue_init(8, &self->ring, 0));
	EXPECT_EQ(0, dev_wake(self->s.fd, 0, ~0U));
}

/*
 * Commands that io-wq submits while their ring ends: the cancel may find a
 * command that is not on its lot yet, or has left it because seq differs.
 */
static int park_async_and_end(struct space *s, uint64_t deadline,
			      unsigned int delay)
{
	struct parklot_park park = { .deadline_ns = deadline, .pollfd = -1 };
	struct parklot_park changed = park;
	struct io_uring ring;
	unsigned int i;
	int nr;

	park.expected_seq = seq_read(s, 0);
	changed.expected_seq = park.expected_seq + 2;
	if (io_uring_queue_init(16, &ring, 0))
		return -1;
	for (i = 0; i < 16; i++)
		prep(&ring, s->fd, PARKLOT_IOC_PARK,
		     i % 4 == 3 ? &changed : &park, i)->flags = IOSQE_ASYNC;
	nr = io_uring_submit(&ring);
	while (delay--)
		sched_yield();
	io_uring_queue_exit(&ring);
	return nr;
}

TEST_F_TIMEOUT(uring, end_of_a_ring_cancels_a_command_before_it_parks, 60)
{
	uint64_t end = now_ns() + 2 * NSEC_PER_SEC;
	uint64_t later = now_ns() + 1000 * NSEC_PER_SEC;
	unsigned int i;

	for (i = 0; now_ns() < end; i++)
		ASSERT_EQ(16, park_async_and_end(&self->s, i & 1 ? later :
						 PARKLOT_FOREVER, i % 8));
	UNTIL(!nr_parked(&self->s, 0));
	EXPECT_EQ(0, dev_wake(self->s.fd, 0, ~0U));
}

/*
 * The result of a DEFER_TASKRUN ring exists only once its owner asks for it. If
 * the ring ends before, its wakeup is passed on.
 */
TEST_F(uring, wake_of_a_ring_that_ends_goes_to_another_sleeper)
{
	uint64_t later = now_ns() + 10 * NSEC_PER_SEC * time_factor();
	struct parker parker;
	struct io_uring ring;

	ASSERT_EQ(0, parker_start(&parker, &self->s, 0, 0, later));
	ASSERT_EQ(0, io_uring_queue_init(8, &ring, IORING_SETUP_SINGLE_ISSUER |
					 IORING_SETUP_DEFER_TASKRUN));
	ASSERT_EQ(1, submit_park(&ring, &self->s, 0, PARKLOT_FOREVER, 1));
	EXPECT_EQ(2, nr_parked(&self->s, 0));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	io_uring_queue_exit(&ring);
	EXPECT_EQ(PARKLOT_WOKEN, parker_join(&parker));
}

/*
 * io_uring does not pass these two on to the file: the park ends by its
 * deadline, or by a wake.
 */
TEST_F(uring, cancel_and_link_timeout_leave_a_command_parked)
{
	struct __kernel_timespec ts = { .tv_nsec = NSEC_PER_MSEC };
	struct parklot_park park = {
		.deadline_ns = PARKLOT_FOREVER, .pollfd = -1,
	};
	struct io_uring_sqe *sqe;
	uint64_t data;
	int i, res;

	ASSERT_EQ(1, submit_park(&self->ring, &self->s, 0, PARKLOT_FOREVER, 1));
	for (i = 0; i < 2; i++) {
		sqe = io_uring_get_sqe(&self->ring);
		if (i)
			io_uring_prep_cancel_fd(sqe, self->s.fd, 0);
		else
			io_uring_prep_cancel64(sqe, 1, 0);
		sqe->user_data = 2;
		ASSERT_EQ(1, io_uring_submit(&self->ring));
		EXPECT_EQ(-ENOENT, result(&self->ring, &data));
		EXPECT_EQ(2, data);
	}
	prep(&self->ring, self->s.fd, PARKLOT_IOC_PARK, &park, 3)->flags =
		IOSQE_IO_LINK;
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_link_timeout(sqe, &ts, 0);
	sqe->user_data = 4;
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	res = result(&self->ring, &data);
	EXPECT_EQ(4, data);
	EXPECT_EQ(-ENOENT, res);
	EXPECT_EQ(2, nr_parked(&self->s, 0));
	EXPECT_EQ(2, dev_wake(self->s.fd, 0, ~0U));
	EXPECT_EQ(PARKLOT_WOKEN, result(&self->ring, NULL));
	EXPECT_EQ(PARKLOT_WOKEN, result(&self->ring, NULL));
}

/* Such a ring belongs to its task, but another thread ends it. */
TEST_F(uring, end_of_a_deferring_ring_cancels_commands)
{
	uint64_t later = now_ns() + 1000 * NSEC_PER_SEC;
	struct io_uring ring;
	int i;

	for (i = 0; i < NR_MANY; i++) {
		ASSERT_EQ(0, io_uring_queue_init(8, &ring,
						 IORING_SETUP_SINGLE_ISSUER |
						 IORING_SETUP_DEFER_TASKRUN));
		ASSERT_EQ(1, submit_park(&ring, &self->s, 0, PARKLOT_FOREVER,
					 1));
		ASSERT_EQ(1, submit_park(&ring, &self->s, 0, later, 2));
		EXPECT_EQ(2, nr_parked(&self->s, 0));
		io_uring_queue_exit(&ring);
		UNTIL(!nr_parked(&self->s, 0));
	}
}

/* Of all processors: how long they were busy, in hundredths of a second. */
static long nr_busy_ticks(void)
{
	long user, nice, system, idle, iowait, irq, softirq;
	FILE *file = fopen("/proc/stat", "re");
	int nr;

	if (!file)
		return -1;
	nr = fscanf(file, "cpu %ld %ld %ld %ld %ld %ld %ld", &user, &nice,
		    &system, &idle, &iowait, &irq, &softirq);
	fclose(file);
	return nr == 7 ? user + nice + system + irq + softirq : -1;
}

/* A child keeps its ring until the gate closes, while this is stopped. */
static void __attribute__((noreturn))
submit_and_stop(int gate[2], uint64_t deadline, unsigned int flags)
{
	struct io_uring ring;
	struct space s;
	char c;

	close(gate[1]);
	if (space_open(&s, 1) || io_uring_queue_init(8, &ring, flags) ||
	    submit_park(&ring, &s, 0, deadline, 1) != 1)
		_exit(1);
	if (!fork())
		_exit((int)read(gate[0], &c, 1));
	io_uring_queue_exit(&ring);
	raise(SIGSTOP);
	_exit(0);
}

static void end_while_stopped(struct __test_metadata *_metadata,
			      uint64_t deadline, unsigned int flags)
{
	int gate[2], status;
	long before, after;
	pid_t pid;

	ASSERT_EQ(0, pipe(gate));
	pid = fork();
	if (!pid)
		submit_and_stop(gate, deadline, flags);
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	while (deadline != PARKLOT_FOREVER && now_ns() < deadline)
		sleep_ns(NSEC_PER_SEC / 10);
	close(gate[1]);
	sleep_ns(NSEC_PER_SEC / 10);
	before = nr_busy_ticks();
	sleep_ns(NSEC_PER_SEC);
	after = nr_busy_ticks();
	ASSERT_LE(0, before);
	EXPECT_GE(before + 30, after)
		TH_LOG("busy for %ld of 100", after - before);
	kill(pid, SIGCONT);
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(gate[0]);
}

/* A command that is parked, one that is late, and one of a ring of one task. */
TEST_F(uring, end_of_a_ring_does_not_wait_for_a_stopped_task)
{
	end_while_stopped(_metadata, PARKLOT_FOREVER, 0);
	end_while_stopped(_metadata, now_ns() + NSEC_PER_SEC, 0);
	end_while_stopped(_metadata, PARKLOT_FOREVER,
			  IORING_SETUP_SINGLE_ISSUER |
			  IORING_SETUP_DEFER_TASKRUN);
}

static void *submit_and_exit(void *arg)
{
	FIXTURE_DATA(uring) *self = arg;

	return (void *)(intptr_t)submit_park(&self->ring, &self->s, 0,
					     PARKLOT_FOREVER, 7);
}

/* The command belongs to the ring, and completes though its task is gone. */
TEST_F(uring, command_outlives_its_thread)
{
	pthread_t thread;
	void *nr;

	ASSERT_EQ(0, pthread_create(&thread, NULL, submit_and_exit, self));
	pthread_join(thread, &nr);
	EXPECT_EQ(1, (intptr_t)nr);
	EXPECT_EQ(1, nr_parked(&self->s, 0));
	EXPECT_EQ(1, dev_wake(self->s.fd, 0, 1));
	EXPECT_EQ(PARKLOT_WOKEN, result(&self->ring, NULL));
	EXPECT_EQ(0, nr_parked(&self->s, 0));
}

/* Killed with parked commands: the file, and so the module, is released. */
TEST_F(uring, kill_leaves_no_command)
{
	struct io_uring ring;
	int i, status, fd[2];
	struct space s;
	pid_t pid;
	char c;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, pipe(fd));
		pid = fork();
		if (!pid) {
			if (space_open(&s, 1) ||
			    io_uring_queue_init(8, &ring, 0) ||
			    submit_park(&ring, &s, 0, PARKLOT_FOREVER, 0) != 1)
				_exit(1);
			if (write(fd[1], "", 1) == 1)
				pause();
			_exit(2);
		}
		EXPECT_EQ(1, read(fd[0], &c, 1));
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		EXPECT_TRUE(WIFSIGNALED(status));
		close(fd[0]);
		close(fd[1]);
	}
}

struct racer {
	struct space *s;
	atomic_int nr_woken;
	atomic_bool is_over;
};

static void *wake_often(void *arg)
{
	struct racer *racer = arg;

	while (!atomic_load(&racer->is_over))
		atomic_fetch_add(&racer->nr_woken,
				 dev_wake(racer->s->fd, 0, 3));
	return NULL;
}

/*
 * Deadlines about to pass, against wakes: each wake counts, or finds none. Some
 * deadlines are so late that a waker gets a processor before.
 */
TEST_TIMED(wake_racing_a_deadline_ends_the_command_once,
	   "both ends of a race must be seen")
TEST_F_TIMEOUT(uring, wake_racing_a_deadline_ends_the_command_once, 60)
{
	uint64_t end = now_ns() + 3 * NSEC_PER_SEC;
	struct racer racer = { .s = &self->s };
	int i, j, unit, res, nr_waking = 0, nr_late = 0;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, wake_often, &racer));
	for (i = 0; now_ns() < end || !nr_waking || !nr_late; i++) {
		unit = i % 64 ? 1000 : 1000000;
		for (j = 0; j < 8; j++)
			submit_park(&self->ring, &self->s, 0,
				    now_ns() + (i * 7 + j) % 200 * unit, 0);
		for (j = 0; j < 8; j++) {
			res = result(&self->ring, NULL);
			nr_waking += res == PARKLOT_WOKEN;
			nr_late += res == PARKLOT_TIMEDOUT;
		}
	}
	atomic_store(&racer.is_over, true);
	pthread_join(thread, NULL);
	EXPECT_EQ(8 * i, nr_waking + nr_late);
	EXPECT_EQ(atomic_load(&racer.nr_woken), nr_waking);
	EXPECT_LT(0, nr_waking);
	EXPECT_LT(0, nr_late);
}

TEST_HARNESS_MAIN
