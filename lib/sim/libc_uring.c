/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * liburing's calls, and the system's of a ring.  A filter of calls, which a
 * process may get from seccomp(2), holds as well: each call is made of the real
 * kernel, with nothing to do.
 */
#include "sim/io.h"
#include "sim/sim.h"
#include "sim/state.h"
#include "sim/uring.h"
#include "sim/uring_op.h"

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REGISTER_SYNC_CANCEL	24	/* Linux 6.0; headers may be older */

/* ---- filters ---- */

enum call { ENTER, SETUP, REGISTER, NR_CALLS };

/* By a filter that was there when the simulation began; it does not count. */
static int was_filtered[NR_CALLS];

static int errno_of(long nr, long a0, long a1, long a3)
{
	return PL__SIM_REAL(syscall)(nr, a0, a1, 0L, a3, 0L, 0L) < 0 ? errno :
								      0;
}

/* The same for two calls that fail for different reasons, or 0. */
static int error_of_filter(enum call call)
{
	struct io_uring_params p = { .resv = { 1 } };
	int one, two;

	switch (call) {
	case ENTER:
		one = errno_of(SYS_io_uring_enter, -1, 0, 0);
		two = errno_of(SYS_io_uring_enter, -1, 0, INT_MIN);
		break;
	case SETUP:
		one = errno_of(SYS_io_uring_setup, 1, 0, 0);
		two = errno_of(SYS_io_uring_setup, 1, (long)&p, 0);
		break;
	default:
		one = errno_of(SYS_io_uring_register, -1, INT_MAX, 0);
		two = one == EBADF || one == EINVAL ? 0 : one;
		break;
	}
	return one == two ? one : 0;
}

/* 0, or what a filter has the call return: -errno. */
static int filtered(enum call call)
{
	int err = pl__sim_is_machine() ? 0 : error_of_filter(call);

	return err == was_filtered[call] ? 0 : -err;
}

void pl__sim_uring_begin(void)
{
	int i;

	for (i = 0; i < NR_CALLS; i++)
		was_filtered[i] = error_of_filter((enum call)i);
}

/* ---- system calls ---- */

/* @r may be NULL. */
static int enter(struct pl__sim_ring *r, unsigned int most)
{
	int err;

	pl__sim_point("io_uring_enter");
	err = filtered(ENTER);
	if (!err && !r)
		err = -EBADF;
	return err ? err : pl__sim_ring_enter(r, most);
}

long pl__sim_uring_enter(int fd, unsigned int most)
{
	return enter(pl__sim_ring_of_fd(fd), most);
}

/* Only to ask: rings are had by liburing. */
long pl__sim_uring_setup(void)
{
	int err = pl__sim.has_uring ? filtered(SETUP) : -ENOSYS;

	return err ? err : -EINVAL;
}

long pl__sim_uring_register(int fd, unsigned int op, const void *arg)
{
	struct pl__sim_ring *r = pl__sim_ring_of_fd(fd);
	const uint64_t *data = arg;	/* the first of its members */
	int err;

	pl__sim_point("io_uring_register");
	err = filtered(REGISTER);
	if (err || !r || op != REGISTER_SYNC_CANCEL)
		return err ? err : r ? -EINVAL : -EBADF;
	return pl__sim_ring_cancel(r, *data);
}

/* ---- liburing ---- */

PL__SIM_API int io_uring_submit_and_get_events(struct io_uring *uring)
{
	struct pl__sim_ring *r = pl__sim_ring_of(uring);

	return r ? enter(r, UINT_MAX) :
		   PL__SIM_REAL(io_uring_submit_and_get_events)(uring);
}

PL__SIM_API int io_uring_submit(struct io_uring *uring)
{
	struct pl__sim_ring *r = pl__sim_ring_of(uring);

	return r ? enter(r, UINT_MAX) : PL__SIM_REAL(io_uring_submit)(uring);
}

PL__SIM_API int io_uring_submit_and_wait_timeout(struct io_uring *uring,
						 struct io_uring_cqe **cqe,
						 unsigned int nr,
						 struct __kernel_timespec *ts,
						 sigset_t *mask)
{
	struct pl__sim_ring *r = pl__sim_ring_of(uring);
	uint64_t until = PL__SIM_FOREVER;
	int ret;

	if (!r)
		return PL__SIM_REAL(io_uring_submit_and_wait_timeout)(uring,
				cqe, nr, ts, mask);
	ret = enter(r, UINT_MAX);
	if (ret < 0)
		return ret;
	if (ts)
		until = pl__sim.now_ns + pl__sim_kernel_ns(ts);
	/* Where something was submitted, the call waits again. */
	if (!ret && pl__sim_one_in(pl__sim.interrupt_in))
		return -EINTR;
	return pl__sim_ring_wait(r, until) ? ret : -ETIME;
}

PL__SIM_API int io_uring_register_probe(struct io_uring *uring,
					struct io_uring_probe *p,
					unsigned int nr)
{
	unsigned int i;

	if (!pl__sim_ring_of(uring))
		return PL__SIM_REAL(io_uring_register_probe)(uring, p, nr);
	for (i = 0; i < nr; i++) {
		p->ops[i].op = (unsigned char)i;
		p->ops[i].flags = pl__sim_op_is_known(i) ?
				  IO_URING_OP_SUPPORTED : 0;
	}
	p->last_op = (unsigned char)(nr - 1);
	p->ops_len = (unsigned char)nr;
	return 0;
}

PL__SIM_API int io_uring_queue_init(unsigned int entries,
				    struct io_uring *uring, unsigned int flags)
{
	unsigned int size = 1;
	int err;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(io_uring_queue_init)(entries, uring, flags);
	err = (int)pl__sim_uring_setup();
	if (err != -EINVAL)
		return err;
	while (size < entries)
		size *= 2;
	return pl__sim_ring_open(uring, size, flags);
}

PL__SIM_API int io_uring_queue_init_params(unsigned int entries,
					   struct io_uring *uring,
					   struct io_uring_params *params)
{
	if (pl__sim_is_on)
		return -ENOSYS;
	return PL__SIM_REAL(io_uring_queue_init_params)(entries, uring, params);
}

PL__SIM_API void io_uring_queue_exit(struct io_uring *uring)
{
	struct pl__sim_ring *r = pl__sim_ring_of(uring);

	if (r)
		pl__sim_ring_close(r);
	else
		PL__SIM_REAL(io_uring_queue_exit)(uring);
}
