/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A read may be ended by its completion, its deadline and an interrupt, all in
 * the same moment, and a sleep by the latter two.  It ends once, for one of
 * them; no byte is lost, and an interrupt without effect is kept.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "wait_end.h"

#include <sys/socket.h>

RT_IO_FIXTURE(io_race)

#define WITHIN_NS	80000

/*
 * A round: the waiter waits, and at about the same time the attackers strike.
 * They meet before and after, so that whatever they did is done.
 */
struct match {
	int		fd[2];
	atomic_int	begun, struck;	/* rounds; strikes in this one */
	int		nr_attackers;
	atomic_int	nr_rounds;	/* fewer if they take long */
	uint64_t	last_ns;	/* then the last one begins */
	pl_task_t	waiter;
	atomic_int	is_interrupted;	/* in this round */
	int		nr_by[NR_WAIT_ENDS];	/* as the waiter says */
};

static struct match match;

/* The byte of the round is read, now or before. */
static void check_byte(struct match *m, int ret)
{
	char c;

	if (ret == 1) {
		EXPECT_EQ(-1, recv(m->fd[0], &c, 1, MSG_DONTWAIT));
		EXPECT_EQ(EAGAIN, errno);
	} else {
		EXPECT_EQ(1, recv(m->fd[0], &c, 1, MSG_DONTWAIT));
	}
}

/* An interrupt that did not end the round's wait ends the next. */
static void check_interrupt(struct match *m, int ret)
{
	int want = m->is_interrupted && ret != -EINTR ? -EINTR : 0;

	EXPECT_EQ(want, pl_sleep_until(0));
}

static uint64_t begin_round(struct match *m, int i, uint64_t *seed)
{
	uint64_t ns = next_random(seed) % WITHIN_NS;

	if (pl_now() >= m->last_ns)
		m->nr_rounds = i;
	atomic_store(&m->struck, 0);
	atomic_store(&m->is_interrupted, 0);
	atomic_store(&m->begun, i);
	return pl_now() + ns;
}

static void end_round(struct match *m, int ret)
{
	ASSERT_TRUE(UNTIL(m->struck == m->nr_attackers));
	m->nr_by[wait_end_of(ret)]++;
	check_interrupt(m, ret);
}

static void read_in_rounds(void *arg)
{
	struct match *m = arg;
	uint64_t seed = 99991, deadline;
	int i, ret;
	char c;

	for (i = 1; i <= m->nr_rounds; i++) {
		deadline = begin_round(m, i, &seed);
		/* Every other one without: a wait of another kind. */
		if (i % 2)
			ret = (int)pl_read_until(m->fd[0], &c, 1, deadline);
		else
			ret = (int)pl_read(m->fd[0], &c, 1);
		end_round(m, ret);
		check_byte(m, ret);
	}
}

static void sleep_in_rounds(void *arg)
{
	struct match *m = arg;
	uint64_t seed = 99991, deadline;
	int i, ret;

	for (i = 1; i <= m->nr_rounds; i++) {
		deadline = begin_round(m, i, &seed);
		ret = pl_sleep_until(deadline);
		if (!ret) {
			EXPECT_LE(deadline, pl_now());
			ret = -ETIMEDOUT;
		}
		end_round(m, ret);
	}
}

struct attacker {
	void		(*strike)(struct match *m);
	uint64_t	seed;
};

static void attack(void *arg)
{
	struct attacker *a = arg;
	int i;

	for (i = 1; i <= match.nr_rounds; i++) {
		ASSERT_TRUE(UNTIL(match.begun >= i));
		spin_ns(next_random(&a->seed) % WITHIN_NS);
		a->strike(&match);
		atomic_fetch_add(&match.struck, 1);
		ASSERT_TRUE(UNTIL(match.struck == match.nr_attackers ||
				  match.begun > i));
	}
}

static void *attack_thread(void *arg)
{
	attack(arg);
	return NULL;
}

static void strike_write(struct match *m)
{
	ASSERT_EQ(1, write(m->fd[1], "x", 1));
}

static void strike_interrupt(struct match *m)
{
	atomic_store(&m->is_interrupted, 1);
	EXPECT_EQ(0, pl_interrupt(m->waiter));
}

static struct attacker writer = { strike_write, 7777 };
static struct attacker interrupter = { strike_interrupt, 123457 };

/* The machine may be so busy that they take longer than a test has. */
static void set_rounds(int nr_rounds)
{
	match.nr_rounds = nr_rounds;
	match.last_ns = pl_now() + 2 * stuck_ns();
}

static void report(void)
{
	int *nr_by = match.nr_by;

	EXPECT_EQ(match.nr_rounds, nr_by[BY_WAKE] + nr_by[BY_DEADLINE] +
				   nr_by[BY_INTERRUPT]);
	TH_LOG("done %d timed out %d interrupted %d", nr_by[BY_WAKE],
	       nr_by[BY_DEADLINE], nr_by[BY_INTERRUPT]);
}

static void run_reads(uint32_t cls, int nr_rounds)
{
	pthread_t thread;
	pl_task_t task;

	set_rounds(nr_rounds);
	match.nr_attackers = 2;
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				match.fd));
	match.waiter = spawn_as(cls, read_in_rounds, &match);
	ASSERT_EQ(0, pthread_create(&thread, NULL, attack_thread, &writer));
	task = spawn(attack, &interrupter);
	join(match.waiter);
	join(task);
	pthread_join(thread, NULL);
	close(match.fd[0]);
	close(match.fd[1]);
	report();
}

TEST_F_TIMEOUT(io_race, completion_deadline_and_interrupt_end_a_read_once, 120)
{
	run_reads(PL_STACK_NORMAL, scaled(3000));
}

TEST_F_TIMEOUT(io_race, completion_and_interrupt_end_a_workers_read_once, 120)
{
	/* It keeps one worker to itself. */
	start_with(2, 0);
	run_reads(PL_STACK_WORKER, scaled(1000));
}

TEST_F_TIMEOUT(io_race, deadline_and_interrupt_end_a_sleep_once, 120)
{
	pthread_t thread;

	set_rounds(scaled(3000));
	match.nr_attackers = 1;
	match.waiter = spawn(sleep_in_rounds, &match);
	ASSERT_EQ(0, pthread_create(&thread, NULL, attack_thread,
				    &interrupter));
	join(match.waiter);
	pthread_join(thread, NULL);
	report();
}

TEST_HARNESS_MAIN
