// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The floor: threads and bare system calls, nothing in between
 */
#include <linux/futex.h>
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../lib/bench.h"
#include "../lib/parking.h"

#define NR_WAKES	1500
#define NR_WARM		50
#define EVERY_NS	400000
#define SPIN_NS		60000
#define NR_SLEEPS	1000

static _Atomic uint32_t word;
static _Atomic uint64_t due_ns;
static struct hist call, run, late;

static long futex_at(_Atomic uint32_t *at, int op, uint32_t v)
{
	return syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, v, NULL, NULL,
		       0);
}

static void futex(int op, uint32_t v)
{
	futex_at(&word, op, v);
}

static void *wait_on(void *arg)
{
	uint32_t i;

	for (i = 0; i < NR_WAKES; i++) {
		while (atomic_load(&word) == i)
			futex(FUTEX_WAIT, i);
		if (i >= NR_WARM)
			hist_add(&run, now_ns() - atomic_load(&due_ns));
	}
	return arg;
}

static void wake_at(uint64_t ns, bool is_warm)
{
	uint64_t start_ns;

	sleep_until(ns - SPIN_NS);
	while (now_ns() < ns)
		;
	atomic_store(&due_ns, ns);
	atomic_fetch_add(&word, 1);
	start_ns = now_ns();
	futex(FUTEX_WAKE, 1);
	if (is_warm)
		hist_add(&call, now_ns() - start_ns);
}

static void idle(void)
{
	uint64_t first_ns;
	pthread_t t;
	int i;

	if (pthread_create(&t, NULL, wait_on, NULL))
		die("cannot start a thread");
	first_ns = now_ns() + EVERY_NS;
	for (i = 0; i < NR_WAKES; i++)
		wake_at(first_ns + (uint64_t)i * EVERY_NS, i >= NR_WARM);
	pthread_join(t, NULL);
	bench_put_us("call_p50", &call, 50000);
	bench_put_us("run_p50", &run, 50000);
	bench_put_us("run_p99", &run, 99000);
}

static void sleep_often(void)
{
	uint64_t ns;
	int i;

	/* The kernel's default is 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	ns = now_ns();
	for (i = 0; i < NR_SLEEPS; i++) {
		ns += NSEC_PER_MSEC;
		sleep_until(ns);
		hist_add(&late, now_ns() - ns);
	}
	bench_put_us("1ms_p50", &late, 50000);
	bench_put_us("1ms_p99", &late, 99000);
}

/* ---- the device's work ---- */

static struct {
	_Alignas(64) _Atomic uint32_t word;
} lot[PARKING_LOTS + 1];

static void lots_open(bool has_crew)
{
	int i;

	(void)has_crew;
	for (i = 0; i < PARKING_LOTS; i++)
		parking_word[i] = &lot[i].word;
	parking_backlog = &lot[i].word;
}

static void no_join(unsigned int slot)
{
	(void)slot;
}

static void park(unsigned int i, uint32_t seq)
{
	futex_at(&lot[i].word, FUTEX_WAIT, seq);
}

static unsigned int wake(unsigned int nr)
{
	unsigned int i, woken = 0;

	for (i = 0; i < nr; i++)
		woken += (unsigned int)futex_at(&lot[i].word, FUTEX_WAKE, 1);
	return woken;
}

static void wake_park(unsigned int other, unsigned int own, uint32_t seq)
{
	futex_at(&lot[other].word, FUTEX_WAKE, 1);
	futex_at(&lot[own].word, FUTEX_WAIT, seq);
}

/* No other thread sees that this one blocks: it has to tell, each time. */
static void wake_stand_in(void)
{
	parking_signal(0);
	wake(1);
}

static const struct parking by_futex = {
	.open		= lots_open,
	.join		= no_join,
	.park		= park,
	.wake		= wake,
	.wake_park	= wake_park,
	.before_block	= wake_stand_in,
	.empty		= parking_getppid,
};

/* ---- all threads wait on one word, as bthread's workers do ---- */

static void word_open(bool has_crew)
{
	int i;

	(void)has_crew;
	for (i = 0; i < PARKING_LOTS; i++)
		parking_word[i] = &word;
}

static void word_park(unsigned int i, uint32_t seq)
{
	(void)i;
	futex(FUTEX_WAIT, seq);
}

static unsigned int word_wake(unsigned int nr)
{
	return (unsigned int)futex_at(&word, FUTEX_WAKE, nr);
}

static const struct parking by_word = {
	.open	= word_open,
	.park	= word_park,
	.wake	= word_wake,
	.empty	= parking_getppid,
};

/* ---- a word each, woken by requests of io_uring, in one call ---- */

/* Of Linux 6.7, and later than the headers: the opcode, and futex2's flags. */
#define OP_FUTEX_WAKE	52
#define WORD_FLAGS	(2 | FUTEX_PRIVATE_FLAG)

static struct io_uring ring;

static unsigned int ring_wake(unsigned int nr)
{
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	unsigned int i, woken = 0;

	for (i = 0; i < nr; i++) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_rw(OP_FUTEX_WAKE, sqe, WORD_FLAGS, &lot[i].word,
				 0, 1);
		sqe->addr3 = FUTEX_BITSET_MATCH_ANY;
	}
	io_uring_submit_and_wait(&ring, nr);
	for (i = 0; i < nr && !io_uring_peek_cqe(&ring, &cqe); i++) {
		if (cqe->res == -EINVAL)
			exit(0);	/* an older kernel */
		if (cqe->res < 0) {
			fprintf(stderr, "futex: a wake by io_uring: %s\n",
				strerror(-cqe->res));
			exit(1);
		}
		woken += (unsigned int)cqe->res;
		io_uring_cqe_seen(&ring, cqe);
	}
	return woken;
}

static void ring_lots_open(bool has_crew)
{
	if (io_uring_queue_init(PARKING_LOTS, &ring, 0))
		exit(0);
	lots_open(has_crew);
	ring_wake(1);
}

static const struct parking by_ring = {
	.open	= ring_lots_open,
	.park	= park,
	.wake	= ring_wake,
	.empty	= parking_getppid,
};

static void wakes(void)
{
	parking_wakes(&by_futex);
}

static void wakes_of_a_word(void)
{
	parking_wakes(&by_word);
}

static void wakes_by_a_ring(void)
{
	parking_wakes(&by_ring);
}

static void round_trips(void)
{
	parking_round_trips(&by_futex, "wake_park");
}

static void blocks(void)
{
	parking_blocks(&by_futex);
}

int main(int argc, char **argv)
{
	static const struct bench_case idle_wake[] = {
		{ "idle", idle },
		{ NULL, NULL },
	};
	static const struct bench_case sleep[] = {
		{ "1ms", sleep_often },
		{ NULL, NULL },
	};
	static const struct bench_case device[] = {
		{ "wakes", wakes },
		{ "round_trips", round_trips },
		{ "blocks", blocks },
		{ NULL, NULL },
	};
	static const struct bench_case one_word[] = {
		{ "wakes", wakes_of_a_word },
		{ NULL, NULL },
	};
	static const struct bench_case by_requests[] = {
		{ "wakes", wakes_by_a_ring },
		{ NULL, NULL },
	};
	static const struct bench_subject subjects[] = {
		{ "wake", idle_wake },
		{ "sleep", sleep },
		{ "device", device },
		{ "word", one_word },
		{ "ring", by_requests },
		{ NULL, NULL },
	};

	return bench_main_of(argc, argv, subjects);
}
