/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The operations of nomem_ops.h that wait for events of descriptors, which is
 * included before this.
 */
#ifndef SELFTESTS_NOMEM_POLLS_H
#define SELFTESTS_NOMEM_POLLS_H

#include <poll.h>

/*
 * The peer has shut down its side, so a request does not wait for room.  Some
 * times, so that the call that fails is likely to be one of these.
 */
static int op_poll_half_closed(void)
{
	static char much[1 << 16];
	int i, ret = -ETIMEDOUT;

	while (send(fds[0], much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	EXPECT_EQ(0, shutdown(fds[1], SHUT_WR));
	for (i = 0; i < 4 && ret == -ETIMEDOUT; i++)
		ret = pl_poll(fds[0], POLLOUT, in_ms(50));
	return ret == -ETIMEDOUT ? 0 : ret;
}

static int op_poll_many(void)
{
	struct pollfd both[] = { { fds[0], POLLIN, 0 }, { fds[1], POLLIN, 0 } };
	int ret = pl_poll_many(both, 2, in_ms(50));

	return ret == -ETIMEDOUT ? 0 : ret;
}

#endif /* SELFTESTS_NOMEM_POLLS_H */
