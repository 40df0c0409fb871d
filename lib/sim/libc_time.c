/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* Clocks and sleeps. */
#include "sim/sim.h"

#include <errno.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* 2020-01-01, at the start of the monotonic clock. */
#define EPOCH_S		1577836800ULL

/* The clock of another thread's processor time has its number in it. */
static int cpu_clock(clockid_t clock, struct timespec *ts)
{
	struct pl__sim_thread *t =
		pl__sim_thread_by_tid((int)(~(uint32_t)clock >> 3 &
					    0x1fffffff));

	if (!t) {
		errno = EINVAL;
		return -1;
	}
	pl__sim_point("clock of a thread");
	*ts = pl__sim_timespec(pl__sim_cpu_ns(t));
	return 0;
}

PL__SIM_API int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(clock_gettime)(clock, ts);
	if (clock < 0)
		return cpu_clock(clock, ts);
	if (clock == CLOCK_THREAD_CPUTIME_ID) {
		*ts = pl__sim_timespec(pl__sim_cpu_ns(pl__sim_self()));
	} else if (clock == CLOCK_PROCESS_CPUTIME_ID) {
		*ts = pl__sim_timespec(pl__sim_cpu_ns_all());
	} else {
		*ts = pl__sim_timespec(pl__sim_now());
		if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
			ts->tv_sec += EPOCH_S;
	}
	return 0;
}

PL__SIM_API int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(gettimeofday)(tv, zone);
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

PL__SIM_API time_t time(time_t *out)
{
	struct timespec ts;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(time)(out);
	clock_gettime(CLOCK_REALTIME, &ts);
	if (out)
		*out = ts.tv_sec;
	return ts.tv_sec;
}

static int sleep_ns(uint64_t ns)
{
	pl__sim_sleep("sleep", NULL, NULL, NULL, pl__sim_now() + ns);
	return 0;
}

PL__SIM_API int nanosleep(const struct timespec *ts, struct timespec *left)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(nanosleep)(ts, left);
	return sleep_ns(pl__sim_ns(ts));
}

PL__SIM_API int clock_nanosleep(clockid_t clock, int flags,
				const struct timespec *ts,
				struct timespec *left)
{
	struct timespec now;
	uint64_t ns, at;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(clock_nanosleep)(clock, flags, ts, left);
	ns = pl__sim_ns(ts);
	if (flags & TIMER_ABSTIME) {
		clock_gettime(clock, &now);
		at = pl__sim_ns(&now);
		ns = ns > at ? ns - at : 0;
	}
	return sleep_ns(ns);
}

PL__SIM_API int usleep(useconds_t us)
{
	return pl__sim_is_on ? sleep_ns(us * 1000ULL) :
			       PL__SIM_REAL(usleep)(us);
}

PL__SIM_API unsigned int sleep(unsigned int s)
{
	return pl__sim_is_on ? (unsigned int)sleep_ns(s * PL__SIM_NS_PER_SEC) :
			       PL__SIM_REAL(sleep)(s);
}
