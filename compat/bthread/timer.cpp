// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Timers of bthread.h: parklot's.  bthread::TimerThread, for its users in C++,
 * is bRPC's own class, and has a thread of its own.
 */
#include "bthread/errno.h"
#include "bthread/unstable.h"
#include "deadline.h"
#include "keep_errno.h"
#include "runtime.h"

extern "C" {

int bthread_timer_add(bthread_timer_t *id, timespec abstime,
		      void (*on_timer)(void *), void *arg)
{
	bthread::KeepErrno keep;
	int err = bthread::runtime_start();

	if (!err)
		err = pl_timer_add(id, bthread::to_deadline(&abstime),
				   on_timer, arg);
	return err == -ECANCELED ? ESTOP : -err;
}

int bthread_timer_del(bthread_timer_t id)
{
	switch (pl_timer_del(id)) {
	case 0:
		return 0;
	case -EBUSY:
		return 1;
	}
	return EINVAL;
}

}  // extern "C"
