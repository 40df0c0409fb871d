// SPDX-License-Identifier: GPL-2.0-only
/*
 * PARK and WAKE as commands of io_uring. A parked command is a sleeper without
 * a task: the thread that removes it from the lot has it completed by the task
 * that submitted it.
 *
 * Four may end it: a waker (or a close), the timeout, a cancel, and the
 * submission itself, which may find another seq. The one that removes it from
 * the lot, under the lot's lock as in lot.c, or fails to list it, completes it,
 * and no other does.
 *
 * A task submits with the ring's lock held, io-wq (IOSQE_ASYNC) without: then
 * the cancel may come before the command is on the lot. The cancel leaves its
 * reason there, under the lot's lock, and the submission completes the command:
 *
 *	submission by io-wq		cancel, with the ring's lock
 *	mark cancelable
 *	under the lot's lock: [ring-c]	under the lot's lock:
 *	    if (reason) refuse		    if (is_listed) take off
 *	    is_listed = true		    reason = -ECANCELED
 *	if (refused)			if (taken off)
 *	    complete			    complete, or have the task do
 *
 *	submission			waker, timeout or cancel
 *	onto the lot			off the lot, reason	[ring-a]
 *	start the timeout
 *	if (reason)	[ring-b]	that or the submitter's task:
 *	    cancel the timeout		    cancel the timeout
 *	put				    done; put
 *
 * The submission may start the timeout after the task has cancelled it. But
 * then the reason was set before the start, so the submission sees it and
 * cancels. The command is done before its request is freed: a cancel finds the
 * request by the command, holds the ring's lock, and does not find a command
 * that is done. A pending command holds the file: so the close of a descriptor
 * ends it, not the release.
 */
#include <linux/io_uring/cmd.h>
#include <linux/io_uring_types.h>
#include <linux/parklot.h>
#include <linux/percpu-refcount.h>
#include <linux/refcount.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "close.h"
#include "compat.h"
#include "feature.h"
#include "inject.h"
#include "lot.h"
#include "space.h"
#include "timeout.h"
#include "uaccess.h"
#include "uring.h"
#include "wake.h"

/* A parked command. I: set at init. */
struct parklot_request {
	struct parklot_sleeper	sleeper;
	struct parklot_lot	*lot;		/* I: where it parks */
	struct io_uring_cmd	*cmd;		/* I: to be completed */
	struct parklot_timeout	timeout;
	bool			has_timeout;	/* I: has a deadline */
	u64			cancel_jiffies;	/* ring's lock: of the last */
	refcount_t		refs;		/* submission, completion */
};

/* A command's own memory; its SQE may be reused after the submission. */
struct parklot_pdu {
	struct parklot_request	*request;
};

static struct parklot_pdu *pdu_of(struct io_uring_cmd *cmd)
{
	return io_uring_cmd_to_pdu(cmd, struct parklot_pdu);
}

static void request_put(struct parklot_request *request)
{
	if (refcount_dec_and_test(&request->refs))
		kfree(request);
}

/*
 * Completes the command; called for the one that ended it. [ring-a] pairs with
 * [ring-b] in request_park(): the reason was set before the timeout is
 * cancelled here. Otherwise a submission that starts the timeout after this
 * cancel could miss the reason, and leave a timeout of a freed request.
 */
static void request_done(struct parklot_request *request, int res,
			 unsigned int issue_flags)
{
	if (request->has_timeout)
		parklot_timeout_cancel(&request->timeout);
	PARKLOT_INJECT("ring-a");
	uring_done(request->cmd, res, issue_flags);
	request_put(request);
}

/* Does the result go to a ring that no thread can read, now or soon? */
static bool is_result_lost(struct io_uring_cmd *cmd)
{
	return percpu_ref_is_dying(&cmd_to_io_kiocb(cmd)->ctx->refs) ||
	       fatal_signal_pending(current);
}

static void request_done_by_task(struct io_uring_cmd *cmd,
				 unsigned int issue_flags)
{
	struct parklot_request *request = pdu_of(cmd)->request;

	if (request->sleeper.reason == PARKLOT_WOKEN && is_result_lost(cmd))
		parklot_lot_pass_on(request->lot);
	request_done(request, request->sleeper.reason, issue_flags);
}

URING_CALLBACK(done_by_task, request_done_by_task)

static void request_awake(struct parklot_sleeper *sleeper)
{
	struct parklot_request *request =
		container_of(sleeper, struct parklot_request, sleeper);

	io_uring_cmd_complete_in_task(request->cmd, done_by_task);
}

static struct parklot_request *request_of(struct parklot_timeout *timeout)
{
	return container_of(timeout, struct parklot_request, timeout);
}

static bool request_claim_late(struct parklot_timeout *timeout)
{
	struct parklot_request *request = request_of(timeout);

	return parklot_lot_give_up(request->lot, &request->sleeper,
				   PARKLOT_TIMEDOUT);
}

static void request_end_late(struct parklot_timeout *timeout)
{
	io_uring_cmd_complete_in_task(request_of(timeout)->cmd, done_by_task);
}

static const struct parklot_timeout_ops request_timeout_ops = {
	.claim	= request_claim_late,
	.end	= request_end_late,
};

static struct parklot_request *request_create(struct io_uring_cmd *cmd,
					      struct parklot_lot *lot,
					      bool has_timeout)
{
	struct parklot_request *request;

	request = kzalloc(sizeof(*request), PARKLOT_GFP);
	if (!request)
		return NULL;
	request->sleeper.awake = request_awake;
	request->lot = lot;
	request->cmd = cmd;
	request->has_timeout = has_timeout;
	request->cancel_jiffies = get_jiffies_64() - 1;
	if (has_timeout)
		parklot_timeout_init(&request->timeout, &request_timeout_ops);
	refcount_set(&request->refs, 2);
	pdu_of(cmd)->request = request;
	return request;
}

/* Parks the command: from here on it completes later, or has completed. */
static int request_park(struct parklot_request *request,
			const struct parklot_park_args *args,
			unsigned int issue_flags)
{
	int reason;

	io_uring_cmd_mark_cancelable(request->cmd, issue_flags);
	PARKLOT_INJECT("ring-c");
	reason = parklot_lot_enlist(request->lot, &request->sleeper, args);
	if (reason) {
		request_done(request, reason, issue_flags);
		goto out;
	}
	if (request->has_timeout) {
		PARKLOT_INJECT("ring-b");
		parklot_timeout_start(&request->timeout, args->deadline);
		/*
		 * [ring-b] pairs with [ring-a] in request_done(): the timeout
		 * is started before the reason is read. Otherwise a command
		 * that is done would leave its timeout in the queue.
		 */
		if (smp_load_acquire(&request->sleeper.reason))
			parklot_timeout_cancel(&request->timeout);
	}
out:
	request_put(request);
	return -EIOCBQUEUED;
}

/*
 * Is the file a registered one? Its ring can wake the command even when no
 * descriptor is left. If the SQE has changed since, the command stays until its
 * ring ends, at worst.
 */
static bool is_registered(const struct io_uring_cmd *cmd)
{
	return READ_ONCE(cmd->sqe->flags) & IOSQE_FIXED_FILE;
}

static int uring_park(struct io_uring_cmd *cmd, struct parklot_lots *lots,
		      const void __user *upark, unsigned int issue_flags)
{
	struct parklot_request *request;
	struct parklot_park_args args = {};
	struct parklot_lot *lot;
	struct parklot_park park;

	if (copy_from_user(&park, upark, sizeof(park)))
		return -EFAULT;
	lot = parklot_lots_get(lots, park.lot);
	if (!lot || park.flags & ~PARKLOT_PARK_FIFO || park.pollfd != -1 ||
	    park.poll_events)
		return -EINVAL;
	args.seq = park.expected_seq;
	args.fifo = park.flags & PARKLOT_PARK_FIFO;
	args.deadline = parklot_deadline(park.deadline_ns);
	/*
	 * [table-b] pairs with [table-a] in parklot_lot_interrupt(): the number
	 * is read before the table. Otherwise a close in between would be
	 * missed in both, and no thread could wake the command.
	 */
	args.nr_interrupts = smp_load_acquire(&lot->nr_interrupts);
	if (!is_registered(cmd) &&
	    parklot_close_was_last(lot, args.nr_interrupts, cmd->file))
		return PARKLOT_INTERRUPTED;
	PARKLOT_INJECT("table-b");
	if (READ_ONCE(*lot->seq) != args.seq)
		return PARKLOT_CHANGED;
	if (args.deadline != KTIME_MAX && args.deadline <= ktime_get())
		return PARKLOT_TIMEDOUT;
	request = request_create(cmd, lot, args.deadline != KTIME_MAX);
	if (!request)
		return -ENOMEM;
	return request_park(request, &args, issue_flags);
}

/*
 * A ring with DEFER_TASKRUN belongs to one task: others leave it the completion
 * of commands.
 */
static bool has_one_task(struct io_uring_cmd *cmd)
{
	return cmd_to_io_kiocb(cmd)->ctx->flags & IORING_SETUP_DEFER_TASKRUN;
}

/*
 * Called at the end of the ring, or of the process, with the ring's lock held.
 * io_uring may cancel a command more than once, and before it is on its lot:
 * [ring-c]. At the end of the ring a kworker does so until the command has
 * completed, without a pause: so that does not wait for the task that submitted
 * it, which may be stopped. Where it has to, since that task is to complete the
 * command, there is a pause once all commands were cancelled, unless that took
 * a tick.
 */
static int uring_cancel(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct parklot_request *request = pdu_of(cmd)->request;

	/* io_uring goes through all commands of a ring without a pause. */
	cond_resched();
	if (!parklot_lot_give_up(request->lot, &request->sleeper, -ECANCELED)) {
		if (current->flags & PF_KTHREAD &&
		    !time_after64(get_jiffies_64(), request->cancel_jiffies))
			schedule_timeout_uninterruptible(1);
		request->cancel_jiffies = get_jiffies_64();
		return 0;
	}
	if (has_one_task(cmd))
		io_uring_cmd_complete_in_task(cmd, done_by_task);
	else
		request_done(request, -ECANCELED, issue_flags);
	return 0;
}

/**
 * parklot_uring_cmd() - do a command of io_uring
 * @cmd:	 on a file of /dev/parklot
 * @issue_flags: io_uring's
 *
 * Return: the result, or -EIOCBQUEUED if the command completes later.
 */
int parklot_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct parklot_space *space = cmd->file->private_data;
	const struct parklot_uring *area;
	struct parklot_lots *lots;
	void __user *uarg;

	if (issue_flags & IO_URING_F_CANCEL)
		return uring_cancel(cmd, issue_flags);
	if (!parklot_space_is_own(space))
		return -EIO;
	if (!parklot_has(PARKLOT_FEAT_URING))
		return -EOPNOTSUPP;
	lots = parklot_space_lots(space);
	if (!lots)
		return -ENXIO;
	area = (const void *)cmd->sqe->cmd;
	if (cmd->flags & IORING_URING_CMD_MASK || READ_ONCE(area->reserved))
		return -EINVAL;
	uarg = u64_to_user_ptr(READ_ONCE(area->arg));
	switch (cmd->cmd_op) {
	case PARKLOT_IOC_PARK:
		return uring_park(cmd, lots, uarg, issue_flags);
	case PARKLOT_IOC_WAKE:
		return parklot_wake_user(lots, uarg,
					 sizeof(struct parklot_wake));
	default:
		return -ENOTTY;
	}
}
