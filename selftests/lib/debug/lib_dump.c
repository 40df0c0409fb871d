/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump: it names every task, and what each does or waits for, while all goes
 * on.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "dump.h"

#include <link.h>
#include <sys/socket.h>

RT_FIXTURE(dump);

/* ---- what they wait for ---- */

static struct pl_mutex first, second, own;
static struct pl_latch both, latch;
static struct pl_barrier barrier;
static struct pl_cond cond;
static struct pl_sem sem;
static struct pl_rwlock rwlock;
static struct pl_word word;
static struct pl_once once;
static struct pl_chan *chan;
static pl_task_t left_task, right_task;

/* Lets all go that a cancel does not. */
static atomic_bool may_go;

static void lock_both(struct pl_mutex *one, struct pl_mutex *other)
{
	pl_mutex_lock(one);
	pl_latch_done(&both);
	while (pl_latch_wait(&both))
		pl_yield();
	/* It gives up, so that the test can end. */
	while (pl_mutex_lock_until(other, in_ms(3600 * 1000)) && !may_go)
		;
	pl_mutex_unlock(one);
}

static void left(void *arg)
{
	lock_both(&first, &second);
}

static void right(void *arg)
{
	lock_both(&second, &first);
}

static void join_left(void *arg)
{
	pl_join(left_task);
}

static void join_right_until(void *arg)
{
	pl_join_until(right_task, in_ms(3600 * 1000));
}

static void wait_word(void *arg)
{
	while (!pl_word_wait(&word, 0, PL_FOREVER))
		;
}

static void wait_cond(void *arg)
{
	pl_mutex_lock(&own);
	pl_cond_wait(&cond, &own);
	pl_mutex_unlock(&own);
}

static void wait_sem(void *arg)
{
	pl_sem_wait(&sem);
}

static void wait_latch(void *arg)
{
	pl_latch_wait(&latch);
}

static void wait_barrier(void *arg)
{
	pl_barrier_wait(&barrier);
}

static void wait_rwlock(void *arg)
{
	if (!pl_rwlock_rdlock_until(&rwlock, PL_FOREVER))
		pl_rwlock_rdunlock(&rwlock);
}

static void wait_chan(void *arg)
{
	void *item;

	pl_chan_recv(chan, &item);
}

static void once_body(void *arg)
{
	sleep_long(NULL);
}

static void wait_once(void *arg)
{
	pl_once(&once, once_body, NULL);
}

TEST_F(dump, dump_names_each_task_of_a_deadlock_and_its_wait)
{
	pl_task_t t[4];
	char words[64];
	int i;

	NEEDS_DUMP();
	ASSERT_EQ(0, pl_latch_init(&both, 2));
	t[0] = left_task = spawn_named("left", left, NULL);
	t[1] = right_task = spawn_named("right", right, NULL);
	t[2] = spawn_named("joiner", join_left, NULL);
	t[3] = spawn_named("patient", join_right_until, NULL);
	ASSERT_TRUE(UNTIL(nr_waiters(&first.word) && nr_waiters(&second.word)));
	for (i = 2; i < 4; i++)
		ASSERT_TRUE(UNTIL(is_waiting(t[i])));
	/* A task may be seen waiting before its timer is. */
	ASSERT_TRUE(UNTIL(dumped() && line_of("left", " more") &&
			  line_of("right", " more") &&
			  line_of("patient", " more")));

	snprintf(words, sizeof(words), "waits for mutex %p, for 3", &second);
	EXPECT_SAYS("left", words);
	snprintf(words, sizeof(words), "waits for mutex %p, for 3", &first);
	EXPECT_SAYS("right", words);
	snprintf(words, sizeof(words), "waits for join of %#llx 'left'",
		 (unsigned long long)left_task);
	EXPECT_SAYS("joiner", words);
	EXPECT_SAYS("patient", "'right', for 3");
	EXPECT_NE(NULL, strstr(text, "parklot: 4 tasks, and 0 threads"));

	/* It gives up what the other one waits for. */
	may_go = true;
	EXPECT_EQ(0, pl_cancel(left_task));
	for (i = 0; i < 4; i++)
		join(t[i]);
}

static const struct wait {
	const char	*name;
	void		(*fn)(void *arg);
	const char	*words;
	void		*word;		/* that is said after them, or NULL */
} waits[] = {
	{ "sleeper", sleep_long, "waits for sleep, for 3", NULL },
	{ "word", wait_word, "waits for word ", &word },
	{ "cond", wait_cond, "waits for cond ", &cond },
	{ "sem", wait_sem, "waits for sem ", &sem },
	{ "latch", wait_latch, "waits for latch ", &latch },
	{ "barrier", wait_barrier, "waits for barrier ", &barrier },
	{ "rwlock", wait_rwlock, "waits for rwlock", NULL },
	{ "chan", wait_chan, "waits for chan", NULL },
};

TEST_F(dump, dump_names_the_object_of_each_wait)
{
	pl_task_t t[ARRAY_SIZE(waits)];
	char words[64];
	size_t i;

	NEEDS_DUMP();
	ASSERT_EQ(0, pl_latch_init(&latch, 1));
	ASSERT_EQ(0, pl_barrier_init(&barrier, 2));
	ASSERT_EQ(0, pl_chan_create(&chan, 1));
	pl_rwlock_wrlock(&rwlock);
	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		t[i] = spawn_named(waits[i].name, waits[i].fn, NULL);
		ASSERT_TRUE(UNTIL(is_waiting(t[i])));
	}
	ASSERT_TRUE(UNTIL(dumped() && line_of("sleeper", " more")));
	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		snprintf(words, sizeof(words), "%s", waits[i].words);
		if (waits[i].word)
			snprintf(words, sizeof(words), "%s%p", waits[i].words,
				 waits[i].word);
		EXPECT_SAYS(waits[i].name, words);
	}
	cancel_and_join(t, ARRAY_SIZE(waits));
	pl_rwlock_wrunlock(&rwlock);
	pl_chan_close(chan);
	pl_chan_destroy(chan);
}

TEST_F(dump, dump_names_the_waiters_of_a_once)
{
	pl_task_t t[2];

	NEEDS_DUMP();
	t[0] = spawn_named("first", wait_once, NULL);
	ASSERT_TRUE(UNTIL(is_waiting(t[0])));
	t[1] = spawn_named("second", wait_once, NULL);
	ASSERT_TRUE(UNTIL(is_waiting(t[1])));
	ASSERT_NE(NULL, dumped());
	EXPECT_SAYS("first", "waits for sleep");
	EXPECT_SAYS("second", "waits for once");
	EXPECT_EQ(0, pl_cancel(t[0]));
	join(t[0]);
	join(t[1]);
}

static void recv_until(void *arg)
{
	char byte;

	EXPECT_EQ(1, pl_recv_until(*(int *)arg, &byte, 1, 0,
				   in_ms(3600 * 1000)));
}

TEST_F(dump, dump_names_operation_and_descriptor_of_io)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	char words[64];
	pl_task_t t[2];
	int fds[2], i;

	NEEDS_DUMP();
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	t[0] = spawn_named("receiver", recv_until, &fds[0]);
	opts.name = "own stack";
	opts.stack = PL_STACK_WORKER;
	ASSERT_EQ(0, pl_spawn(&t[1], recv_until, &fds[0], &opts));
	for (i = 0; i < 2; i++)
		ASSERT_TRUE(UNTIL(is_waiting(t[i])));
	/* A task may be seen waiting before its timer is. */
	ASSERT_TRUE(UNTIL(dumped() && line_of("receiver", " more")));
	snprintf(words, sizeof(words), " waits for io: recv fd %d, for 3",
		 fds[0]);
	EXPECT_SAYS("receiver", words);
	snprintf(words, sizeof(words), ", waits for io: recv fd %d", fds[0]);
	EXPECT_SAYS("own stack", words);
	ASSERT_EQ(2, write(fds[1], "  ", 2));
	for (i = 0; i < 2; i++)
		join(t[i]);
	close(fds[0]);
	close(fds[1]);
}

/* ---- tasks that do not wait ---- */

static atomic_int nr_busy;

static void busy(void *arg)
{
	nr_busy++;
	EXPECT_TRUE(UNTIL_BUSY(may_go));
}

static void dump_here(void *arg)
{
	ASSERT_NE(NULL, dumped());
	EXPECT_SAYS("self", "runs on worker 0");
}

TEST_F(dump, dump_tells_running_tasks_from_unstarted_ones)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t[3];
	void *pc[4];
	int i;

	start_with(2, 2);
	NEEDS_DUMP();
	t[0] = spawn_named("busy", busy, NULL);
	opts.name = "own stack";
	opts.stack = PL_STACK_WORKER;
	ASSERT_EQ(0, pl_spawn(&t[1], busy, NULL, &opts));
	ASSERT_TRUE(UNTIL(nr_busy == 2));
	t[2] = spawn_named("a long name, 16+", nothing, NULL);
	ASSERT_NE(NULL, dumped());
	EXPECT_SAYS("busy", "runs on worker ");
	EXPECT_SAYS("own stack", "runs on worker ");
	EXPECT_SAYS("a long name, 16", "has not started");
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, pl_backtrace(t[i], pc, ARRAY_SIZE(pc)));
	may_go = true;
	join(t[0]);
	join(t[1]);
	join(t[2]);
	ASSERT_NE(NULL, dumped());
	EXPECT_NE(NULL, strstr(text, "parklot: 0 tasks, and 0 threads"));
}

TEST_F(dump, unprintable_characters_of_a_name_are_replaced)
{
	pl_task_t t[2];

	start_with(1, 1);
	NEEDS_DUMP();
	t[0] = spawn_named("\x1b[31m\nx\x7f%n", sleep_long, NULL);
	t[1] = spawn_named("\xc3\x96l \xc2\x9bm", sleep_long, NULL);
	ASSERT_TRUE(UNTIL(is_waiting(t[0]) && is_waiting(t[1])));
	ASSERT_NE(NULL, dumped());
	EXPECT_NE(NULL, strstr(text, " '?[31m?x?%n' waits"));
	EXPECT_NE(NULL, strstr(text, " '\xc3\x96l \xc2?m' waits"));
	cancel_and_join(t, 2);
}

TEST_F(dump, task_dumps_itself_and_others)
{
	pl_task_t t;

	start_with(1, 1);
	NEEDS_DUMP();
	t = spawn_named("other", sleep_long, NULL);
	ASSERT_TRUE(UNTIL(is_waiting(t)));
	join(spawn_named("self", dump_here, NULL));
	EXPECT_SAYS("other", "waits for sleep");
	cancel_and_join(&t, 1);
}

/* ---- one task ---- */

static void dump_itself(void *arg)
{
	EXPECT_EQ(0, pl_dump_task(*(int *)arg, pl_self()));
}

static const char *dumped_to(int fd)
{
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	ASSERT_LE(0, n);
	text[n] = '\0';
	return text;
}

TEST_F(dump, task_is_dumped_alone)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	pl_task_t t[2];
	size_t len;

	start_with(2, 2);
	NEEDS_DUMP();
	t[0] = spawn_named("one", sleep_long, NULL);
	t[1] = spawn_named("other", sleep_long, NULL);
	ASSERT_TRUE(UNTIL(is_waiting(t[0]) && is_waiting(t[1])));
	EXPECT_EQ(0, pl_dump_task(fd, t[0]));
	dumped_to(fd);
	EXPECT_SAYS("one", "waits for sleep");
	EXPECT_EQ(NULL, strstr(text, "other"));
	EXPECT_NE(NULL, strstr(text, "\n    "));
	EXPECT_EQ(-EBADF, pl_dump_task(-1, t[0]));
	cancel_and_join(t, 2);

	/* Nothing is written of those that are not there. */
	len = strlen(text);
	EXPECT_EQ(-ESRCH, pl_dump_task(fd, t[0]));
	EXPECT_EQ(-EINVAL, pl_dump_task(fd, 0));
	EXPECT_EQ(-ESRCH, pl_dump_task(fd, UINT64_MAX));
	EXPECT_EQ(len, strlen(dumped_to(fd)));

	join(spawn_named("self", dump_itself, &fd));
	dumped_to(fd);
	EXPECT_SAYS("self", "runs on worker ");
	close(fd);
}

static void *thread_waits(void *arg)
{
	while (!pl_word_wait(&word, 0, PL_FOREVER))
		;
	return NULL;
}

TEST_F(dump, dump_lists_waiting_threads)
{
	char words[64];
	pthread_t thread;

	NEEDS_DUMP();
	ASSERT_EQ(0, pthread_create(&thread, NULL, thread_waits, NULL));
	ASSERT_TRUE(UNTIL(nr_waiters(&word) == 1));
	ASSERT_NE(NULL, dumped());
	snprintf(words, sizeof(words), "a thread waits for word %p\n", &word);
	EXPECT_NE(NULL, strstr(text, words));
	EXPECT_NE(NULL, strstr(text, "and 1 threads"));
	word.value = 1;
	pl_word_wake(&word, 1);
	pthread_join(thread, NULL);
	word.value = 0;
}

static void lock_first(void *arg)
{
	pl_mutex_lock(&first);
	pl_mutex_unlock(&first);
}

TEST_F(dump, dump_marks_cancelled_tasks)
{
	pl_task_t t;

	NEEDS_DUMP();
	pl_mutex_lock(&first);
	/* To lock is no point of cancellation. */
	t = spawn_named("locker", lock_first, NULL);
	ASSERT_TRUE(UNTIL(is_waiting(t)));
	EXPECT_EQ(0, pl_cancel(t));
	ASSERT_NE(NULL, dumped());
	EXPECT_SAYS("locker", ", cancelled");
	pl_mutex_unlock(&first);
	join(t);
}

/* ---- backtraces ---- */

static __attribute__((noinline)) int caller(int depth)
{
	int ret = depth ? caller(depth - 1) : pl_sleep(3600 * NSEC_PER_SEC);

	/* No tail call. */
	__asm__ volatile("" : "+r"(ret) : : "memory");
	return ret;
}

static void call_deep(void *arg)
{
	caller(3);
}

static int base_of_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uintptr_t *)arg = info->dlpi_addr;
	return 1;
}

/* How many lines after @name's are in caller(), a short function. */
static int nr_in_caller(const char *name)
{
	const char *at = strstr(text, name), *plus;
	uintptr_t base = 0, offset;
	int nr = 0;

	dl_iterate_phdr(base_of_program, &base);
	while (at && (at = strchr(at, '\n')) && at[1] == ' ') {
		at++;
		plus = strstr(at, "+0x");
		if (!plus || plus > strchr(at, '\n'))
			continue;
		offset = base + strtoull(plus + 1, NULL, 16) -
			 (uintptr_t)caller;
		nr += offset < 512;
	}
	return nr;
}

TEST_F(dump, dump_shows_the_calls_of_a_task)
{
	pl_task_t t;

	NEEDS_DUMP();
	t = spawn_named("deep", call_deep, NULL);
	ASSERT_TRUE(UNTIL(is_waiting(t)));
	ASSERT_NE(NULL, dumped());
	EXPECT_LE(4, nr_in_caller("'deep'"));
	if (nr_in_caller("'deep'") < 4)
		TH_LOG("%s", text);
	cancel_and_join(&t, 1);
}

/* How many of the @nr return addresses are in caller(). */
static int nr_of_caller(void **pc, int nr)
{
	int i, nr_in = 0;

	for (i = 0; i < nr; i++)
		nr_in += (uintptr_t)pc[i] - (uintptr_t)caller < 512;
	return nr_in;
}

TEST_F(dump, backtrace_has_the_calls_of_a_task)
{
	void *pc[32] = { NULL }, *first;
	pl_task_t t, ended;
	int nr;

	start_with(1, 1);
	NEEDS_DUMP();
	t = spawn_named("deep", call_deep, NULL);
	ASSERT_TRUE(UNTIL(is_waiting(t)));
	nr = pl_backtrace(t, pc, ARRAY_SIZE(pc));
	EXPECT_LE(5, nr);
	EXPECT_LE(4, nr_of_caller(pc, nr));
	first = pc[0];
	pc[0] = pc[1] = NULL;
	EXPECT_EQ(1, pl_backtrace(t, pc, 1));
	EXPECT_EQ(first, pc[0]);
	EXPECT_EQ(NULL, pc[1]);
	EXPECT_EQ(0, pl_backtrace(t, NULL, 0));
	EXPECT_EQ(-EINVAL, pl_backtrace(t, pc, -1));
	EXPECT_EQ(-EINVAL, pl_backtrace(0, pc, 1));
	ended = t;
	cancel_and_join(&t, 1);
	EXPECT_EQ(-ESRCH, pl_backtrace(ended, pc, 1));
	EXPECT_EQ(-ESRCH, pl_backtrace(UINT64_MAX, pc, 1));
}

/* ---- while all goes on ---- */

static atomic_bool is_over;
static _Atomic pl_task_t of_late;

static void come_and_go(void *arg)
{
	pl_task_t t = 0;
	int i;

	while (!is_over) {
		for (i = 0; i < 20; i++)
			if (!pl_spawn(&t, nothing, NULL, NULL) && i % 4 == 0)
				pl_join(t);
		of_late = t;
		pl_sleep(1000);
		pl_yield();
	}
}

/* Unmaps stacks while the dump looks at them. */
static void trim(void *arg)
{
	while (!is_over) {
		pl__stacks_trim(&pl__rt.stacks);
		pl_yield();
	}
}

TEST_F(dump, dump_is_safe_while_tasks_come_and_go)
{
	int i, ret, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	void *pc[24];

	start_with(3, 0);
	NEEDS_DUMP();
	for (i = 0; i < 8; i++)
		spawn_named("comes", come_and_go, NULL);
	spawn_named("trims", trim, NULL);
	for (i = 0; i < scaled(200); i++) {
		ret = pl_dump_task(null, of_late);
		EXPECT_TRUE(!ret || ret == -ESRCH || ret == -EINVAL);
		ret = pl_backtrace(of_late, pc, ARRAY_SIZE(pc));
		EXPECT_TRUE(ret >= 0 || ret == -ESRCH || ret == -EINVAL);
		ASSERT_NE(NULL, dumped());
	}
	EXPECT_NE(NULL, strstr(text, "'comes'"));
	is_over = true;
	close(null);
}

TEST_F(dump, dump_without_a_runtime_says_so)
{
	EXPECT_NE(NULL, dumped());
	EXPECT_NE(NULL, strstr(text, "does not run"));
	EXPECT_EQ(-ESRCH, pl_dump_task(2, 1));
	EXPECT_EQ(-ESRCH, pl_backtrace(1, NULL, 0));
}

TEST_F(dump, failed_write_is_returned)
{
	int fds[2];

	EXPECT_EQ(-EBADF, pl_dump(-1));
	signal(SIGPIPE, SIG_IGN);
	ASSERT_EQ(0, pipe(fds));
	close(fds[0]);
	EXPECT_EQ(-EPIPE, pl_dump(fds[1]));
	close(fds[1]);
}

TEST_HARNESS_MAIN
