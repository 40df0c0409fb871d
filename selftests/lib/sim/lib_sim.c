/* SPDX-License-Identifier: GPL-2.0-only */
/* The simulation itself: what it finds, and that a seed repeats it. */
#define SIM_ITSELF
#include "kselftest_harness.h"

#include "rt.h"

#include "parklot/sim.h"
#include "sim/state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/syscall.h>

/* Standard error of a run goes to a file, which is read back. */
static char said[1 << 22];

static int run_and_read(int (*run)(void (*fn)(void *arg), void *arg),
			void (*fn)(void *arg), void *arg)
{
	int old = dup(2), fd = syscall(SYS_memfd_create, "said", 0), ret;
	ssize_t n;

	dup2(fd, 2);
	ret = run(fn, arg);
	dup2(old, 2);
	n = pread(fd, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	close(fd);
	close(old);
	return ret;
}

static int run_one(void (*fn)(void *arg), void *arg)
{
	return pl_sim_run(1, fn, arg);
}

static int run_many(void (*fn)(void *arg), void *arg)
{
	return pl_sim_seeds(1, 100, fn, arg);
}

static int run_all(void (*fn)(void *arg), void *arg)
{
	return pl_sim_all(1, fn, arg);
}

static bool is_said(const char *text)
{
	return strstr(said, text);
}

static void start(uint32_t nr)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	cfg.nr_workers = nr;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
}

FIXTURE(sim) { char unused; };
FIXTURE_SETUP(sim) { rt_begin(_metadata); }
FIXTURE_TEARDOWN(sim) { }

/* ---- faults of a program ---- */

static struct pl_word word;
static atomic_int value;

/* Sleeps without a look whether the waker has been there. */
static void wait_blindly(void *arg)
{
	if (!value)
		pl_word_wait(&word, 0, PL_FOREVER);
}

static void lose_a_wakeup(void *arg)
{
	pl_task_t t;

	start(2);
	t = spawn(wait_blindly, NULL);
	value = 1;
	pl_word_wake(&word, 1);
	join(t);
}

TEST_F(sim, lost_wakeup_of_a_program_is_a_deadlock)
{
	EXPECT_EQ(1, run_and_read(run_many, lose_a_wakeup, NULL));
	EXPECT_TRUE(is_said("DEADLOCK"));
	EXPECT_TRUE(is_said("what happened last"));
	EXPECT_TRUE(is_said("1 tasks, and"));
}

static void poll_for_ever(void *arg)
{
	start(2);
	while (!value)
		usleep(1000);
}

TEST_F(sim, poll_for_what_never_comes_is_a_livelock)
{
	EXPECT_EQ(1, run_and_read(run_one, poll_for_ever, NULL));
	EXPECT_TRUE(is_said("LIVELOCK"));
}

static void die(void *arg)
{
	abort();
}

static void leave(void *arg)
{
	exit((int)(intptr_t)arg);
}

TEST_F(sim, death_and_exit_status_are_told)
{
	EXPECT_EQ(1, run_and_read(run_one, die, NULL));
	EXPECT_TRUE(is_said("sim: seed 1: died of signal 6"));
	EXPECT_EQ(1, run_and_read(run_one, leave, (void *)3));
	EXPECT_TRUE(is_said("sim: seed 1: exit status 3"));
	EXPECT_EQ(0, run_and_read(run_one, leave, NULL));
}

static int counted;

static void *count_without_a_lock(void *arg)
{
	int n = counted;

	sched_yield();
	counted = n + 1;
	return arg;
}

static void *count_with_a_lock(void *arg)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&mutex);
	count_without_a_lock(arg);
	pthread_mutex_unlock(&mutex);
	return arg;
}

static void count_in_two_threads(void *arg)
{
	void *(*count)(void *arg) = arg ? count_with_a_lock :
					  count_without_a_lock;
	pthread_t t[2];
	int i;

	for (i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, count, NULL);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	if (counted != 2)
		_exit(1);
}

TEST_F(sim, lost_update_is_in_one_of_all_schedules)
{
	EXPECT_EQ(1, run_and_read(run_all, count_in_two_threads, NULL));
	EXPECT_EQ(0, run_and_read(run_all, count_in_two_threads, (void *)1));
	EXPECT_TRUE(is_said("schedules passed"));
}

/* ---- time ---- */

static void sleep_for_an_hour(void *arg)
{
	uint64_t before = pl_now();

	start(2);
	ASSERT_EQ(0, pl_sleep(3600 * NSEC_PER_SEC));
	ASSERT_LE(before + 3600 * NSEC_PER_SEC, pl_now());
	ASSERT_GT(before + 3601 * NSEC_PER_SEC, pl_now());
}

TEST_F(sim, hour_of_sleep_takes_no_time)
{
	uint64_t before = pl_now();

	EXPECT_EQ(0, run_and_read(run_one, sleep_for_an_hour, NULL));
	EXPECT_GT(before + 100 * NSEC_PER_SEC, pl_now());
}

static uint64_t ran_ns;

static void note_time(void *arg)
{
	ran_ns = pl_now();
}

static void block_for_a_second(void *arg)
{
	uint64_t begin = pl_now();

	spawn(note_time, NULL);
	pl_sim_block(NSEC_PER_SEC);
	ASSERT_LE(begin + NSEC_PER_SEC, pl_now());
	*(uint64_t *)arg = begin;
}

static void compute_for_a_second(void *arg)
{
	uint64_t begin = pl_now();

	spawn(note_time, NULL);
	pl_sim_compute(NSEC_PER_SEC);
	ASSERT_LE(begin + NSEC_PER_SEC, pl_now());
	*(uint64_t *)arg = begin;
}

/* The task behind it does not wait for its end: sysmon sees to that. */
static void hold_the_only_worker(void *fn)
{
	uint64_t begin = 0;

	start(1);
	run_in_task((void (*)(void *))fn, &begin);
	ASSERT_LT(begin, ran_ns);
	ASSERT_GT(begin + NSEC_PER_SEC / 2, ran_ns);
}

TEST_F(sim, blocked_task_is_seen_to_be_asleep)
{
	EXPECT_EQ(0, run_and_read(run_many, hold_the_only_worker,
				  (void *)block_for_a_second)) {
		TH_LOG("%s", said);
	}
}

TEST_F(sim, computing_task_is_seen_to_run)
{
	EXPECT_EQ(0, run_and_read(run_many, hold_the_only_worker,
				  (void *)compute_for_a_second)) {
		TH_LOG("%s", said);
	}
}

/* ---- one seed, one schedule ---- */

static struct pl_mutex mutex;
static int sockets[2];

static void use_everything(void *arg)
{
	char c = 'x';

	pl_mutex_lock(&mutex);
	pl_yield();
	pl_mutex_unlock(&mutex);
	pl_sleep((uintptr_t)arg * 3000);
	if ((uintptr_t)arg % 2)
		EXPECT_EQ(1, pl_write(sockets[1], &c, 1));
	else
		EXPECT_EQ(1, pl_read(sockets[0], &c, 1));
}

static void run_everything(void *arg)
{
	pl_task_t t[20];
	uintptr_t i;

	socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
	start(3);
	for (i = 0; i < 20; i++)
		t[i] = spawn(use_everything, (void *)i);
	for (i = 0; i < 20; i++)
		join(t[i]);
}

/* ---- reads that bring less than there is ---- */

#define MESSAGE		"eight by"

static const char *how_to_read;

static ssize_t read_some(int fd, char *to, size_t size)
{
	if (!strcmp(how_to_read, "recv"))
		return recv(fd, to, size, 0);
	if (!strcmp(how_to_read, "read"))
		return read(fd, to, size);
	if (!strcmp(how_to_read, "pl_recv"))
		return pl_recv(fd, to, size, 0);
	return pl_read(fd, to, size);
}

/* Careless: what is read at once is taken for all. */
static void read_message(void *is_careless)
{
	char text[sizeof(MESSAGE)] = "";
	size_t done = 0;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) ||
	    send(fds[1], MESSAGE, sizeof(text), 0) != (ssize_t)sizeof(text))
		_exit(2);
	do {
		done += (size_t)read_some(fds[0], text + done,
					  sizeof(text) - done);
	} while (done < sizeof(text) && !is_careless);
	if (strcmp(text, MESSAGE))
		_exit(1);
}

static void read_in_task(void *is_careless)
{
	start(1);
	run_in_task(read_message, is_careless);
}

TEST_F(sim, reads_of_a_stream_are_short_with_some_seeds)
{
	static const char *const ways[] = { "recv", "read", "pl_recv",
					    "pl_read" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		how_to_read = ways[i];
		EXPECT_EQ(1, run_and_read(run_many, read_in_task, (void *)1)) {
			TH_LOG("%s", how_to_read);
		}
		EXPECT_EQ(0, run_and_read(run_many, read_in_task, NULL));
	}
}

/* ---- waits that a signal without a handler ends ---- */

static void wait_for_event(void *is_careless)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epfd = epoll_create1(EPOLL_CLOEXEC), fds[2], nr;

	if (epfd < 0 || pipe(fds) ||
	    epoll_ctl(epfd, EPOLL_CTL_ADD, fds[0], &event))
		_exit(2);
	do {
		nr = epoll_wait(epfd, &event, 1, 1000);
	} while (nr < 0 && errno == EINTR && !is_careless);
	if (nr)
		_exit(1);
}

TEST_F(sim, wait_for_events_is_interrupted_with_some_seeds)
{
	EXPECT_EQ(1, run_and_read(run_many, wait_for_event, (void *)1));
	EXPECT_EQ(0, run_and_read(run_many, wait_for_event, NULL));
}

static void read_datagram(void *arg)
{
	char text[sizeof(MESSAGE)];
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) ||
	    send(fds[1], MESSAGE, sizeof(text), 0) != (ssize_t)sizeof(text) ||
	    recv(fds[0], text, sizeof(text), 0) != (ssize_t)sizeof(text))
		_exit(1);
}

TEST_F(sim, datagram_is_never_cut)
{
	EXPECT_EQ(0, run_and_read(run_many, read_datagram, NULL));
}

static int run_traced(void (*fn)(void *arg), void *arg)
{
	int seed, ret = 0;

	for (seed = 0; seed < 20 && !ret; seed++)
		ret = pl_sim_run((uint64_t)seed, fn, arg);
	return ret;
}

TEST_F(sim, seed_repeats_its_schedule)
{
	static char before[sizeof(said)];

	setenv("SIM_TRACE", "2", 1);
	EXPECT_EQ(0, run_and_read(run_traced, run_everything, NULL));
	strcpy(before, said);
	EXPECT_TRUE(is_said("sim: seed 19 hash "));
	EXPECT_EQ(0, run_and_read(run_traced, run_everything, NULL));
	EXPECT_STREQ(before, said);
}

static int run_seeds(void (*fn)(void *arg), void *arg)
{
	return pl_sim_seeds(1, 50, fn, arg);
}

TEST_F(sim, seeds_differ_in_their_schedules)
{
	EXPECT_EQ(0, run_and_read(run_seeds, run_everything, NULL));
	EXPECT_TRUE(is_said("50 seeds passed, 50 schedules differed")) {
		TH_LOG("%s", said);
	}
}

/* ---- what a program must not do ---- */

static void block_for_real(void *arg)
{
	flock(open("/proc/self/exe", O_RDONLY), LOCK_EX);
	flock(open("/proc/self/exe", O_RDONLY), LOCK_EX);
}

TEST_F(sim, call_that_blocks_for_real_is_named)
{
	pl__sim_tick_ms = 500;
	EXPECT_EQ(1, run_and_read(run_one, block_for_real, NULL));
	EXPECT_TRUE(is_said("in system call 73; see")) {
		TH_LOG("%s", said);
	}
}

static void look_at_the_clock(int sig)
{
	(void)sig;
	pl_now();
}

static void be_interrupted(void *arg)
{
	signal(SIGUSR1, look_at_the_clock);
	raise(SIGUSR1);
}

TEST_F(sim, point_in_a_signal_handler_is_told)
{
	EXPECT_EQ(1, run_and_read(run_one, be_interrupted, NULL));
	EXPECT_TRUE(is_said("by a signal's handler"));
}

static void nest(void *arg)
{
	if (pl_sim_run(1, die, NULL) != -EBUSY)
		_exit(1);
}

TEST_F(sim, bad_arguments_are_refused)
{
	EXPECT_EQ(-EINVAL, pl_sim_run(1, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_sim_seeds(1, 0, die, NULL));
	EXPECT_EQ(-EINVAL, pl_sim_all(1, NULL, NULL));
	EXPECT_EQ(0, run_and_read(run_one, nest, NULL));
	start(1);
	EXPECT_EQ(-EBUSY, pl_sim_run(1, die, NULL));
	EXPECT_EQ(0, pl_runtime_stop());
}

static const char *setting = "PARKLOT_SIM";

static int run_with_bad_setting(void (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status = 0;

	(void)fn;
	if (!pid) {
		setenv("PARKLOT_SIM", "1", 1);
		setenv(setting, arg, 1);
		execl("/proc/self/exe", "lib_sim", "-l", NULL);
		_exit(3);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

TEST_F(sim, seed_that_is_no_number_is_refused)
{
	EXPECT_EQ(2, run_and_read(run_with_bad_setting, NULL, (void *)"12x"));
	EXPECT_TRUE(is_said("PARKLOT_SIM=12x: not a seed"));
	EXPECT_EQ(2, run_and_read(run_with_bad_setting, NULL, (void *)""));
	EXPECT_EQ(2, run_and_read(run_with_bad_setting, NULL, (void *)"-1"));
}

TEST_F(sim, number_of_processors_that_is_none_is_refused)
{
	setting = "SIM_CPUS";
	EXPECT_EQ(2, run_and_read(run_with_bad_setting, NULL, (void *)"x"));
	EXPECT_TRUE(is_said("SIM_CPUS=x: not a number from 1 to 64"));
	EXPECT_EQ(2, run_and_read(run_with_bad_setting, NULL, (void *)"0"));
	EXPECT_EQ(2, run_and_read(run_with_bad_setting, NULL, (void *)"65"));
	setting = "SIM_QUOTA";
	EXPECT_EQ(2, run_and_read(run_with_bad_setting, NULL, (void *)"50%"));
	EXPECT_TRUE(is_said("SIM_QUOTA=50%: not a number from 1 to 6400"));
}

TEST_HARNESS_MAIN
