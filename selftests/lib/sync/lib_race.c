/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A wait may be ended by what it waits for, its deadline, an interrupt and a
 * cancel, all in the same moment.  It ends once, for one of them; what it did
 * not take is there for others, and an interrupt without effect is kept.
 */
#define SIM_SHORT_READS
#include "kselftest_harness.h"

#include "rt.h"

#include "rwlock.h"

#include <sys/socket.h>

#define WITHIN_NS	80000	/* within which a round's strikes fall */
#define MAX_STRIKES	4

/*
 * What is waited for.  Before each round @begin runs alone.  At about the same
 * time the waiter waits and the strikes come, which may have to wait for what
 * the waiter does in @leave.  Then @settle finds what must be left.
 */
struct kind {
	void	(*begin)(void);
	int	(*wait)(uint64_t deadline_ns);
	void	(*strikes[MAX_STRIKES])(void);
	void	(*leave)(int ret);
	void	(*settle)(int ret);
};

static uint64_t chooser = 99991;	/* of @begin */

static void begin_nothing(void)
{
}

static void leave_nothing(int ret)
{
	(void)ret;
}

/* ---- word: those that count as woken were ---- */

static struct pl_word word;
static int nr_woken;

static int wait_for_word(uint64_t deadline_ns)
{
	return pl_word_wait(&word, 0, deadline_ns);
}

static void begin_word(void)
{
	nr_woken = 0;
}

static void wake_word(void)
{
	nr_woken = pl_word_wake(&word, 1);
}

static void settle_word(int ret)
{
	EXPECT_EQ(nr_woken, ret == 0);
}

static const struct kind of_word = {
	begin_word, wait_for_word, { wake_word }, leave_nothing, settle_word,
};

/* ---- sleep ---- */

static int sleep_until(uint64_t deadline_ns)
{
	int ret = pl_sleep_until(deadline_ns);

	if (ret)
		return ret;
	EXPECT_LE(deadline_ns, pl_now());
	return -ETIMEDOUT;
}

static const struct kind of_sleep = {
	begin_nothing, sleep_until, { NULL }, leave_nothing, leave_nothing,
};

/* ---- semaphore: of two waiters the patient one gets a unit, too ---- */

static struct pl_sem sem;

static int wait_for_sem(uint64_t deadline_ns)
{
	return pl_sem_wait_until(&sem, deadline_ns);
}

static void post(void)
{
	EXPECT_EQ(0, pl_sem_post(&sem, 1));
}

static void take(void)
{
	EXPECT_EQ(0, pl_sem_wait(&sem));
}

static void settle_sem(int ret)
{
	if (ret)
		EXPECT_EQ(0, pl_sem_trywait(&sem));
	EXPECT_EQ(-EAGAIN, pl_sem_trywait(&sem));
}

static const struct kind of_sem = {
	begin_nothing, wait_for_sem, { post }, leave_nothing, settle_sem,
}, of_sem_of_two = {
	begin_nothing, wait_for_sem, { post, take, post }, leave_nothing,
	settle_sem,
};

/* ---- latch: a patient waiter is woken whatever becomes of the other ---- */

static struct pl_latch latch;

static void count_up(void)
{
	EXPECT_EQ(0, pl_latch_add(&latch, 2));
}

static int wait_for_latch(uint64_t deadline_ns)
{
	return pl_latch_wait_until(&latch, deadline_ns);
}

static void count_down(void)
{
	EXPECT_EQ(0, pl_latch_done(&latch));
}

static void count_down_and_wait(void)
{
	count_down();
	EXPECT_EQ(0, pl_latch_wait(&latch));
}

/* It was not open before all was done. */
static void leave_latch(int ret)
{
	if (!ret)
		EXPECT_EQ(-EINVAL, pl_latch_done(&latch));
}

static void settle_latch(int ret)
{
	EXPECT_EQ(0, pl_latch_wait_until(&latch, 0));
	leave_latch(ret);
}

static const struct kind of_latch = {
	count_up, wait_for_latch, { count_down, count_down }, leave_latch,
	settle_latch,
}, of_latch_of_two = {
	count_up, wait_for_latch, { count_down_and_wait, count_down },
	leave_latch, settle_latch,
};

/* ---- barrier: a waiter that gave up comes again, or another ---- */

static struct pl_barrier barrier;
static atomic_int nr_last;

static void begin_barrier(void)
{
	EXPECT_EQ(0, pl_barrier_init(&barrier, 2));
	nr_last = 0;
}

static int come(uint64_t deadline_ns)
{
	int ret = pl_barrier_wait(&barrier);

	(void)deadline_ns;
	EXPECT_GE(1, ret);
	nr_last += ret == 1;
	return ret;
}

static void come_as_well(void)
{
	EXPECT_LE(0, come(0));
}

static void come_again(int ret)
{
	if (ret < 0)
		come_as_well();
}

static void settle_barrier(int ret)
{
	(void)ret;
	EXPECT_EQ(1, nr_last);
	EXPECT_EQ(1ULL << 32, barrier.state);
}

static const struct kind of_barrier = {
	begin_barrier, come, { come_as_well }, come_again, settle_barrier,
};

/* ---- mutex ---- */

static struct pl_mutex mutex;

static void begin_mutex(void)
{
	pl_mutex_lock(&mutex);
}

static int wait_for_mutex(uint64_t deadline_ns)
{
	return pl_mutex_lock_until(&mutex, deadline_ns);
}

static void unlock_mutex(void)
{
	pl_mutex_unlock(&mutex);
}

static void leave_mutex(int ret)
{
	if (!ret)
		unlock_mutex();
}

static void settle_mutex(int ret)
{
	(void)ret;
	EXPECT_EQ(0, pl_mutex_trylock(&mutex));
	unlock_mutex();
}

static const struct kind of_mutex = {
	begin_mutex, wait_for_mutex, { unlock_mutex }, leave_mutex,
	settle_mutex,
};

/* ---- rwlock: a waiter that gives up delays no reader or writer ---- */

static bool is_write_held, is_writing;

static void unlock_as(bool writes)
{
	if (writes)
		pl_rwlock_wrunlock(&lock);
	else
		pl_rwlock_rdunlock(&lock);
}

static void begin_rwlock(void)
{
	is_write_held = next_random(&chooser) % 2;
	is_writing = !is_write_held || next_random(&chooser) % 2;
	if (is_write_held)
		pl_rwlock_wrlock(&lock);
	else
		pl_rwlock_rdlock(&lock);
}

static int wait_for_rwlock(uint64_t deadline_ns)
{
	return is_writing ? pl_rwlock_wrlock_until(&lock, deadline_ns) :
			    pl_rwlock_rdlock_until(&lock, deadline_ns);
}

static void unlock_held(void)
{
	unlock_as(is_write_held);
}

static void read_as_well(void)
{
	pl_rwlock_rdlock(&lock);
	pl_rwlock_rdunlock(&lock);
}

static void write_as_well(void)
{
	pl_rwlock_wrlock(&lock);
	pl_rwlock_wrunlock(&lock);
}

static void leave_rwlock(int ret)
{
	if (!ret)
		unlock_as(is_writing);
}

static void settle_rwlock(int ret)
{
	(void)ret;
	check_free();
}

static const struct kind of_rwlock = {
	begin_rwlock, wait_for_rwlock, { unlock_held }, leave_rwlock,
	settle_rwlock,
}, of_rwlock_of_many = {
	begin_rwlock, wait_for_rwlock,
	{ read_as_well, unlock_held, write_as_well }, leave_rwlock,
	settle_rwlock,
};

/* ---- channel ---- */

static struct pl_chan *chan;

static void begin_chan(void)
{
	if (!chan)
		ASSERT_EQ(0, pl_chan_create(&chan, 1));
}

static int receive(uint64_t deadline_ns)
{
	void *item = NULL;
	int ret = pl_chan_recv_until(chan, &item, deadline_ns);

	EXPECT_EQ(ret ? NULL : &chan, item);
	return ret;
}

static void send_item(void)
{
	EXPECT_EQ(0, pl_chan_trysend(chan, &chan));
}

static void settle_chan(int ret)
{
	if (ret)
		EXPECT_EQ(0, pl_chan_tryrecv(chan, NULL));
	EXPECT_EQ(-EAGAIN, pl_chan_tryrecv(chan, NULL));
}

static const struct kind of_chan = {
	begin_chan, receive, { send_item }, leave_nothing, settle_chan,
};

/* ---- read: without a deadline it is a wait of another kind ---- */

static int pair[2];
static bool is_patient_read;

static void begin_read(void)
{
	if (!pair[0])
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
					pair));
	is_patient_read = next_random(&chooser) % 2;
}

static int read_byte(uint64_t deadline_ns)
{
	char c;
	ssize_t ret = is_patient_read ? pl_read(pair[0], &c, 1) :
		      pl_read_until(pair[0], &c, 1, deadline_ns);

	return ret == 1 ? 0 : (int)ret;
}

static void write_byte(void)
{
	ASSERT_EQ(1, write(pair[1], "x", 1));
}

static void settle_read(int ret)
{
	char c;

	if (ret)
		EXPECT_EQ(1, recv(pair[0], &c, 1, MSG_DONTWAIT));
	EXPECT_EQ(-1, recv(pair[0], &c, 1, MSG_DONTWAIT));
	EXPECT_EQ(EAGAIN, errno);
}

static const struct kind of_read = {
	begin_read, read_byte, { write_byte }, leave_nothing, settle_read,
};

/* ---- the fixture ---- */

static const struct kind *kind;

FIXTURE(race) { char unused; };
FIXTURE_VARIANT(race) { const struct kind *kind; const char *io; };
FIXTURE_VARIANT_ADD(race, word) { .kind = &of_word };
FIXTURE_VARIANT_ADD(race, sleep) { .kind = &of_sleep };
FIXTURE_VARIANT_ADD(race, sem) { .kind = &of_sem };
FIXTURE_VARIANT_ADD(race, sem_of_two) { .kind = &of_sem_of_two };
FIXTURE_VARIANT_ADD(race, latch) { .kind = &of_latch };
FIXTURE_VARIANT_ADD(race, latch_of_two) { .kind = &of_latch_of_two };
FIXTURE_VARIANT_ADD(race, barrier) { .kind = &of_barrier };
FIXTURE_VARIANT_ADD(race, mutex) { .kind = &of_mutex };
FIXTURE_VARIANT_ADD(race, rwlock) { .kind = &of_rwlock };
FIXTURE_VARIANT_ADD(race, rwlock_of_many) { .kind = &of_rwlock_of_many };
FIXTURE_VARIANT_ADD(race, chan) { .kind = &of_chan };
FIXTURE_VARIANT_ADD(race, read) { .kind = &of_read };
FIXTURE_VARIANT_ADD(race, read_by_epoll) { .kind = &of_read, .io = "poll" };

FIXTURE_SETUP(race)
{
	kind = variant->kind;
	rt_begin_io(_metadata, variant->io, NULL);
}

FIXTURE_TEARDOWN(race)
{
	if (chan)
		EXPECT_EQ(0, pl_chan_destroy(chan));
	rt_end();
}

/* ---- rounds: all meet before and after ---- */

static atomic_int nr_rounds;		/* fewer if they take long */
static uint64_t last_ns;		/* then the last one begins */
static atomic_int begun, struck;	/* rounds; strikes in this one */
static int nr_strikers;
static pl_task_t waiter;
static int nr_woken_waits, nr_late, nr_interrupted;	/* how they ended */

static void wait_in_rounds(void *arg)
{
	uint64_t seed = 99991, deadline;
	int i, ret;

	for (i = 1; i <= nr_rounds; i++) {
		kind->begin();
		/* Where processors are short a round takes long. */
		if (pl_now() >= last_ns)
			nr_rounds = i;
		struck = 0;
		begun = i;
		deadline = pl_now() + next_random(&seed) % WITHIN_NS;
		ret = kind->wait(deadline);
		if (ret == -ETIMEDOUT)
			EXPECT_LE(deadline, pl_now());
		kind->leave(ret);
		ASSERT_TRUE(UNTIL(struck == nr_strikers));
		nr_woken_waits += ret >= 0;
		nr_late += ret == -ETIMEDOUT;
		nr_interrupted += ret == -EINTR;
		EXPECT_EQ(ret == -EINTR ? 0 : -EINTR, pl_sleep_until(0));
		kind->settle(ret);
	}
}

static void interrupt(void)
{
	EXPECT_EQ(0, pl_interrupt(waiter));
}

struct striker {
	void		(*strike)(void);
	uint64_t	seed;
};

static void strike_in_rounds(void *arg)
{
	struct striker *s = arg;
	int i;

	for (i = 1; i <= nr_rounds; i++) {
		ASSERT_TRUE(UNTIL(begun >= i));
		spin_ns(next_random(&s->seed) % WITHIN_NS);
		s->strike();
		atomic_fetch_add(&struck, 1);
		ASSERT_TRUE(UNTIL(struck == nr_strikers || begun > i));
	}
}

/* The waiter is a task on stack @cls; strikers are tasks and threads. */
static void run_rounds(uint32_t cls)
{
	static struct mixed m[MAX_STRIKES + 1];
	struct striker s[MAX_STRIKES + 1] = { { interrupt, 7777 } };
	int i;

	for (nr_strikers = 1; kind->strikes[nr_strikers - 1]; nr_strikers++)
		s[nr_strikers] = (struct striker){
			kind->strikes[nr_strikers - 1],
			123457U * (uint32_t)nr_strikers,
		};
	nr_rounds = scaled(1000);
	last_ns = pl_now() + stuck_ns() / 2;
	waiter = spawn_as(cls, wait_in_rounds, NULL);
	for (i = 0; i < nr_strikers; i++)
		mixed_start(&m[i], i % 2 == 0, i % 2, strike_in_rounds, &s[i]);
	join(waiter);
	for (i = 0; i < nr_strikers; i++)
		mixed_join(&m[i]);
	EXPECT_EQ(nr_rounds, nr_woken_waits + nr_late + nr_interrupted);
	TH_LOG("woken %d timed out %d interrupted %d", nr_woken_waits, nr_late,
	       nr_interrupted);
}

TEST_F_TIMEOUT(race, tasks_wait_ends_once, 120)
{
	run_rounds(PL_STACK_NORMAL);
}

/* It keeps one worker to itself. */
TEST_F_TIMEOUT(race, workers_wait_ends_once, 120)
{
	start_with(2, 0);
	run_rounds(PL_STACK_WORKER);
}

/* ---- cancel, which is for good: a task a round ---- */

static void wait_to_be_cancelled(void *arg)
{
	int ret = kind->wait(PL_FOREVER);

	/* It may come in between, but never goes away. */
	if (ret == -ECANCELED)
		EXPECT_EQ(-ECANCELED, pl_sleep_until(0));
	*(int *)arg = ret;
}

static void strike_once(void *arg)
{
	struct striker *s = arg;

	s->strike();
}

static int cancel_in_round(int i, uint64_t *seed)
{
	struct striker s[MAX_STRIKES];
	pl_task_t t, others[MAX_STRIKES];
	int k, ret;

	kind->begin();
	t = spawn_as(i % 5 ? PL_STACK_NORMAL : PL_STACK_WORKER,
		     wait_to_be_cancelled, &ret);
	spin_ns(next_random(seed) % 20000);
	if (i % 2)
		pl_cancel(t);
	for (k = 0; kind->strikes[k]; k++) {
		s[k].strike = kind->strikes[k];
		others[k] = spawn(strike_once, &s[k]);
	}
	if (i % 2 == 0) {
		spin_ns(next_random(seed) % 20000);
		pl_cancel(t);
	}
	join(t);
	EXPECT_TRUE(ret >= 0 || ret == -ECANCELED);
	kind->leave(ret);
	while (k)
		join(others[--k]);
	kind->settle(ret);
	return ret < 0;
}

TEST_F_TIMEOUT(race, cancelled_wait_ends_once, 120)
{
	int i, nr = scaled(1000), nr_cancelled = 0;
	uint64_t seed = 4711, end = pl_now() + stuck_ns() / 2;

	for (i = 0; i < nr && pl_now() < end; i++)
		nr_cancelled += cancel_in_round(i, &seed);
	TH_LOG("woken %d cancelled %d", i - nr_cancelled, nr_cancelled);
}

TEST_HARNESS_MAIN
