// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * One thread with one epoll, which runs all that is due: no other thread is
 * ever woken
 */
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>

#include "../lib/trickle.h"

static int timer_open(void)
{
	const struct itimerspec every = {
		.it_interval = { .tv_nsec = TRICKLE_NS },
		.it_value = { .tv_nsec = TRICKLE_NS },
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd < 0 || timerfd_settime(fd, 0, &every, NULL))
		die("timerfd: %s", strerror(errno));
	return fd;
}

/* Rounds that are late are made up for, as by the other peers. */
static uint64_t wait_round(int epfd, int timer)
{
	struct epoll_event ev;
	uint64_t nr;

	if (epoll_wait(epfd, &ev, 1, -1) != 1 ||
	    read(timer, &nr, sizeof(nr)) != sizeof(nr))
		die("epoll_wait: %s", strerror(errno));
	return nr;
}

static void trickle(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	const int epfd = epoll_create1(EPOLL_CLOEXEC), timer = timer_open();
	uint64_t left = TRICKLE_ROUNDS, nr, i;

	prctl(PR_SET_TIMERSLACK, 1UL);
	if (epfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, timer, &ev))
		die("epoll: %s", strerror(errno));
	trickle_begin();
	while (left) {
		nr = wait_round(epfd, timer);
		nr = nr < left ? nr : left;
		left -= nr;
		for (i = 0; i < nr * TRICKLE_TASKS; i++)
			trickle_task();
	}
	trickle_end();
	close(timer);
	close(epfd);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "trickle", trickle },
		{ NULL, NULL },
	};
	static const struct bench_subject subjects[] = {
		{ "trickle", cases },
		{ NULL, NULL },
	};

	return bench_main_of(argc, argv, subjects);
}
