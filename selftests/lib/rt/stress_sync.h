/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a player of lib_stress does with locks, counts, channels and queues,
 * and how the books of these are checked in the end.  Included by
 * stress_player.h alone.
 */
#ifndef SELFTESTS_STRESS_SYNC_H
#define SELFTESTS_STRESS_SYNC_H

#define NR_RWLOCKS	3
#define NR_UNITS	3
#define NR_ONCES	64

/* ---- rwlock ---- */

static struct {
	struct pl_rwlock	lock;
	atomic_int		nr_readers, nr_writers;
} guarded[NR_RWLOCKS];

static int lock_to_read(struct player *p, struct pl_rwlock *l)
{
	switch (pick(p, 3) + !is_patient_player(p)) {
	case 0:
		pl_rwlock_rdlock(l);
		return 0;
	case 1:
		return pl_rwlock_tryrdlock(l);
	default:
		return pl_rwlock_rdlock_until(l, soon(p));
	}
}

static int lock_to_write(struct player *p, struct pl_rwlock *l)
{
	switch (pick(p, 3) + !is_patient_player(p)) {
	case 0:
		pl_rwlock_wrlock(l);
		return 0;
	case 1:
		return pl_rwlock_trywrlock(l);
	default:
		return pl_rwlock_wrlock_until(l, soon(p));
	}
}

static void do_read_locked(struct player *p)
{
	int i = (int)pick(p, NR_RWLOCKS);
	int ret;

	do {
		ret = lock_to_read(p, &guarded[i].lock);
	} while (tries_again(p, ret));
	if (ret) {
		EXPECT_TRUE(is_expected(ret) || ret == -EBUSY);
		return;
	}
	atomic_fetch_add(&guarded[i].nr_readers, 1);
	EXPECT_EQ(0, guarded[i].nr_writers);
	if (!pick(p, 4))
		pl_yield();
	EXPECT_EQ(0, guarded[i].nr_writers);
	atomic_fetch_sub(&guarded[i].nr_readers, 1);
	pl_rwlock_rdunlock(&guarded[i].lock);
}

static void do_write_locked(struct player *p)
{
	int i = (int)pick(p, NR_RWLOCKS);
	int ret;

	do {
		ret = lock_to_write(p, &guarded[i].lock);
	} while (tries_again(p, ret));
	if (ret) {
		EXPECT_TRUE(is_expected(ret) || ret == -EBUSY);
		return;
	}
	EXPECT_EQ(0, atomic_fetch_add(&guarded[i].nr_writers, 1));
	EXPECT_EQ(0, guarded[i].nr_readers);
	if (!pick(p, 4))
		pl_yield();
	EXPECT_EQ(0, guarded[i].nr_readers);
	EXPECT_EQ(1, atomic_fetch_sub(&guarded[i].nr_writers, 1));
	pl_rwlock_wrunlock(&guarded[i].lock);
}

static void do_rwlock(struct player *p)
{
	if (pick(p, 3))
		do_read_locked(p);
	else
		do_write_locked(p);
}

static void check_rwlocks(void)
{
	int i;

	for (i = 0; i < NR_RWLOCKS; i++) {
		EXPECT_EQ(0, pl_rwlock_trywrlock(&guarded[i].lock));
		pl_rwlock_wrunlock(&guarded[i].lock);
	}
}

/* ---- sem ---- */

static struct pl_sem sem = PL_SEM_INIT(NR_UNITS);
static atomic_int nr_taken;

static void do_sem(struct player *p)
{
	int ret = pick(p, 3) ? pl_sem_wait_until(&sem, soon(p)) :
			       pl_sem_trywait(&sem);

	EXPECT_SANE(ret);
	if (ret)
		return;
	EXPECT_GE(NR_UNITS, atomic_fetch_add(&nr_taken, 1) + 1);
	if (!pick(p, 4))
		pl_yield();
	atomic_fetch_sub(&nr_taken, 1);
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
}

static void check_sem(void)
{
	int i;

	for (i = 0; i < NR_UNITS; i++)
		EXPECT_EQ(0, pl_sem_trywait(&sem));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

/* ---- latch: freed by its waiter, as soon as it may be ---- */

struct counted {
	struct pl_latch	latch;
	atomic_int	*is_done;	/* when @latch is touched no more */
};

static void count_down(void *arg)
{
	struct counted *c = arg;
	atomic_int *is_done = c->is_done;

	EXPECT_EQ(0, pl_latch_done(&c->latch));
	atomic_store(is_done, 1);
}

static void do_latch(struct player *p)
{
	struct counted *c;
	atomic_int *is_done;
	int ret;

	/* To wait, once cancelled, takes another task to run meanwhile. */
	if (is_over || p->has_worker || nr_alive >= most_alive())
		return;
	c = calloc(1, sizeof(*c));
	is_done = calloc(1, sizeof(*is_done));
	if (!c || !is_done) {
		EXPECT_EQ(-ENOMEM, trial.may_say);
		goto out;
	}
	c->is_done = is_done;
	EXPECT_EQ(0, pl_latch_init(&c->latch, 1));
	ret = pl_spawn(NULL, count_down, c, NULL);
	if (!ret) {
		ret = pick(p, 2) && is_patient_player(p) ?
		      pl_latch_wait(&c->latch) :
		      pl_latch_wait_until(&c->latch, soon(p));
		EXPECT_SANE(ret);
		/* A waiter that gave up cannot know when it may be freed. */
		while (ret && !*is_done)
			breathe();
		free(c);
		c = NULL;
		while (!*is_done)
			breathe();
	} else {
		EXPECT_SANE(ret);
	}
out:
	free(c);
	free(is_done);
}

/* ---- once ---- */

static struct pl_once once[NR_ONCES];
static atomic_int nr_done[NR_ONCES];

static void do_it(void *arg)
{
	pl_yield();
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void do_once(struct player *p)
{
	int i = (int)pick(p, NR_ONCES);

	if (p->has_worker)
		return;
	EXPECT_EQ(0, pl_once(&once[i], do_it, &nr_done[i]));
	EXPECT_EQ(1, nr_done[i]);
}

/* ---- channels: what is sent is received once ---- */

#define NR_CHANS	3

static struct pl_chan *chan[NR_CHANS];
static atomic_long nr_sent, nr_received;
static _Atomic uintptr_t sum_sent, sum_received;

static void note_sent(void *item)
{
	atomic_fetch_add(&nr_sent, 1);
	atomic_fetch_add(&sum_sent, (uintptr_t)item);
}

static void note_received(void *item)
{
	atomic_fetch_add(&nr_received, 1);
	atomic_fetch_add(&sum_received, (uintptr_t)item);
}

static void do_one_chan(struct player *p, struct pl_chan *ch)
{
	void *item = (void *)(uintptr_t)next_random(&p->seed);
	int ret;

	if (pick(p, 2)) {
		ret = pick(p, 3) ? pl_chan_send_until(ch, item, soon(p)) :
				   pl_chan_trysend(ch, item);
		EXPECT_SANE(ret);
		if (!ret)
			note_sent(item);
	} else {
		ret = pick(p, 3) ? pl_chan_recv_until(ch, &item, soon(p)) :
				   pl_chan_tryrecv(ch, &item);
		EXPECT_SANE(ret);
		if (!ret)
			note_received(item);
	}
}

static void do_select(struct player *p)
{
	struct pl_chan_case cases[4];
	uint32_t i, nr = 1 + pick(p, 4);
	int ret;

	for (i = 0; i < nr; i++) {
		struct pl_chan *ch = chan[pick(p, NR_CHANS)];
		void *item = (void *)(uintptr_t)next_random(&p->seed);

		cases[i] = pick(p, 2) ?
			   (struct pl_chan_case)PL_CHAN_CASE_RECV(ch) :
			   (struct pl_chan_case)PL_CHAN_CASE_SEND(ch, item);
	}
	ret = pl_chan_select(cases, nr, soon(p));
	if (ret < 0) {
		EXPECT_SANE(ret);
		return;
	}
	EXPECT_EQ(0, cases[ret].result);
	if (cases[ret].op == PL_CHAN_SEND)
		note_sent(cases[ret].item);
	else
		note_received(cases[ret].item);
}

static void do_chan(struct player *p)
{
	if (pick(p, 3))
		do_one_chan(p, chan[pick(p, NR_CHANS)]);
	else
		do_select(p);
}

static void open_chans(void)
{
	static const size_t capacity[NR_CHANS] = { 0, 1, 16 };
	int i;

	for (i = 0; i < NR_CHANS; i++)
		ASSERT_EQ(0, pl_chan_create(&chan[i], capacity[i]));
}

static void check_chans(void)
{
	void *item;
	int i;

	for (i = 0; i < NR_CHANS; i++) {
		while (!pl_chan_tryrecv(chan[i], &item))
			note_received(item);
		EXPECT_EQ(0, pl_chan_close(chan[i]));
		EXPECT_EQ(0, pl_chan_destroy(chan[i]));
	}
	EXPECT_EQ(nr_sent, nr_received);
	EXPECT_EQ(sum_sent, sum_received);
}

/* ---- keys: what is set is destroyed once ---- */

static pl_key_t key;
static atomic_long nr_set, nr_destroyed;

static void destroy(void *value)
{
	(void)value;
	atomic_fetch_add(&nr_destroyed, 1);
}

static void do_key(struct player *p)
{
	void *value = pl_key_get(key);
	int ret;

	if (!value) {
		ret = pl_key_set(key, p);
		EXPECT_SANE(ret);
		atomic_fetch_add(&nr_set, !ret);
	} else {
		EXPECT_EQ(p, value);
	}
}

/* ---- queues: what is pushed is executed once, by one at a time ---- */

#define NR_QUEUES	2

static struct executed {
	struct pl_queue	*q;
	atomic_int	nr_in;
	atomic_long	nr_pushed;
	long		nr;		/* by the task that is in */
	uintptr_t	sum;
	_Atomic uintptr_t sum_pushed;
} queue[NR_QUEUES];

static void execute(void **batch, size_t nr, void *arg)
{
	struct executed *e = arg;
	size_t i;

	EXPECT_EQ(0, atomic_fetch_add(&e->nr_in, 1));
	for (i = 0; i < nr; i++)
		e->sum += (uintptr_t)batch[i];
	e->nr += (long)nr;
	if (nr > 1)
		pl_yield();
	EXPECT_EQ(1, atomic_fetch_sub(&e->nr_in, 1));
}

static void do_queue(struct player *p)
{
	struct executed *e = &queue[pick(p, NR_QUEUES)];
	void *item = (void *)(uintptr_t)next_random(&p->seed);
	int ret;

	ret = pick(p, 4) ? pl_queue_push(e->q, item) :
			   pl_queue_push_urgent(e->q, item);
	EXPECT_SANE(ret);
	if (ret)
		return;
	atomic_fetch_add(&e->nr_pushed, 1);
	atomic_fetch_add(&e->sum_pushed, (uintptr_t)item);
}

static void open_queues(void)
{
	int i;

	for (i = 0; i < NR_QUEUES; i++)
		ASSERT_EQ(0, pl_queue_create(&queue[i].q, execute, &queue[i]));
}

static void check_queues(void)
{
	struct executed *e;

	for (e = queue; e < queue + NR_QUEUES; e++) {
		EXPECT_EQ(0, pl_queue_close(e->q));
		EXPECT_EQ(0, pl_queue_join(e->q));
		EXPECT_EQ(e->nr_pushed, e->nr);
		EXPECT_EQ(e->sum_pushed, e->sum);
	}
}

/* ---- all of it ---- */

static void open_sync(void)
{
	open_chans();
	open_queues();
	ASSERT_EQ(0, pl_key_create(&key, destroy));
}

/* Once all players but the caller have ended. */
static void check_sync(void)
{
	check_rwlocks();
	check_sem();
	check_chans();
	check_queues();
	EXPECT_EQ(nr_set, nr_destroyed + !!pl_key_get(key));
	EXPECT_EQ(0, pl_key_delete(key));
}

#endif /* SELFTESTS_STRESS_SYNC_H */
