/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each public call that waits, for what never comes, and a fixture with what
 * they wait for: CALLS_FIXTURE(name, tasks), with so many tasks at most.
 * pl_pread() and pl_pwrite() are left out, since no descriptor makes them wait
 * here; they are pl_readv() and pl_writev() with an offset.  rt.h is included
 * before this.
 */
#ifndef SELFTESTS_CALLS_H
#define SELFTESTS_CALLS_H

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "resolver.h"

static struct pl_word word;
static struct pl_mutex locked, free_mutex;
static struct pl_rwlock rwlock;
static struct pl_cond cond;
static struct pl_sem none, filler_end;
static struct pl_latch latch;
static struct pl_barrier barrier;
static struct pl_chan *empty, *full, *rendezvous[2];
static struct pl_queue *queue;
static pl_task_t sleeper;
static char path[64], byte, host[64];
static void *item;

/* The reader's ends of two pipes, a full pipe, and sockets; a listener. */
static int never[2], full_pipe[2], quiet[2], full_pair[2], file, listener;
static int deaf, callers[4];
static struct sockaddr_in address = { .sin_family = AF_INET };
static struct iovec iov = { &byte, 1 };

/* ---- what is waited for, and never comes ---- */

static void sleep_until_posted(void *arg)
{
	EXPECT_EQ(0, pl_sem_wait(arg));
}

/* The stop does not reach it either. */
static void sleep_in_shield(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, PL_SCOPE_SHIELD));
	sleep_until_posted(arg);
	EXPECT_EQ(0, pl_scope_leave(&s));
}

static void execute_nothing(void **batch, size_t nr, void *arg)
{
	(void)batch;
	(void)nr;
}

static void make_objects(void)
{
	pl_mutex_lock(&locked);
	pl_rwlock_wrlock(&rwlock);
	EXPECT_EQ(0, pl_latch_init(&latch, 1));
	EXPECT_EQ(0, pl_barrier_init(&barrier, 1000));
	ASSERT_EQ(0, pl_chan_create(&empty, 1));
	ASSERT_EQ(0, pl_chan_create(&full, 1));
	ASSERT_EQ(0, pl_chan_create(&rendezvous[0], 0));
	ASSERT_EQ(0, pl_chan_create(&rendezvous[1], 0));
	EXPECT_EQ(0, pl_chan_send(full, NULL));
	ASSERT_EQ(0, pl_queue_create(&queue, execute_nothing, NULL));
	sleeper = spawn(sleep_in_shield, &none);
}

static void destroy_objects(void)
{
	pl_mutex_unlock(&locked);
	pl_rwlock_wrunlock(&rwlock);
	EXPECT_EQ(0, pl_chan_destroy(empty));
	EXPECT_EQ(0, pl_chan_destroy(full));
	EXPECT_EQ(0, pl_chan_destroy(rendezvous[0]));
	EXPECT_EQ(0, pl_chan_destroy(rendezvous[1]));
	EXPECT_EQ(0, pl_queue_close(queue));
	EXPECT_EQ(0, pl_queue_join(queue));
	EXPECT_EQ(0, pl_sem_post(&none, 1));
	join(sleeper);
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&none));
	EXPECT_EQ(0, barrier.state);
}

static void fill(int fd)
{
	static char many[1 << 16];
	int flags = fcntl(fd, F_GETFL);
	size_t n = sizeof(many);

	ASSERT_EQ(0, fcntl(fd, F_SETFL, flags | O_NONBLOCK));
	for (; n; n /= 2)
		while (write(fd, many, n) > 0)
			;
	ASSERT_EQ(0, fcntl(fd, F_SETFL, flags));
}

/*
 * Before Linux 6.5 pages of a file are added to the last message of a full
 * socket, if that has room for pages.
 */
static void fill_by_sendfile(int fd, int from)
{
	int flags = fcntl(fd, F_GETFL);
	off_t at = 0;

	ASSERT_EQ(0, fcntl(fd, F_SETFL, flags | O_NONBLOCK));
	while (sendfile(fd, from, &at, 1) > 0)
		at = 0;
	ASSERT_EQ(0, fcntl(fd, F_SETFL, flags));
}

static int listen_here(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&any, sizeof(any)));
	ASSERT_EQ(0, listen(fd, 0));
	return fd;
}

/* A listener with a full backlog answers no more. */
static void make_deaf_listener(void)
{
	struct pollfd pfd = { .events = POLLIN };
	socklen_t len = sizeof(address);
	size_t i;

	deaf = pfd.fd = listen_here();
	ASSERT_EQ(0, getsockname(deaf, (struct sockaddr *)&address, &len));
	for (i = 0; i < ARRAY_SIZE(callers); i++) {
		callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(callers[i], (struct sockaddr *)&address, len);
	}
	ASSERT_TRUE(UNTIL(poll(&pfd, 1, 0) == 1));
}

static void make_descriptors(void)
{
	const char *dir = getenv("TMPDIR");

	ASSERT_EQ(0, pipe2(never, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(full_pipe, O_CLOEXEC));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, quiet));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, full_pair));
	fill(full_pipe[1]);
	fill(full_pair[1]);
	file = memfd_create("file", MFD_CLOEXEC);
	ASSERT_EQ(1, write(file, &byte, 1));
	fill_by_sendfile(full_pair[1], file);
	listener = listen_here();
	make_deaf_listener();
	make_gate();
	snprintf(path, sizeof(path), "%.40s/pl_calls.%d", dir ? dir : "/tmp",
		 getpid());
	unlink(path);
	ASSERT_EQ(0, mkfifo(path, 0600));
}

static void close_descriptors(void)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		close(never[i]);
		close(full_pipe[i]);
		close(quiet[i]);
		close(full_pair[i]);
	}
	for (i = 0; i < ARRAY_SIZE(callers); i++)
		close(callers[i]);
	close(file);
	close(listener);
	close(deaf);
	unlink(path);
	open_gate();
}

/* ---- calls that take more than a line ---- */

/* However it ends, it has the mutex. */
static int wait_cond(uint64_t deadline_ns)
{
	int ret;

	pl_mutex_lock(&free_mutex);
	ret = deadline_ns ? pl_cond_wait_until(&cond, &free_mutex, deadline_ns)
			  : pl_cond_wait(&cond, &free_mutex);
	EXPECT_EQ(-EBUSY, pl_mutex_trylock(&free_mutex));
	pl_mutex_unlock(&free_mutex);
	return ret;
}

static int select_both(uint64_t deadline_ns)
{
	struct pl_chan_case cases[] = { PL_CHAN_CASE_RECV(empty),
					PL_CHAN_CASE_SEND(full, NULL) };

	return pl_chan_select(cases, 2, deadline_ns);
}

static int poll_many(unsigned int nr, uint64_t deadline_ns)
{
	struct pollfd fds[] = { { .fd = never[0], .events = POLLIN },
				{ .fd = full_pipe[1], .events = POLLOUT } };

	return pl_poll_many(fds, nr, deadline_ns);
}

static int connect_to_deaf(uint64_t deadline_ns)
{
	const struct sockaddr *sa = (const void *)&address;
	int ret, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ret = deadline_ns ?
	      pl_connect_until(fd, sa, sizeof(address), deadline_ns) :
	      pl_connect(fd, sa, sizeof(address));
	close(fd);
	return ret;
}

static ssize_t send_file(uint64_t deadline_ns)
{
	off_t at = 0;

	return deadline_ns ?
	       pl_sendfile_until(full_pair[1], file, &at, 1, deadline_ns) :
	       pl_sendfile(full_pair[1], file, &at, 1);
}

static ssize_t pass_message(int fd, bool is_out, uint64_t deadline_ns)
{
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (is_out)
		return deadline_ns ? pl_sendmsg_until(fd, &m, 0, deadline_ns) :
				     pl_sendmsg(fd, &m, 0);
	return deadline_ns ? pl_recvmsg_until(fd, &m, 0, deadline_ns) :
			     pl_recvmsg(fd, &m, 0);
}

static int pass_messages(int fd, bool is_out, uint64_t deadline_ns)
{
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };

	if (is_out)
		return deadline_ns ?
		       pl_sendmmsg_until(fd, &m, 1, 0, deadline_ns) :
		       pl_sendmmsg(fd, &m, 1, 0);
	return deadline_ns ? pl_recvmmsg_until(fd, &m, 1, 0, deadline_ns) :
			     pl_recvmmsg(fd, &m, 1, 0);
}

static int wait_for_sqe(uint64_t deadline_ns)
{
	struct io_uring_sqe sqe;

	pl_io_sqe_init(&sqe);
	io_uring_prep_read(&sqe, never[0], &byte, 1, -1);
	return pl_io_wait(&sqe, deadline_ns);
}

static int wait_for_linked(uint64_t deadline_ns)
{
	struct io_uring_sqe sqe[2];
	int res[2];

	pl_io_sqe_init(&sqe[0]);
	io_uring_prep_nop(&sqe[0]);
	pl_io_sqe_init(&sqe[1]);
	io_uring_prep_read(&sqe[1], never[0], &byte, 1, -1);
	return pl_io_wait_linked(sqe, res, 2, deadline_ns);
}

static int find_address(uint64_t deadline_ns)
{
	struct addrinfo *list;
	int eai;

	return deadline_ns ?
	       pl_getaddrinfo_until("gate", NULL, NULL, &list, &eai,
				    deadline_ns) :
	       pl_getaddrinfo("gate", NULL, NULL, &list, &eai);
}

static int find_name(uint64_t deadline_ns)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(1) };
	const struct sockaddr *sa = (const void *)&sin;
	int eai;

	return deadline_ns ?
	       pl_getnameinfo_until(sa, sizeof(sin), host, sizeof(host), NULL,
				    0, 0, &eai, deadline_ns) :
	       pl_getnameinfo(sa, sizeof(sin), host, sizeof(host), NULL, 0, 0,
			      &eai);
}

static intptr_t return_none(void *arg)
{
	return 0;
}

static int spawn_in_scope(const struct pl_spawn_opts *opts)
{
	struct pl_scope s = PL_SCOPE_INIT;
	int ret;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	ret = pl_scope_spawn(&s, NULL, return_none, NULL, opts);
	EXPECT_EQ(ret == -EINTR ? 0 : -ECANCELED, pl_scope_leave(&s));
	return ret;
}

enum spawner { ONE, MANY, IN_SCOPE };

static atomic_bool has_fillers;

/* While there are as many tasks as there may be. */
static int spawn_one_too_many(enum spawner by)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	uint32_t nr = 0;
	int ret;

	while (!pl_spawn(NULL, sleep_until_posted, &filler_end, NULL))
		nr++;
	opts.flags = PL_SPAWN_WAIT;
	if (by == IN_SCOPE)
		ret = spawn_in_scope(&opts);
	else if (by == MANY)
		ret = pl_spawn_many(NULL, 2, sleep_until_posted, NULL, &opts);
	else
		ret = pl_spawn(NULL, sleep_until_posted, NULL, &opts);
	EXPECT_EQ(0, pl_sem_post(&filler_end, nr));
	has_fillers = true;
	return ret;
}

/* ---- all calls ---- */

static uint64_t until_ns = PL_FOREVER;

#define EVER until_ns

#define CALLS(X) \
	X(word_wait, pl_word_wait(&word, 0, EVER)) \
	X(mutex_lock_until, pl_mutex_lock_until(&locked, EVER)) \
	X(rwlock_rdlock_until, pl_rwlock_rdlock_until(&rwlock, EVER)) \
	X(rwlock_wrlock_until, pl_rwlock_wrlock_until(&rwlock, EVER)) \
	X(cond_wait, wait_cond(0)) \
	X(cond_wait_until, wait_cond(EVER)) \
	X(sem_wait, pl_sem_wait(&none)) \
	X(sem_wait_until, pl_sem_wait_until(&none, EVER)) \
	X(latch_wait, pl_latch_wait(&latch)) \
	X(latch_wait_until, pl_latch_wait_until(&latch, EVER)) \
	X(barrier_wait, pl_barrier_wait(&barrier)) \
	X(chan_recv, pl_chan_recv(empty, &item)) \
	X(chan_recv_until, pl_chan_recv_until(empty, &item, EVER)) \
	X(chan_send, pl_chan_send(full, NULL)) \
	X(chan_send_until, pl_chan_send_until(full, NULL, EVER)) \
	X(chan_recv_rendezvous, pl_chan_recv(rendezvous[0], &item)) \
	X(chan_send_rendezvous, pl_chan_send(rendezvous[1], NULL)) \
	X(chan_select, select_both(EVER)) \
	X(chan_select_none, pl_chan_select(NULL, 0, EVER)) \
	X(join, pl_join(sleeper)) \
	X(join_until, pl_join_until(sleeper, EVER)) \
	X(queue_join, pl_queue_join(queue)) \
	X(sleep, pl_sleep(UINT64_MAX)) \
	X(sleep_until, pl_sleep_until(EVER)) \
	X(spawn, spawn_one_too_many(ONE)) \
	X(spawn_many, spawn_one_too_many(MANY)) \
	X(scope_spawn, spawn_one_too_many(IN_SCOPE)) \
	X(read, pl_read(never[0], &byte, 1)) \
	X(read_until, pl_read_until(never[0], &byte, 1, EVER)) \
	X(read_socket, pl_read(quiet[0], &byte, 1)) \
	X(readv, pl_readv(never[0], &iov, 1)) \
	X(readv_until, pl_readv_until(never[0], &iov, 1, EVER)) \
	X(write, pl_write(full_pipe[1], &byte, 1)) \
	X(write_until, pl_write_until(full_pipe[1], &byte, 1, EVER)) \
	X(write_socket, pl_write(full_pair[1], &byte, 1)) \
	X(writev, pl_writev(full_pipe[1], &iov, 1)) \
	X(writev_until, pl_writev_until(full_pipe[1], &iov, 1, EVER)) \
	X(recv, pl_recv(quiet[0], &byte, 1, 0)) \
	X(recv_until, pl_recv_until(quiet[0], &byte, 1, 0, EVER)) \
	X(recvmsg, pass_message(quiet[0], false, 0)) \
	X(recvmsg_until, pass_message(quiet[0], false, EVER)) \
	X(recvmmsg, pass_messages(quiet[0], false, 0)) \
	X(recvmmsg_until, pass_messages(quiet[0], false, EVER)) \
	X(send, pl_send(full_pair[1], &byte, 1, 0)) \
	X(send_until, pl_send_until(full_pair[1], &byte, 1, 0, EVER)) \
	X(sendmsg, pass_message(full_pair[1], true, 0)) \
	X(sendmsg_until, pass_message(full_pair[1], true, EVER)) \
	X(sendmmsg, pass_messages(full_pair[1], true, 0)) \
	X(sendmmsg_until, pass_messages(full_pair[1], true, EVER)) \
	X(sendfile, send_file(0)) \
	X(sendfile_until, send_file(EVER)) \
	X(accept, pl_accept(listener, NULL, NULL, 0)) \
	X(accept_until, pl_accept_until(listener, NULL, NULL, 0, EVER)) \
	X(connect, connect_to_deaf(0)) \
	X(connect_until, connect_to_deaf(EVER)) \
	X(poll, pl_poll(never[0], POLLIN, EVER)) \
	X(poll_many, poll_many(2, EVER)) \
	X(poll_many_none, poll_many(0, EVER)) \
	X(getaddrinfo, find_address(0)) \
	X(getaddrinfo_until, find_address(EVER)) \
	X(getnameinfo, find_name(0)) \
	X(getnameinfo_until, find_name(EVER)) \
	X(open, pl_open(path, O_RDONLY, 0)) \
	X(open_until, pl_open_until(path, O_RDONLY, 0, EVER)) \
	X(io_wait, wait_for_sqe(EVER)) \
	X(io_wait_linked, wait_for_linked(EVER))

#define DEFINE(name, expression) \
	static long call_##name(void) { return (long)(expression); }
#define ENTRY(name, expression) { #name, #expression, call_##name },

CALLS(DEFINE)

static const struct kind {
	const char	*name, *text;
	long		(*call)(void);
} kinds[] = { CALLS(ENTRY) };

static bool has_uring;

/* Some take io_uring: without it a thread would be blocked. */
static const struct kind *next_kind(const struct kind *k)
{
	for (k = k ? k + 1 : kinds; k < kinds + ARRAY_SIZE(kinds); k++)
		if (has_uring ||
		    (k->call != call_open && k->call != call_open_until &&
		     k->call != call_io_wait && k->call != call_io_wait_linked))
			return k;
	return NULL;
}

#define for_each_kind(k) \
	for ((k) = next_kind(NULL); (k); (k) = next_kind(k))

static inline bool is_spawn(const struct kind *k)
{
	return strstr(k->name, "spawn");
}

static inline bool has_deadline(const struct kind *k)
{
	return strstr(k->text, "EVER");
}

/* After a call that spawned: the next one has the room of all to fill. */
static void until_no_fillers(uint32_t nr_others)
{
	if (has_fillers)
		ASSERT_TRUE(UNTIL(rt_stat().tasks_alive == nr_others));
	has_fillers = false;
}

/* ---- the fixture ---- */

static int nr_descriptors;

static void begin_calls(struct __test_metadata *test, const char *io,
			const char *wait, uint32_t nr_tasks)
{
	set_env("PARKLOT_MAX_TASKS", nr_tasks);
	rt_begin_io(test, io, wait);
	nr_descriptors = nr_entries("/proc/self/fd");
	start_with(2, 0);
	make_descriptors();
	make_objects();
	has_uring = rt_has_uring();
}

static void end_calls(void)
{
	destroy_objects();
	close_descriptors();
	rt_end();
	close(gate[0]);
	EXPECT_EQ(nr_descriptors, nr_entries("/proc/self/fd"));
	EXPECT_EQ(0, nr_inside);
}

#define CALLS_FIXTURE(name, nr_tasks) \
	FIXTURE(name) { char unused; }; \
	RT_IO_VARIANTS(name) \
	FIXTURE_SETUP(name) \
	{ \
		begin_calls(_metadata, variant->io, variant->wait, nr_tasks); \
	} \
	FIXTURE_TEARDOWN(name) { end_calls(); }

#endif /* SELFTESTS_CALLS_H */
