/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What callers hand over: structs of options of older and newer headers, sizes
 * of stacks, NULL; and the library's version.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"
#include "base/base.h"

#include <sys/socket.h>
#include <sys/uio.h>

RT_FIXTURE(opts)

static char name_seen[64];

static void see_name(void *arg)
{
	snprintf(name_seen, sizeof(name_seen), "%s",
		 pl__task_name(pl__current()));
}

/* ---- sizes ---- */

static void spawn_of_size(size_t size, int want)
{
	union {
		struct pl_spawn_opts	opts;
		char			bytes[8192];
	} u = { .opts = { .size = size } };
	pl_task_t t = 0;

	/* What an older program has behind its struct is no option. */
	memset(u.bytes + size, 0xff, size < sizeof(u.opts) ?
	       sizeof(u.opts) - size : 0);
	EXPECT_EQ(want, pl_spawn(&t, nothing, NULL, &u.opts));
	if (t)
		join(t);
}

static void spawn_of_each_size(void *arg)
{
	size_t size;

	for (size = 0; size < sizeof(struct pl_spawn_opts) + 32; size++)
		spawn_of_size(size, size > sizeof(size) &&
			      size % sizeof(size) == 0 ? 0 : -EINVAL);
	spawn_of_size(4096, 0);
	spawn_of_size(4096 + sizeof(size), -EINVAL);
}

TEST_F(opts, spawn_options_of_each_size_are_accepted)
{
	spawn_of_each_size(NULL);
	run_in_task(spawn_of_each_size, NULL);
}

TEST_F(opts, options_of_the_first_size_count)
{
	struct pl_spawn_opts o = {
		.size = offsetof(struct pl_spawn_opts, stack_size),
		.name = "first", .stack_size = SIZE_MAX,
	};
	pl_task_t t;

	EXPECT_EQ(0, pl_spawn(&t, see_name, NULL, &o));
	join(t);
	EXPECT_STREQ("first", name_seen);
}

TEST_F(opts, option_of_a_newer_header_is_refused)
{
	struct {
		struct pl_spawn_opts	opts;
		uint64_t		later;
	} big = { .opts.size = sizeof(big) };
	pl_task_t t;

	EXPECT_EQ(0, pl_spawn(&t, nothing, NULL, &big.opts));
	join(t);
	big.later = 1;
	EXPECT_EQ(-EINVAL, pl_spawn(&t, nothing, NULL, &big.opts));
}

static void start_of_size(size_t size)
{
	union {
		struct pl_config	cfg;
		char			bytes[256];
	} u = { .cfg = { .size = size } };

	memset(u.bytes + size, 0xff, sizeof(u.bytes) - size);
	EXPECT_EQ(0, pl_runtime_start(&u.cfg));
	run_in_task(nothing, NULL);
	EXPECT_EQ(0, pl_runtime_stop());
}

TEST_F(opts, configurations_of_each_smaller_size_are_accepted)
{
	size_t size;

	for (size = 2 * sizeof(size); size <= sizeof(struct pl_config);
	     size += sizeof(size))
		start_of_size(size);
}

/* ---- sizes of what is filled in ---- */

#define MARK	0x5a
#define MORE	64

/* A struct that the library fills in. */
struct filled {
	const char	*name;
	size_t		first;	/* the least size that is accepted */
	size_t		known;
	int		(*fill)(void *at);
	bool		is_zeroed;	/* behind what is known */
};

static int fill_stat(void *at)
{
	return pl_stat_read(at);
}

static int fill_stat_worker(void *at)
{
	return pl_stat_worker(0, at);
}

static int fill_queue_delay(void *at)
{
	int ret = pl_queue_delay(at);

	return ret == -ENODATA ? 0 : ret;
}

/* A task is left each time. */
static int fill_stop_report(void *at)
{
	int ret = pl_runtime_stop_until(0, at);

	return ret == -ETIMEDOUT ? 0 : ret;
}

static const struct filled filled[] = {
	{ "pl_stat", sizeof(size_t), sizeof(struct pl_stat), fill_stat,
	  true },
	{ "pl_stat_worker", sizeof(size_t), sizeof(struct pl_stat_worker),
	  fill_stat_worker, true },
	{ "pl_queue_delay", offsetof(struct pl_queue_delay, seen[24]),
	  sizeof(struct pl_queue_delay), fill_queue_delay, false },
	{ "pl_stop_report", offsetof(struct pl_stop_report, left[8]),
	  sizeof(struct pl_stop_report), fill_stop_report, false },
};

static void fill_size(const struct filled *f, size_t size)
{
	union {
		size_t		size;
		unsigned char	bytes[1024];
	} u;
	size_t nr_written = 0, i, end = size < f->first ? 0 : size;

	memset(u.bytes, MARK, sizeof(u.bytes));
	memset(u.bytes, 0, end < f->known ? end : f->known);
	u.size = size;
	EXPECT_EQ(size < f->first ? -EINVAL : 0, f->fill(&u)) {
		TH_LOG("struct %s of %zu bytes", f->name, size);
	}
	EXPECT_EQ(size, u.size);
	for (i = end < sizeof(size) ? sizeof(size) : end; i < sizeof(u); i++)
		nr_written += u.bytes[i] != MARK;
	EXPECT_EQ(0, nr_written);
	for (i = f->known; f->is_zeroed && i < end; i++)
		EXPECT_EQ(0, u.bytes[i]);
}

static void refuse_size(const struct filled *f, size_t size)
{
	union {
		size_t		size;
		unsigned char	bytes[1024];
	} u = { .size = size };

	EXPECT_EQ(-EINVAL, f->fill(&u));
}

static void fill_each_size(const struct filled *f)
{
	size_t size;

	for (size = 0; size <= f->known + MORE; size += sizeof(size))
		fill_size(f, size);
	refuse_size(f, f->first - 1);
	if (f->is_zeroed)
		refuse_size(f, SIZE_MAX);
}

static void sleep_shielded(void *arg)
{
	struct pl_scope s = PL_SCOPE_INIT;

	EXPECT_EQ(0, pl_scope_enter(&s, PL_FOREVER, PL_SCOPE_SHIELD));
	EXPECT_EQ(0, pl_word_wait(arg, 0, PL_FOREVER));
	EXPECT_EQ(0, pl_scope_leave(&s));
}

TEST_F(opts, structs_of_each_size_are_filled_in_and_no_further)
{
	static struct pl_word gate;
	size_t i;

	spawn(sleep_shielded, &gate);
	EXPECT_TRUE(UNTIL(nr_waiters(&gate) == 1));
	for (i = 0; i < ARRAY_SIZE(filled); i++)
		fill_each_size(&filled[i]);
	gate.value = 1;
	EXPECT_EQ(1, pl_word_wake(&gate, 1));
	EXPECT_EQ(0, pl_runtime_stop());
}

/* ---- stacks ---- */

static size_t size_seen;

static void see_stack(void *arg)
{
	size_seen = pl__current()->stack->size;
}

static size_t stack_for(size_t wanted)
{
	struct pl_spawn_opts o = PL_SPAWN_OPTS_INIT;
	pl_task_t t;

	o.stack_size = wanted;
	EXPECT_EQ(0, pl_spawn(&t, see_stack, NULL, &o));
	join(t);
	return size_seen;
}

static void want_stacks(void *arg)
{
	EXPECT_EQ(32 << 10, stack_for(1));
	EXPECT_EQ(32 << 10, stack_for(32 << 10));
	EXPECT_EQ(256 << 10, stack_for((32 << 10) + 1));
	EXPECT_EQ(8 << 20, stack_for(1 << 20));
}

TEST_F(opts, smallest_stack_that_fits_is_taken)
{
	struct pl_spawn_opts o = PL_SPAWN_OPTS_INIT;
	pl_task_t t;

	want_stacks(NULL);
	run_in_task(want_stacks, NULL);
	o.stack_size = (8 << 20) + 1;
	EXPECT_EQ(-EINVAL, pl_spawn(&t, nothing, NULL, &o));
	EXPECT_EQ(-EINVAL, pl_spawn_many(&t, 1, nothing, NULL, &o));
	o.stack_size = 1;
	EXPECT_EQ(1, pl_spawn_many(&t, 1, see_stack, NULL, &o));
	join(t);
	EXPECT_EQ(32 << 10, size_seen);
	o.stack = PL_STACK_LARGE;
	EXPECT_EQ(-EINVAL, pl_spawn(&t, nothing, NULL, &o));
}

/* ---- NULL ---- */

TEST_F(opts, null_is_invalid)
{
	EXPECT_EQ(-EINVAL, pl_mutex_trylock(NULL));
	EXPECT_EQ(-EINVAL, pl_mutex_lock_until(NULL, 0));
	EXPECT_EQ(-EINVAL, pl_cond_wait(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_rwlock_tryrdlock(NULL));
	EXPECT_EQ(-EINVAL, pl_rwlock_rdlock_until(NULL, 0));
	EXPECT_EQ(-EINVAL, pl_rwlock_trywrlock(NULL));
	EXPECT_EQ(-EINVAL, pl_rwlock_wrlock_until(NULL, 0));
	EXPECT_EQ(-EINVAL, pl_sem_init(NULL, 0));
	EXPECT_EQ(-EINVAL, pl_sem_post(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_sem_wait(NULL));
	EXPECT_EQ(-EINVAL, pl_sem_trywait(NULL));
	EXPECT_EQ(-EINVAL, pl_latch_wait(NULL));
	EXPECT_EQ(-EINVAL, pl_barrier_wait(NULL));
	EXPECT_EQ(-EINVAL, pl_once(NULL, nothing, NULL));
	EXPECT_EQ(-EINVAL, pl_chan_create(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_chan_send(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_chan_recv(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_chan_close(NULL));
	EXPECT_EQ(-EINVAL, pl_chan_destroy(NULL));
	EXPECT_EQ(-EINVAL, pl_queue_create(NULL, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_queue_push(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_queue_close(NULL));
	EXPECT_EQ(-EINVAL, pl_queue_join(NULL));
	EXPECT_EQ(-EINVAL, pl_key_create(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_word_wait(NULL, 0, 0));
	EXPECT_EQ(-EINVAL, pl_word_wake(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_spawn(NULL, NULL, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_timer_add(NULL, 0, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_scope_enter(NULL, 0, 0));
	EXPECT_EQ(-EINVAL, pl_stat_read(NULL));
	EXPECT_EQ(-EINVAL, pl_stat_worker(0, NULL));
	EXPECT_EQ(-EINVAL, pl_io_wait(NULL, 0));
	EXPECT_EQ(-EINVAL, pl_io_wait_linked(NULL, NULL, 1, 0));
}

TEST_F(opts, null_is_invalid_wherever_it_stands)
{
	struct pl_scope s = PL_SCOPE_INIT;
	struct pl_mutex m = PL_MUTEX_INIT;
	struct pl_cond c = PL_COND_INIT;
	struct pl_once o = PL_ONCE_INIT;
	struct pl_word w = { 0 };
	pl_task_t t;

	EXPECT_EQ(-EINVAL, pl_cond_wait(&c, NULL));
	EXPECT_EQ(-EINVAL, pl_cond_wait_until(&c, NULL, 0));
	EXPECT_EQ(-EINVAL, pl_cond_wait_until(NULL, &m, 0));
	EXPECT_EQ(-EINVAL, pl_sem_wait_until(NULL, 0));
	EXPECT_EQ(-EINVAL, pl_latch_init(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_latch_add(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_latch_done(NULL));
	EXPECT_EQ(-EINVAL, pl_latch_wait_until(NULL, 0));
	EXPECT_EQ(-EINVAL, pl_barrier_init(NULL, 1));
	EXPECT_EQ(-EINVAL, pl_once(&o, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_chan_send_until(NULL, NULL, 0));
	EXPECT_EQ(-EINVAL, pl_chan_recv_until(NULL, NULL, 0));
	EXPECT_EQ(-EINVAL, pl_chan_trysend(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_chan_tryrecv(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_chan_select(NULL, 1, 0));
	EXPECT_EQ(-EINVAL, pl_queue_push_urgent(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_word_requeue(NULL, &w, 1, 1));
	EXPECT_EQ(-EINVAL, pl_word_requeue(&w, NULL, 1, 1));
	EXPECT_EQ(-EINVAL, pl_spawn_many(&t, 1, NULL, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_blocking(NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_queue_delay(NULL));
	EXPECT_EQ(-EINVAL, pl_poll_many(NULL, 1, 0));
	EXPECT_EQ(-EINVAL, pl_hook_add(NULL, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_scope_cancel(NULL, -ECANCELED));
	EXPECT_EQ(-EINVAL, pl_scope_error(NULL));
	EXPECT_EQ(-EINVAL, pl_scope_leave(NULL));
	EXPECT_EQ(-EINVAL, pl_scope_spawn(NULL, NULL, NULL, NULL, NULL));
	ASSERT_EQ(0, pl_scope_enter(&s, PL_FOREVER, 0));
	EXPECT_EQ(-EINVAL, pl_scope_spawn(&s, NULL, NULL, NULL, NULL));
	EXPECT_EQ(0, pl_scope_leave(&s));
}

/* ---- other values ---- */

static void execute_nothing(void **batch, size_t nr, void *arg)
{
	(void)batch;
	(void)nr;
}

TEST_F(opts, value_out_of_bounds_is_invalid_and_changes_nothing)
{
	struct pl_sem sem = PL_SEM_INIT(0);
	struct pl_latch latch = PL_LATCH_INIT(0);
	struct pl_barrier barrier = PL_BARRIER_INIT(0);
	struct pl_once once = PL_ONCE_INIT;
	struct pl_word w = { 0 };
	struct pl_queue *queue = NULL;
	struct pl_chan *ch = NULL;
	pl_timer_t timer = 77;

	EXPECT_EQ(-EINVAL, pl_sem_init(&sem, PL_SEM_MAX + 1));
	EXPECT_EQ(-EINVAL, pl_sem_post(&sem, PL_SEM_MAX + 1));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
	EXPECT_EQ(-EINVAL, pl_latch_init(&latch, PL_LATCH_MAX + 1));
	EXPECT_EQ(0, pl_latch_wait_until(&latch, 0));
	EXPECT_EQ(-EINVAL, pl_barrier_init(&barrier, 0));
	EXPECT_EQ(1, pl_barrier_wait(&barrier));
	EXPECT_EQ(0, pl_once(&once, nothing, NULL));
	EXPECT_EQ(-EINVAL, pl_once(&once, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_word_requeue(&w, &w, 1, 1));
	EXPECT_EQ(-EINVAL, pl_chan_create(&ch, SIZE_MAX / 8));
	EXPECT_NULL(ch);
	EXPECT_EQ(-EINVAL, pl_queue_create(&queue, NULL, NULL));
	EXPECT_EQ(-EINVAL, pl_queue_create(NULL, execute_nothing, NULL));
	EXPECT_NULL(queue);
	EXPECT_EQ(-EINVAL, pl_timer_add(&timer, 0, NULL, NULL));
	EXPECT_EQ(77, timer);
	EXPECT_EQ(-EINVAL, pl_timer_del(0));
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

static void use_no_memory(void *arg)
{
	struct iovec iov = { NULL, 1 };
	int fds[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	ASSERT_EQ(3, write(fds[1], "abc", 3));
	EXPECT_EQ(-EFAULT, pl_read(fds[0], NULL, 1));
	EXPECT_EQ(-EFAULT, pl_write(fds[0], NULL, 1));
	EXPECT_EQ(-EFAULT, pl_recv(fds[0], NULL, 1, 0));
	EXPECT_EQ(-EFAULT, pl_send(fds[0], NULL, 1, 0));
	EXPECT_EQ(-EFAULT, pl_readv(fds[0], &iov, 1));
	EXPECT_EQ(-EFAULT, pl_readv(fds[0], NULL, 1));
	EXPECT_EQ(-EFAULT, pl_writev(fds[0], NULL, 1));
	EXPECT_EQ(-EFAULT, pl_recvmsg(fds[0], NULL, 0));
	EXPECT_EQ(-EFAULT, pl_sendmsg(fds[0], NULL, 0));
	EXPECT_EQ(-EFAULT, pl_connect(fds[0], NULL, 16));
	close(fds[0]);
	close(fds[1]);
}

TEST_F(opts, null_of_io_is_a_fault)
{
	run_in_task(use_no_memory, NULL);
	setenv("PARKLOT_IO", "poll", 1);
	ASSERT_EQ(0, pl_runtime_stop());
	run_in_task(use_no_memory, NULL);
}

/* ---- version ---- */

TEST_F(opts, version_is_the_headers)
{
	EXPECT_STREQ(PARKLOT_VERSION, pl_version());
}

TEST_HARNESS_MAIN
