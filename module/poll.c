// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parking and polling at a time. The parker is on the wait queues of the file,
 * and on its lot. Either side wakes it; it then looks at both.
 *
 *	parker				waker of the file
 *	triggered = 0	[poll-a]	the file is ready
 *	is the file ready?		triggered = 1
 *	state = TASK_INTERRUPTIBLE	wake
 *	if (triggered)	[poll-b]
 *	    look again
 *	schedule()
 *
 * The right half is the kernel's own __pollwake(), with its barriers. The file
 * is held while the park lasts, as poll(2) does: closing its last descriptor
 * ends neither.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <linux/parklot.h>

#include "feature.h"
#include "inject.h"
#include "poll.h"

static struct parklot_poll *poll_of(struct parklot_wake_source *source)
{
	return container_of(source, struct parklot_poll, source);
}

/*
 * [poll-b] pairs with [poll-a] in is_ready(): `triggered' is read after
 * set_current_state(), a full barrier. Otherwise the file's waker may find the
 * task running, and the task sleeps although the file is ready.
 */
static bool has_fired(struct parklot_wake_source *source)
{
	PARKLOT_INJECT("poll-b");
	return READ_ONCE(poll_of(source)->wait.triggered);
}

static bool is_ready(struct parklot_wake_source *source)
{
	struct parklot_poll *poll = poll_of(source);
	struct poll_wqueues *wait = &poll->wait;
	__poll_t wanted = wait->pt._key;

	/*
	 * [poll-a] pairs with [poll-b] in has_fired(): `triggered' is cleared
	 * before the file is asked. Otherwise an event in between would be
	 * neither in the answer nor in `triggered', and would be lost.
	 */
	smp_store_mb(wait->triggered, 0);
	PARKLOT_INJECT("poll-a");
	return vfs_poll(poll->file, &wait->pt) & wanted;
}

/**
 * parklot_poll_get() - get the file that @park names, if any
 * @poll: on the caller's stack
 * @park: from user space, not checked
 *
 * Return: 0, -EINVAL, -EBADF, or -EOPNOTSUPP.
 */
int parklot_poll_get(struct parklot_poll *poll,
		     const struct parklot_park *park)
{
	poll->file = NULL;
	if (park->pollfd == -1)
		return park->poll_events ? -EINVAL : 0;
	if (!parklot_has(PARKLOT_FEAT_POLLFD))
		return -EOPNOTSUPP;
	if (park->poll_events > U16_MAX)
		return -EINVAL;
	poll->file = fget(park->pollfd);
	if (!poll->file)
		return -EBADF;
	poll->source.has_fired = has_fired;
	poll->source.is_ready = is_ready;
	poll->wait.pt._key = demangle_poll(park->poll_events) |
			     EPOLLERR | EPOLLHUP;
	return 0;
}

/**
 * parklot_poll_start() - ask the file, which wakes the parker from now on
 * @poll: with a file, from parklot_poll_get()
 *
 * Context: may sleep.
 * Return: 0, PARKLOT_POLLED if the file is ready, or -ENOMEM. In each case the
 * caller has to call parklot_poll_stop().
 */
int parklot_poll_start(struct parklot_poll *poll)
{
	struct poll_wqueues *wait = &poll->wait;
	__poll_t wanted = wait->pt._key;
	bool is;

	poll_initwait(wait);
	wait->pt._key = wanted;
	is = is_ready(&poll->source);
	wait->pt._qproc = NULL;
	if (is)
		return PARKLOT_POLLED;
	return wait->error;
}

/**
 * parklot_poll_stop() - leave the file's wait queues
 * @poll: from parklot_poll_start()
 */
void parklot_poll_stop(struct parklot_poll *poll)
{
	poll_freewait(&poll->wait);
}

/**
 * parklot_poll_put() - undo a successful parklot_poll_get()
 * @poll: from parklot_poll_get()
 */
void parklot_poll_put(struct parklot_poll *poll)
{
	if (poll->file)
		fput(poll->file);
}
