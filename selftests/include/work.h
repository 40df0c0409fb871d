/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small load that uses each part of the library, and processes to run it in.
 * rt.h is included before this header.
 */
#ifndef SELFTESTS_WORK_H
#define SELFTESTS_WORK_H

#include <fcntl.h>
#include <sys/wait.h>

#define WORK_NR		12	/* tasks that spawn one each */

static struct {
	bool		is_hard_up;	/* calls may fail without memory */
	struct pl_mutex	mutex;
	struct pl_cond	cond;
	int		nr_live;	/* under the mutex */
	int		nr_ran;		/* under the mutex */
	atomic_int	nr_fired;
	int		pipe[2];
} work;

static inline bool is_want(long ret)
{
	return ret == -ENOMEM || ret == -EAGAIN;
}

/* Returns true if a call of the load succeeded. */
static inline bool work_ok(long ret)
{
	if (work.is_hard_up && is_want(ret))
		return false;
	EXPECT_EQ(0, ret);
	return !ret;
}

static inline void work_begun(void)
{
	pl_mutex_lock(&work.mutex);
	work.nr_live++;
	pl_mutex_unlock(&work.mutex);
}

static inline void work_ended(bool ran)
{
	pl_mutex_lock(&work.mutex);
	work.nr_ran += ran;
	if (!--work.nr_live)
		pl_cond_broadcast(&work.cond);
	pl_mutex_unlock(&work.mutex);
}

static inline void work_fired(void *arg)
{
	work.nr_fired++;
}

/* One byte through a pipe; each task takes one byte, of any task. */
static inline void work_io(void)
{
	char byte = 'x';
	ssize_t ret;

	do {
		ret = pl_write(work.pipe[1], &byte, 1);
	} while (work.is_hard_up && is_want(ret));
	if (ret == -EOPNOTSUPP)
		return;
	EXPECT_EQ(1, ret);
	do {
		ret = pl_read(work.pipe[0], &byte, 1);
	} while (work.is_hard_up && is_want(ret));
	EXPECT_EQ(1, ret);
}

static inline void work_child(void *arg)
{
	work_ok(pl_sleep(20 * NSEC_PER_USEC));
	work_ended(true);
	pl_exit();
}

static inline void work_spawn(void (*fn)(void *arg), uint32_t stack,
			      pl_task_t *out)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;

	opts.stack = stack;
	work_begun();
	if (!work_ok(pl_spawn(out, fn, NULL, &opts)))
		work_ended(false);
}

static inline void work_task(void *arg)
{
	pl_timer_t timer = 0;
	pl_task_t t = 0;

	work_spawn(work_child, PL_STACK_SMALL, &t);
	pl_yield();
	if (work_ok(pl_timer_add(&timer, in_ms(3600 * 1000), work_fired, NULL)))
		EXPECT_EQ(0, pl_timer_del(timer));
	work_ok(pl_timer_add(NULL, pl_now(), work_fired, NULL));
	work_io();
	if (t)
		work_ok(pl_join_until(t, in_ms(3600 * 1000)));
	work_ended(true);
}

static inline void *work_thread(void *arg)
{
	work_task(arg);
	return NULL;
}

/*
 * Called by a task or a thread. Dumps the tasks if the load is stuck. The
 * machine may have stood still once, but not twice.
 */
static inline void work_wait(void)
{
	bool was_late = false;
	int ret;

	pl_mutex_lock(&work.mutex);
	while (work.nr_live) {
		ret = pl_cond_wait_until(&work.cond, &work.mutex,
					 pl_now() + stuck_ns());
		if (work.is_hard_up && is_want(ret))
			continue;
		if (ret)
			pl_dump(STDERR_FILENO);
		if (ret == -ETIMEDOUT && work.nr_live && !was_late) {
			was_late = true;
			continue;
		}
		ASSERT_EQ(0, ret);
	}
	pl_mutex_unlock(&work.mutex);
}

/* Tasks of each kind and a thread; all have ended when this returns. */
static inline void work_run(void)
{
	pthread_t thread;
	int i;

	work.nr_ran = 0;
	ASSERT_EQ(0, pipe2(work.pipe, O_CLOEXEC));
	for (i = 0; i < WORK_NR; i++)
		work_spawn(work_task, (uint32_t)i % 4, NULL);
	work_begun();
	ASSERT_EQ(0, pthread_create(&thread, NULL, work_thread, NULL));
	work_wait();
	pthread_join(thread, NULL);
	if (!work.is_hard_up)
		EXPECT_EQ(2 * (WORK_NR + 1), work.nr_ran);
	close(work.pipe[0]);
	close(work.pipe[1]);
}

/* ---- processes ---- */

static inline int time_factor(void)
{
	const char *s = getenv("TEST_TIMEOUT_FACTOR");

	return s && atoi(s) > 0 ? atoi(s) : 1;
}

/*
 * For a child: a signal ends it if it hangs, a little before its test's limit.
 */
static inline void limit_time(void)
{
	sigset_t alrm;

	sigemptyset(&alrm);
	sigaddset(&alrm, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &alrm, NULL);
	alarm(50 * (unsigned int)time_factor());
}

/* The status of waitpid(). */
static inline int reap(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

#endif /* SELFTESTS_WORK_H */
