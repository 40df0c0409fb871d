/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A space with a crew, and threads that join it. The harness is included before
 * this header.
 */
#ifndef SELFTESTS_MOD_CREW_H
#define SELFTESTS_MOD_CREW_H

#include "mod.h"

/* For FIXTURE_SETUP(): skips the test without the device, or without a crew. */
#define CREW_SETUP(s, nr_lots, nr_workers) do { \
	int __err = space_open_crew(s, nr_lots, nr_workers); \
	if (__err == -ENOENT) \
		SKIP(return, "no " DEVICE); \
	if (__err == -EOPNOTSUPP) \
		SKIP(return, "no crew"); \
	ASSERT_EQ(0, __err); \
} while (0)

static inline int dev_crew(int fd, uint32_t target, uint32_t max,
			   uint32_t stall_ns)
{
	struct parklot_crew crew = {
		.target = target, .max = max, .stall_ns = stall_ns,
	};

	return dev_ioctl(fd, PARKLOT_IOC_CREW, &crew);
}

static inline int dev_join(int fd, uint32_t slot)
{
	struct parklot_worker worker = { .slot = slot };

	return dev_ioctl(fd, PARKLOT_IOC_WORKER_JOIN, &worker);
}

static inline int dev_leave(int fd, uint32_t slot)
{
	struct parklot_worker worker = { .slot = slot };

	return dev_ioctl(fd, PARKLOT_IOC_WORKER_LEAVE, &worker);
}

static inline void set_backlog(struct space *s, uint32_t backlog)
{
	__atomic_store_n(&s->words->backlog, backlog, __ATOMIC_SEQ_CST);
}

static inline void set_state(struct space *s, uint32_t slot, uint32_t state)
{
	struct parklot_worker_words *worker = (void *)
		((char *)s->words +
		 PARKLOT_WORKER_OFFSET(s->setup.nr_lots, slot));

	__atomic_store_n(&worker->state, state, __ATOMIC_SEQ_CST);
}

static inline long nr_called(const struct space *s)
{
	return fdinfo(getpid(), s->fd, "replaced");
}

/* A thread that joins in a slot, runs do_it(), and leaves when told. */
struct worker {
	struct space	*space;
	uint32_t	slot;
	void		(*do_it)(struct worker *worker);
	pthread_t	thread;
	int		fd[2];		/* for do_it() */
	void		*arg;		/* for do_it() */
	atomic_int	tid;
	atomic_int	result;		/* of do_it(), as a reason */
	atomic_int	err;		/* of joining and leaving */
	atomic_int	may_begin, is_done, may_leave;
};

/* Waits without sleeping, so that the crew counts the worker as running. */
static inline void spin_until(atomic_int *flag)
{
	while (!atomic_load(flag))
		sched_yield();
}

static inline void *worker_main(void *arg)
{
	struct worker *w = arg;

	atomic_store(&w->err, dev_join(w->space->fd, w->slot));
	atomic_store(&w->tid, gettid());
	spin_until(&w->may_begin);
	if (w->do_it)
		w->do_it(w);
	atomic_store(&w->is_done, 1);
	spin_until(&w->may_leave);
	if (!atomic_load(&w->err))
		atomic_store(&w->err, dev_leave(w->space->fd, w->slot));
	return NULL;
}

/* Returns when the worker has joined, and runs. */
static inline int worker_start(struct worker *w, struct space *s,
			       uint32_t slot, void (*do_it)(struct worker *))
{
	int err;

	w->space = s;
	w->slot = slot;
	w->do_it = do_it;
	err = -pthread_create(&w->thread, NULL, worker_main, w);
	if (err)
		return err;
	UNTIL(atomic_load(&w->tid));
	return atomic_load(&w->err);
}

static inline void worker_begin(struct worker *w)
{
	atomic_store(&w->may_begin, 1);
}

/* The worker has done its task, and leaves. */
static inline int worker_finish(struct worker *w)
{
	atomic_store(&w->may_begin, 1);
	atomic_store(&w->may_leave, 1);
	pthread_join(w->thread, NULL);
	return atomic_load(&w->err);
}

/* Parks once on lot 0, for ever. */
static inline void do_park(struct worker *w)
{
	atomic_store(&w->result,
		     dev_park(w->space->fd, 0, seq_read(w->space, 0),
			      PARKLOT_FOREVER));
}

/* Returns when the worker is parked. */
static inline int worker_park(struct worker *w, struct space *s, uint32_t slot)
{
	uint32_t before = nr_idle_workers(s), running = nr_running(s);
	int err = worker_start(w, s, slot, do_park);

	if (err)
		return err;
	worker_begin(w);
	/* One count is raised before the other is lowered. */
	UNTIL(nr_idle_workers(s) == before + 1 && nr_running(s) == running);
	return 0;
}

/* Reads a byte from fd[0], which blocks. */
static inline void do_read(struct worker *w)
{
	char c;

	atomic_store(&w->result, read(w->fd[0], &c, 1));
}

/* Returns when the worker is blocked. */
static inline int worker_block(struct worker *w, struct space *s, uint32_t slot)
{
	uint32_t before = nr_blocked(s), running = nr_running(s);
	int err = pipe2(w->fd, O_CLOEXEC) ? -errno :
					    worker_start(w, s, slot, do_read);

	if (err)
		return err;
	worker_begin(w);
	UNTIL(nr_blocked(s) == before + 1 && nr_running(s) == running);
	return 0;
}

/* Returns when the worker runs again. */
static inline bool worker_unblock(struct worker *w)
{
	bool is_written = write(w->fd[1], "", 1) == 1;

	UNTIL(atomic_load(&w->is_done));
	close(w->fd[0]);
	close(w->fd[1]);
	return is_written;
}

#endif /* SELFTESTS_MOD_CREW_H */
