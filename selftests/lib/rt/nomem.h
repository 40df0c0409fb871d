/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trials: an operation, made in a process of its own, while the nth thing that
 * the library takes is refused.  rt.h, inject.h and work.h are included before
 * this.
 */
#ifndef SELFTESTS_NOMEM_H
#define SELFTESTS_NOMEM_H

#define SITES_MAX	256
#define DEVICE		"/dev/parklot"

struct outcome {
	atomic_int	was_hit;
	atomic_int	ret;
	_Atomic int64_t	objects, mapped;
	atomic_int	fds;
};

/* Of all tests of this program. */
static struct {
	_Atomic uint32_t	hits[SITES_MAX];	/* by place */
	struct outcome		now;			/* last trial's */
	atomic_int		is_done[5];	/* by group */
} *shared;

static void __attribute__((constructor)) share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		abort();
}

/* Where it is made; NEW: by a thread, before anything else. */
enum from { NEW, THREAD, TASK, WORKER_TASK };

struct op {
	const char	*name;
	enum from	from;
	int		(*run)(void);
	int		says[3];	/* when refused; else 0 */
};

/* 0; set to 1 when the operation is made, to 3 when it has returned. */
static atomic_int go;

/* What an operation needs beside it; others' business, so never refused. */
static void prepare(const struct op *op);

static void clear_env(void)
{
	unsetenv("PARKLOT_WORKERS");
	unsetenv("PARKLOT_MAX_WORKERS");
	unsetenv("PARKLOT_BACKEND");
	unsetenv("PARKLOT_IO");
	unsetenv("PARKLOT_WAIT");
}

static void op_task(void *arg)
{
	const struct op *op = arg;

	EXPECT_TRUE(UNTIL(go));
	shared->now.ret = op->run();
	go = 3;
}

static void run_op(const struct op *op, enum pl__fault_plan plan, uint32_t n)
{
	if (op->from == TASK || op->from == WORKER_TASK)
		spawn_as(op->from == TASK ? PL_STACK_NORMAL : PL_STACK_WORKER,
			 op_task, (void *)op);
	pl__fault_plan(plan, n, 0);
	go = 1;
	if (op->from == TASK || op->from == WORKER_TASK)
		EXPECT_TRUE(UNTIL(go == 3));
	else
		shared->now.ret = op->run();
	shared->now.was_hit = (int)pl__fault_nr_hits();
	pl__fault_plan(PL__FAULT_NONE, 0, 0);
}

/* For ever: as many as there once were at a time. */
static int64_t mapped_for_tasks(void)
{
	struct pl__slab *s = &pl__rt.tasks;
	int64_t nr = 0;

	while (nr < s->nr_chunks && load_relaxed(&s->chunks[nr]))
		nr++;
	return nr * (int64_t)(s->obj_size << s->shift);
}

/* That nothing is wrong with it now; and what it keeps. */
static void go_on(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		work_run();
		EXPECT_EQ(0, pl_runtime_stop());
	}
	EXPECT_TRUE(UNTIL(nr_threads_named("pl-") == 0));
	shared->now.fds = nr_entries("/proc/self/fd");
	shared->now.objects = atomic_load(&pl__nr_objects);
	shared->now.mapped = atomic_load(&pl__nr_mapped) - mapped_for_tasks();
}

static void __attribute__((noreturn))
trial_child(const struct op *op, enum pl__fault_plan plan, uint32_t n)
{
	limit_time();
	pl__fault_count(shared->hits);
	clear_env();
	prepare(op);
	run_op(op, plan, n);
	/* This ends the waits for what was refused. */
	pl_runtime_stop();
	go_on();
	_exit(0);
}

static bool may_say(const struct op *op, int ret)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(op->says); i++)
		if (ret == op->says[i])
			return true;
	return false;
}

/* The device, or io_uring, is not to be had here at all. */
static bool is_missing(enum pl__fault_plan plan)
{
	return plan == PL__FAULT_NONE &&
	       (shared->now.ret == -ENODEV || shared->now.ret == -EOPNOTSUPP);
}

static struct outcome *trial(const struct op *op, enum pl__fault_plan plan,
			     uint32_t n)
{
	int status;
	pid_t pid;

	memset(&shared->now, 0, sizeof(shared->now));
	pid = fork();
	if (!pid)
		trial_child(op, plan, n);
	status = reap(pid);
	EXPECT_EQ(0, status) {
		TH_LOG("%s from %d, plan %d: %u", op->name, op->from, plan, n);
	}
	EXPECT_TRUE(!shared->now.ret || is_missing(plan) ||
		    (shared->now.was_hit && may_say(op, shared->now.ret))) {
		TH_LOG("%s from %d, plan %d: %u: says %d", op->name, op->from,
		       plan, n, shared->now.ret);
	}
	return &shared->now;
}

static void compare(const struct op *op, uint32_t n, const struct outcome *was)
{
	const struct outcome *is = &shared->now;

	EXPECT_TRUE(is->objects == was->objects && is->mapped == was->mapped &&
		    is->fds == was->fds) {
		TH_LOG("%s from %d: %u: left objects %lld, mapped %lld, descriptors %d; not %lld, %lld, %d",
		       op->name, op->from, n, (long long)is->objects,
		       (long long)is->mapped, is->fds, (long long)was->objects,
		       (long long)was->mapped, was->fds);
	}
}

/* Until nothing was refused any more, twice: others take things in between. */
static void each_in_turn(const struct op *op, enum pl__fault_plan plan)
{
	struct outcome was = *trial(op, PL__FAULT_NONE, 0);
	uint32_t n = 0, nr_spared = 0;

	if (was.ret)
		return;
	while (nr_spared < 2 && !__test_get(_metadata->state->failed)) {
		trial(op, plan, ++n);
		compare(op, n, &was);
		nr_spared += !shared->now.was_hit;
	}
}

#endif /* SELFTESTS_NOMEM_H */
