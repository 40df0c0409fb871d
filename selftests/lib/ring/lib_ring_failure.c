/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * io_uring_enter() is forbidden to all threads while tasks wait for I/O: what
 * they wait for, their deadlines, cancels, closes and the stop end them all
 * the same, and what follows works.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "base/inject.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "forbid.h"

#define NR_MAX		1000
#define NR_FDS		8
#define IDLE_MS		200

enum what { RECV, SEND, ACCEPT, READ, POLL, NR_WHATS };

/* [0] is waited for, [1] is its peer; an address where the peer connects. */
static int fds[NR_WHATS][NR_FDS][2];
static struct sockaddr_un addrs[NR_FDS];

struct waiter {
	pl_task_t	task;
	enum what	what;
	int		fd;
	uint64_t	deadline_ns;
	ssize_t		res;
	char		c;
};

static struct waiter waiters[NR_MAX];
static atomic_int nr_ended;

static ssize_t wait_for(struct waiter *w)
{
	switch (w->what) {
	case RECV:
		return pl_recv_until(w->fd, &w->c, 1, 0, w->deadline_ns);
	case SEND:
		return pl_send_until(w->fd, "x", 1, 0, w->deadline_ns);
	case ACCEPT:
		return pl_accept_until(w->fd, NULL, NULL, 0, w->deadline_ns);
	case READ:
		return pl_read_until(w->fd, &w->c, 1, w->deadline_ns);
	default:
		return pl_poll(w->fd, POLLIN, w->deadline_ns);
	}
}

static void run_waiter(void *arg)
{
	struct waiter *w = arg;

	w->res = wait_for(w);
	if (w->what == ACCEPT && w->res >= 0) {
		EXPECT_EQ(0, close((int)w->res));
		w->res = 1;
	}
	nr_ended++;
}

static void fill(int fd)
{
	char bytes[4096] = { 0 };

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	while (send(fd, bytes, 1, MSG_DONTWAIT) > 0)
		;
}

static void listen_at(int nth)
{
	struct sockaddr_un *a = &addrs[nth];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	a->sun_family = AF_UNIX;
	snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
		 "parklot-failure-%d-%d", getpid(), nth);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)a, sizeof(*a)));
	ASSERT_EQ(0, listen(fd, NR_MAX));
	fds[ACCEPT][nth][0] = fd;
}

static void open_fds(void)
{
	int i, what;

	for (i = 0; i < NR_FDS; i++) {
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds[RECV][i]));
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds[SEND][i]));
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds[POLL][i]));
		ASSERT_EQ(0, pipe(fds[READ][i]));
		fill(fds[SEND][i][0]);
		listen_at(i);
		for (what = 0; what < NR_WHATS; what++)
			fds[what][i][0] = move_up(fds[what][i][0]);
	}
}

/* What ends the wait of all @nr waiters. */
static void give(int nr)
{
	char bytes[4096] = { 0 };
	int i, fd;

	for (i = 0; i < NR_FDS; i++)
		while (recv(fds[SEND][i][1], bytes, sizeof(bytes),
			    MSG_DONTWAIT) > 0)
			;
	for (i = 0; i < nr; i++) {
		fd = fds[waiters[i].what][i % NR_FDS][1];
		switch (waiters[i].what) {
		case RECV:
		case POLL:
		case READ:
			EXPECT_EQ(1, write(fd, "x", 1));
			break;
		case ACCEPT:
			fd = socket(AF_UNIX, SOCK_STREAM, 0);
			EXPECT_EQ(0, connect(fd, (struct sockaddr *)
					     &addrs[i % NR_FDS],
					     sizeof(addrs[0])));
			EXPECT_EQ(0, close(fd));
			break;
		default:
			break;
		}
	}
}

/*
 * Starts @nr waiters, which are in the kernel then, but for those that are over
 * their deadline.
 */
static void start_waiters(int nr, uint64_t deadline_ns)
{
	int i;

	nr_ended = 0;
	for (i = 0; i < nr; i++) {
		waiters[i] = (struct waiter){
			.what = (enum what)(i / NR_FDS % NR_WHATS),
			.deadline_ns = deadline_ns,
		};
		waiters[i].fd = fds[waiters[i].what][i % NR_FDS][0];
		waiters[i].task = spawn(run_waiter, &waiters[i]);
	}
	EXPECT_TRUE(UNTIL(rt_stat().io_in_flight + nr_ended >= (uint64_t)nr &&
			  is_all_parked()));
}

static void join_waiters(int nr, ssize_t res, ssize_t or)
{
	int i;

	EXPECT_TRUE(UNTIL(nr_ended == nr));
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(0, pl_join_until(waiters[i].task,
					   pl_now() + stuck_ns()));
		if (waiters[i].res != or)
			EXPECT_EQ(res, waiters[i].res);
	}
}

FIXTURE(failure) { char unused; };
FIXTURE_VARIANT(failure) { int nr, err; uint32_t workers; const char *wait; };
#define VARIANT(name, ...) \
	FIXTURE_VARIANT_ADD(failure, name) { __VA_ARGS__ };
VARIANT(one, 1, EPERM, 1, "eventfd")
VARIANT(ten, 10, ENOSYS, 1, "eventfd")
VARIANT(ten_of_two_workers, 10, EPERM, 2, "eventfd")
VARIANT(ten_with_futex, 10, EPERM, 2, "futex")
VARIANT(ten_with_park, 10, EPERM, 2, "park")
VARIANT(ten_on_bad_ring, 10, EBADF, 2, "eventfd")
VARIANT(ten_on_invalid_ring, 10, EINVAL, 2, "eventfd")
VARIANT(ten_told_to_try_again, 10, EAGAIN, 2, "eventfd")
VARIANT(ten_told_of_a_signal, 10, EINTR, 2, "eventfd")
VARIANT(ten_told_of_a_timeout, 10, ETIME, 2, "eventfd")
VARIANT(thousand, NR_MAX, EPERM, 1, "eventfd")
VARIANT(thousand_with_futex, NR_MAX, EPERM, 2, "futex")
VARIANT(thousand_of_four_workers, NR_MAX, EPERM, 4, "eventfd")

/* A thousand of several workers are fewer where loops are shorter. */
#define NR_WAITERS \
	(variant->nr < NR_MAX || variant->workers == 1 ? variant->nr : \
							 scaled(variant->nr))

FIXTURE_SETUP(failure)
{
	rt_begin(_metadata);
	unsetenv("PARKLOT_IO");
	rt_force_wait(variant->wait);
}

FIXTURE_TEARDOWN(failure) { rt_end(); }

#define START(nr, max) do { \
	start_with(nr, max); \
	if (!rt_has_uring()) \
		SKIP(return, "no io_uring here"); \
	open_fds(); \
} while (0)

#define FORBID() do { \
	if (!forbid_call_now(SYS_io_uring_enter, variant->err)) \
		SKIP(return, "no seccomp in this kernel"); \
} while (0)

/* What is new when the ring has failed already. */
static void use_all(void *arg)
{
	char bytes[16];
	int fd[2], file;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	EXPECT_EQ(-ETIMEDOUT, pl_recv_until(fd[0], bytes, 1, 0, in_ms(20)));
	EXPECT_EQ(-ETIMEDOUT, pl_poll(fd[0], POLLIN, in_ms(2)));
	EXPECT_EQ(0, pl_sleep(NSEC_PER_MSEC));
	EXPECT_EQ(1, pl_send(fd[1], "x", 1, 0));
	EXPECT_EQ(1, pl_recv(fd[0], bytes, 1, 0));
	EXPECT_EQ(0, pl_close(fd[0]));
	EXPECT_EQ(0, pl_close(fd[1]));
	file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, file);
	EXPECT_LT(0, pl_read(file, bytes, sizeof(bytes)));
	EXPECT_EQ(0, pl_close(file));
}

/* By several at once: one alone might run on the same worker each time. */
static bool is_found(void)
{
	mixed_run(8, 0, use_all, NULL);
	return rt_stat().io == PL_IO_POLL;
}

/*
 * A worker that got its ring since has one of epoll from the first: then it may
 * take a few tasks until one runs where a ring has failed.
 */
static void all_works(void)
{
	use_all(NULL);
	EXPECT_TRUE(UNTIL(is_found()));
}

TEST_TIMED(deadline_ends_wait, "an event must come before a deadline")
TEST_F(failure, deadline_ends_wait)
{
	START(variant->workers, variant->workers + 2);
	start_waiters(NR_WAITERS, in_ms(NR_WAITERS < 100 ? 100 : 1000));
	FORBID();
	join_waiters(NR_WAITERS, -ETIMEDOUT, -ETIMEDOUT);
	all_works();
}

TEST_F(failure, cancel_ends_wait)
{
	int i;

	START(variant->workers, variant->workers + 2);
	start_waiters(NR_WAITERS, PL_FOREVER);
	FORBID();
	for (i = 0; i < NR_WAITERS; i++)
		EXPECT_EQ(0, pl_cancel(waiters[i].task));
	join_waiters(NR_WAITERS, -ECANCELED, -ECANCELED);
	all_works();
}

TEST_F(failure, event_ends_wait)
{
	START(variant->workers, variant->workers + 2);
	start_waiters(NR_WAITERS, PL_FOREVER);
	FORBID();
	give(NR_WAITERS);
	join_waiters(NR_WAITERS, 1, POLLIN);
	all_works();
}

TEST_F(failure, event_after_it_was_found_ends_wait)
{
	START(variant->workers, variant->workers + 2);
	start_waiters(NR_WAITERS, PL_FOREVER);
	FORBID();
	all_works();
	give(NR_WAITERS);
	join_waiters(NR_WAITERS, 1, POLLIN);
}

TEST_F(failure, close_ends_wait)
{
	int i, j;

	START(variant->workers, variant->workers + 2);
	start_waiters(NR_WAITERS, PL_FOREVER);
	FORBID();
	for (i = 0; i < NR_WHATS; i++)
		for (j = 0; j < NR_FDS; j++)
			EXPECT_EQ(0, pl_close(fds[i][j][0]));
	join_waiters(NR_WAITERS, -EBADF, -EBADF);
	all_works();
}

TEST_F(failure, stop_ends_wait)
{
	START(variant->workers, variant->workers + 2);
	start_waiters(NR_WAITERS, PL_FOREVER);
	FORBID();
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(NR_WAITERS, nr_ended);
}

/* No worker asks again and again. */
TEST_TIMED(idle_workers_sleep, "processor time")
TEST_F(failure, idle_workers_sleep)
{
	uint64_t cpu_ns, now;

	START(variant->workers, variant->workers + 2);
	start_waiters(NR_WAITERS, PL_FOREVER);
	FORBID();
	all_works();
	EXPECT_TRUE(UNTIL(is_all_parked()));
	cpu_ns = rt_cpu_ns();
	now = pl_now();
	while (pl_now() - now < IDLE_MS * NSEC_PER_MSEC)
		usleep(10000);
	EXPECT_GT((pl_now() - now) / 4, rt_cpu_ns() - cpu_ns);
	give(NR_WAITERS);
	join_waiters(NR_WAITERS, 1, POLLIN);
}

static atomic_bool is_computing, may_go_on;

static void compute(void *arg)
{
	is_computing = true;
	EXPECT_TRUE(UNTIL_BUSY(may_go_on));
}

static void start_computing(pl_task_t *tasks, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		is_computing = false;
		tasks[i] = spawn(compute, NULL);
		EXPECT_TRUE(UNTIL(is_computing));
	}
}

static void end_computing(const pl_task_t *tasks, uint32_t nr)
{
	uint32_t i;

	may_go_on = true;
	for (i = 0; i < nr; i++)
		join(tasks[i]);
}

/* More completions than the queue of completions has entries. */
TEST_F(failure, events_before_it_was_found_are_not_lost)
{
	pl_task_t tasks[8];

	START(variant->workers, variant->workers + 2);
	start_waiters(NR_WAITERS, PL_FOREVER);
	start_computing(tasks, variant->workers);
	FORBID();
	give(NR_WAITERS);
	usleep(1000);
	end_computing(tasks, variant->workers);
	join_waiters(NR_WAITERS, 1, POLLIN);
	all_works();
}

#ifdef PL_TEST_FAULT

static _Atomic uint32_t hits[1024];	/* of each fault site */

/* Of the look for completions that had no room in the queue. */
static uint32_t nr_hits_of_look(void)
{
	const struct pl__fault_site *sites;
	size_t i, nr = pl__fault_sites(&sites);
	uint32_t nr_hits = 0;

	for (i = 0; i < nr && i < ARRAY_SIZE(hits); i++)
		if (strstr(sites[i].file, "uring_failure.c") &&
		    strstr(sites[i].call, "open"))
			nr_hits += hits[i];
	return nr_hits;
}

/* What the queue had no room for is looked for again. */
TEST_F(failure, want_of_descriptors_delays_events)
{
	pl_task_t tasks[8];
	int i;

	START(variant->workers, variant->workers + 2);
	start_waiters(NR_WAITERS, PL_FOREVER);
	start_computing(tasks, variant->workers);
	FORBID();
	give(NR_WAITERS);
	pl__fault_count(hits);
	pl__fault_plan(PL__FAULT_FROM, 1, 0);
	may_go_on = true;
	if (NR_WAITERS == NR_MAX && variant->workers == 1)
		EXPECT_TRUE(UNTIL(nr_hits_of_look() ||
				  nr_ended == NR_WAITERS));
	else
		usleep(20000);
	pl__fault_plan(PL__FAULT_NONE, 0, 0);
	end_computing(tasks, variant->workers);
	/* A wait that went on by epoll may have said so. */
	EXPECT_TRUE(UNTIL(nr_ended == NR_WAITERS));
	for (i = 0; i < NR_WAITERS; i++)
		if (waiters[i].res == -ENOMEM)
			waiters[i].res = 1;
	join_waiters(NR_WAITERS, 1, POLLIN);
	all_works();
}

#endif

/* Then requests are tried again after a while, and messages are looked for. */
TEST_F(failure, no_descriptor_for_epoll_delays_it)
{
	/* Each worker has its ring by then. */
	START(1, 1);
	start_waiters(NR_WAITERS, PL_FOREVER);
	if (!forbid_call_now(SYS_epoll_create1, EMFILE) ||
	    !forbid_call_now(SYS_eventfd2, EMFILE))
		SKIP(return, "no seccomp in this kernel");
	FORBID();
	all_works();
	give(NR_WAITERS);
	join_waiters(NR_WAITERS, 1, POLLIN);
}

/* What is in the kernel then ends with its event. */
TEST_F(failure, event_ends_wait_that_cannot_be_cancelled)
{
	START(variant->workers, variant->workers + 2);
	start_waiters(NR_WAITERS, PL_FOREVER);
	if (!forbid_call_now(SYS_io_uring_register, variant->err))
		SKIP(return, "no seccomp in this kernel");
	FORBID();
	all_works();
	give(NR_WAITERS);
	join_waiters(NR_WAITERS, 1, POLLIN);
}

TEST_HARNESS_MAIN
