/* SPDX-License-Identifier: GPL-2.0-only */
/* Workers on a simulated machine whose processors others use as well. */
#define SIM_ITSELF
#include "machine.h"

#include <sys/epoll.h>
#include <sys/socket.h>

MACHINE_FIXTURE(crowded)

/* ---- workers that need not be asked ---- */

#define NR_BLOCKED	16
#define NR_BLOCKS	20

static void block(void *arg)
{
	int i;

	for (i = 0; i < NR_BLOCKS; i++)
		pl_sim_block(20 * NSEC_PER_MSEC);
}

static void block_in_crowd(void *arg)
{
	uint32_t i, nr_spares = 0;
	struct pl__worker *w;
	pl_task_t t[NR_BLOCKED];

	unsetenv("PARKLOT_WORKERS");
	ASSERT_EQ(0, pl_runtime_start(NULL));
	for (i = 0; i < NR_BLOCKED; i++)
		t[i] = spawn(block, NULL);
	pl_sleep(NSEC_PER_SEC / 4);
	for (i = 0; i < load_acquire(&pl__rt.main.nr_started); i++) {
		w = pl__rt.main.workers[i];
		if (!pl__is_spare(w))
			continue;
		nr_spares++;
		EXPECT_EQ(0, w->sysmon.elastic_lacked_ns);
	}
	EXPECT_LT(0, nr_spares);
	for (i = 0; i < NR_BLOCKED; i++)
		join(t[i]);
	EXPECT_EQ(0, pl_runtime_stop());
}

/* It takes the opening of a file to learn how long one has waited. */
TEST_F(crowded, waits_of_spares_are_not_read)
{
	run_with(1, block_in_crowd, NULL);
}

/* ---- a client on the same machine ---- */

#define NR_CONNECTIONS	64
#define SHARE_NS	(5 * NSEC_PER_USEC)	/* of each side */
#define LATE_NS		NSEC_PER_MSEC

/* So long it runs before it counts, too; so many of 100 answers are late. */
struct load {
	uint64_t	length_ns, most_late;
};

static int fds[NR_CONNECTIONS][2];
static uint64_t sent_ns[NR_CONNECTIONS], begin_ns, end_ns, nr_answers, nr_late;

static void answer(void *fd)
{
	char byte;

	do
		pl_sim_compute(SHARE_NS);
	while (pl_recv((int)(uintptr_t)fd, &byte, 1, 0) == 1 &&
	       pl_send((int)(uintptr_t)fd, &byte, 1, 0) == 1);
}

static void request(int i)
{
	uint64_t now = pl_now();
	char byte = 0;

	if (sent_ns[i])
		EXPECT_EQ(1, read(fds[i][1], &byte, 1));
	if (sent_ns[i] > begin_ns) {
		nr_answers++;
		nr_late += now - sent_ns[i] > LATE_NS;
	}
	pl_sim_compute(SHARE_NS);
	sent_ns[i] = pl_now();
	EXPECT_EQ(1, write(fds[i][1], &byte, 1));
}

/* A client that waits for answers, and sends the next request for each. */
static void *be_client(void *arg)
{
	struct epoll_event events[NR_CONNECTIONS];
	int i, nr, epfd = epoll_create1(0);

	for (i = 0; i < NR_CONNECTIONS; i++) {
		events[0].events = EPOLLIN;
		events[0].data.u32 = (uint32_t)i;
		EXPECT_EQ(0, epoll_ctl(epfd, EPOLL_CTL_ADD, fds[i][1], events));
		request(i);
	}
	while (pl_now() < end_ns) {
		nr = epoll_wait(epfd, events, NR_CONNECTIONS, -1);
		for (i = 0; i < nr; i++)
			request((int)events[i].data.u32);
	}
	for (i = 0; i < NR_CONNECTIONS; i++)
		close(fds[i][1]);
	close(epfd);
	return arg;
}

static void serve_client(void *arg)
{
	const struct load *load = arg;
	pthread_t client;
	int i;

	begin_ns = pl_now() + load->length_ns;
	end_ns = begin_ns + load->length_ns;
	unsetenv("PARKLOT_WORKERS");
	ASSERT_EQ(0, pl_runtime_start(NULL));
	for (i = 0; i < NR_CONNECTIONS; i++) {
		EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]));
		spawn(answer, (void *)(uintptr_t)fds[i][0]);
	}
	pthread_create(&client, NULL, be_client, NULL);
	pthread_join(client, NULL);
	EXPECT_EQ(0, pl_runtime_stop());
	TH_LOG("%llu answers, %llu late", (unsigned long long)nr_answers,
	       (unsigned long long)nr_late);
	EXPECT_LE(1000, nr_answers);
	EXPECT_GE(nr_answers * load->most_late, nr_late * 100);
}

/*
 * Two take a little more requests than one beside the client, and what comes to
 * the one that has no processor waits for a slice of the others.
 */
TEST_F(crowded, workers_leave_the_client_a_processor)
{
	struct load load = { NSEC_PER_SEC / 10, 1 };

	run_with(2, serve_client, &load);
}

/*
 * All wait for the next period, and all answers are late then, which is no
 * fault of the one that is tried.
 */
TEST_F(crowded, workers_leave_it_one_under_a_quota)
{
	struct load load = { NSEC_PER_SEC / 2, 2 };

	set_env("SIM_QUOTA", 150);
	run_with(2, serve_client, &load);
}

TEST_HARNESS_MAIN
