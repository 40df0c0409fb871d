// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device's calls: from descriptors to spaces. All of a call is checked
 * before anything is done. Outputs are proved writable by writing back their
 * old values, so that a bad pointer is noticed while nothing has happened yet,
 * and a call that fails changes nothing.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/parklot.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "close.h"
#include "compat.h"
#include "dev.h"
#include "feature.h"
#include "inject.h"
#include "poll.h"
#include "pool.h"
#include "space.h"
#include "uaccess.h"
#include "wake.h"
#include "worker.h"

static long ioctl_query(void __user *uarg, size_t size)
{
	struct parklot_query query = {
		.abi_version	= PARKLOT_ABI_VERSION,
		.max_lots	= PARKLOT_MAX_LOTS,
		.max_workers	= PARKLOT_MAX_WORKERS,
		.max_batch	= PARKLOT_MAX_BATCH,
		.features	= parklot_features(),
	};

	size_t known = min(size, sizeof(query));

	if (size < PARKLOT_QUERY_SIZE_VER0)
		return -EINVAL;
	if (copy_to_user(uarg, &query, known) ||
	    clear_user(uarg + known, size - known))
		return -EFAULT;
	return 0;
}

static long ioctl_setup(struct parklot_space *space,
			struct parklot_setup __user *usetup, size_t size)
{
	struct parklot_setup setup;
	long err;

	err = parklot_copy_in(&setup, sizeof(setup), PARKLOT_SETUP_SIZE_VER0,
			      usetup, size);
	if (err)
		return err;
	/* Checked now, since a SETUP cannot be repeated. */
	if (put_user(setup.counters_size, &usetup->counters_size) ||
	    put_user(setup.words_size, &usetup->words_size))
		return -EFAULT;
	err = parklot_space_setup(space, &setup);
	if (err)
		return err;
	if (put_user(setup.counters_size, &usetup->counters_size) ||
	    put_user(setup.words_size, &usetup->words_size))
		return -EFAULT;
	return 0;
}

/* A PARK that has been checked. */
struct parklot_park_call {
	struct parklot_lots	*lots;
	struct parklot_lot	*lot;
	struct parklot_poll	poll;
};

/* On success the caller has to call parklot_poll_put(). */
static int park_prepare(struct parklot_park_call *call,
			struct parklot_lots *lots,
			const struct parklot_park *park)
{
	call->lots = lots;
	call->lot = parklot_lots_get(lots, park->lot);
	if (!call->lot || park->flags)
		return -EINVAL;
	return parklot_poll_get(&call->poll, park);
}

/* Sleeps; a worker's sleep here does not count as blocking. */
static int park_sleep(struct parklot_park_call *call,
		      struct parklot_park_args *args)
{
	struct parklot_pool *pool = call->lots->pool;
	int reason;

	if (!parklot_is_built(PARKLOT_FEAT_CREW) || !pool)
		return parklot_lot_park(call->lot, args);
	args->notifier = parklot_worker_enter(pool);
	reason = parklot_lot_park(call->lot, args);
	parklot_worker_return(args->notifier);
	return reason;
}

static int park_sleep_polling(struct parklot_park_call *call,
			      struct parklot_park_args *args)
{
	int reason = parklot_poll_start(&call->poll);

	args->source = &call->poll.source;
	if (!reason)
		reason = park_sleep(call, args);
	parklot_poll_stop(&call->poll);
	return reason;
}

static int park_run(struct parklot_park_call *call, struct file *file,
		    const struct parklot_park *park)
{
	struct parklot_lot *lot = call->lot;
	struct parklot_park_args args = {
		.nr		= park->lot,
		.seq		= park->expected_seq,
		.deadline	= parklot_deadline(park->deadline_ns),
	};
	int reason;

	/* A close in another table interrupts as well: then park again. */
	do {
		/*
		 * [table-b] pairs with [table-a] in parklot_lot_interrupt():
		 * the number is read before the table. Otherwise a close in
		 * between would be missed in both, and the thread would sleep.
		 */
		args.nr_interrupts = smp_load_acquire(&lot->nr_interrupts);
		if (parklot_close_was_last(lot, args.nr_interrupts, file))
			return PARKLOT_INTERRUPTED;
		PARKLOT_INJECT("table-b");
		reason = call->poll.file ? park_sleep_polling(call, &args) :
					   park_sleep(call, &args);
	} while (reason == PARKLOT_INTERRUPTED);
	return reason;
}

static long ioctl_park(struct file *file, struct parklot_lots *lots,
		       struct parklot_park __user *upark, size_t size)
{
	struct parklot_park_call call __uninitialized;
	struct parklot_park park;
	int err;

	err = parklot_copy_in(&park, sizeof(park), PARKLOT_PARK_SIZE_VER0,
			      upark, size);
	if (err)
		return err;
	err = park_prepare(&call, lots, &park);
	if (err)
		return err;
	err = put_user(park.reason, &upark->reason);
	if (!err)
		err = park_run(&call, file, &park);
	parklot_poll_put(&call.poll);
	if (err < 0)
		return err;
	return put_user(err, &upark->reason);
}

/* Does the wakes of a WAKE_PARK; the park has been checked. */
static int wake_first(struct parklot_lots *lots,
		      const struct parklot_wake_park *both,
		      struct parklot_wake_park __user *uboth)
{
	bool handoff = both->wake.flags & PARKLOT_WAKE_HANDOFF;
	struct parklot_wake_call call __uninitialized;
	int err;

	if (put_user(both->wake.woken, &uboth->wake.woken) ||
	    put_user(both->park.reason, &uboth->park.reason))
		return -EFAULT;
	err = parklot_wake_prepare(&call, lots, &both->wake);
	if (err)
		return err;
	return parklot_wake_report(&call, parklot_wake_run(&call, handoff),
				   &uboth->wake);
}

static long ioctl_wake_park(struct file *file, struct parklot_lots *lots,
			    struct parklot_wake_park __user *uboth)
{
	struct parklot_wake_park both;
	struct parklot_park_call call __uninitialized;
	int err;

	if (copy_from_user(&both, uboth, sizeof(both)))
		return -EFAULT;
	if (both.wake.flags & ~PARKLOT_WAKE_HANDOFF)
		return -EINVAL;
	err = park_prepare(&call, lots, &both.park);
	if (err)
		return err;
	if (both.wake.flags && !parklot_has(PARKLOT_FEAT_HANDOFF))
		err = -EOPNOTSUPP;
	if (!err)
		err = wake_first(lots, &both, uboth);
	if (err)
		goto out;
	err = park_run(&call, file, &both.park);
	/* The wakes are done, so the call must not be restarted. */
	if (err < 0)
		err = PARKLOT_INTERRUPTED;
	err = put_user(err, &uboth->park.reason);
out:
	parklot_poll_put(&call.poll);
	return err;
}

static long ioctl_crew(struct parklot_lots *lots, const void __user *ucrew,
		       size_t size)
{
	struct parklot_crew crew;
	int err;

	err = parklot_copy_in(&crew, sizeof(crew), PARKLOT_CREW_SIZE_VER0,
			      ucrew, size);
	if (err)
		return err;
	if (!lots->pool)
		return -EINVAL;
	return parklot_pool_set(lots->pool, &crew);
}

static long ioctl_worker(struct parklot_lots *lots, bool joins,
			 const void __user *uworker, size_t size)
{
	struct parklot_worker worker;
	int err;

	err = parklot_copy_in(&worker, sizeof(worker), PARKLOT_WORKER_SIZE_VER0,
			      uworker, size);
	if (err)
		return err;
	if (!lots->pool || worker.flags)
		return -EINVAL;
	if (joins)
		return parklot_lots_join(lots, worker.slot);
	return parklot_worker_leave(lots->pool, worker.slot);
}

/* The calls of a crew. A worker may leave even if crews are masked. */
static long ioctl_of_crew(struct parklot_lots *lots, unsigned int cmd,
			  const void __user *uarg)
{
	bool leaves = _IOC_NR(cmd) == _IOC_NR(PARKLOT_IOC_WORKER_LEAVE);
	size_t size = _IOC_SIZE(cmd);

	if (!parklot_is_built(PARKLOT_FEAT_CREW) ||
	    (!leaves && !parklot_has(PARKLOT_FEAT_CREW)))
		return -EOPNOTSUPP;
	if (!lots)
		return -ENXIO;
	if (_IOC_NR(cmd) == _IOC_NR(PARKLOT_IOC_CREW))
		return ioctl_crew(lots, uarg, size);
	return ioctl_worker(lots, !leaves, uarg, size);
}

#define SIZELESS(cmd)	((cmd) & ~IOCSIZE_MASK)

static long parklot_ioctl(struct file *file, unsigned int cmd,
			  unsigned long arg)
{
	struct parklot_space *space = file->private_data;
	void __user *uarg = (void __user *)arg;
	struct parklot_lots *lots;
	size_t size = _IOC_SIZE(cmd);

	if (!parklot_space_is_own(space))
		return -EIO;
	lots = parklot_space_lots(space);
	switch (SIZELESS(cmd)) {
	case SIZELESS(PARKLOT_IOC_QUERY):
		return ioctl_query(uarg, size);
	case SIZELESS(PARKLOT_IOC_SETUP):
		return ioctl_setup(space, uarg, size);
	case SIZELESS(PARKLOT_IOC_PARK):
		return lots ? ioctl_park(file, lots, uarg, size) : -ENXIO;
	case SIZELESS(PARKLOT_IOC_WAKE):
		return lots ? parklot_wake_user(lots, uarg, size) : -ENXIO;
	case SIZELESS(PARKLOT_IOC_WAKE_PARK):
		if (cmd != PARKLOT_IOC_WAKE_PARK)
			return -ENOIOCTLCMD;
		return lots ? ioctl_wake_park(file, lots, uarg) : -ENXIO;
	case SIZELESS(PARKLOT_IOC_CREW):
	case SIZELESS(PARKLOT_IOC_WORKER_JOIN):
	case SIZELESS(PARKLOT_IOC_WORKER_LEAVE):
		return ioctl_of_crew(lots, cmd, uarg);
	default:
		return -ENOIOCTLCMD;
	}
}

/*
 * Maps an area: whole, shared, never executable; the counters are not writable,
 * now or later.
 */
static int parklot_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct parklot_space *space = file->private_data;
	vm_flags_t never = VM_MAYEXEC;
	struct parklot_area *area;
	struct parklot_lots *lots;

	if (!parklot_space_is_own(space))
		return -EIO;
	lots = parklot_space_lots(space);
	if (!lots)
		return -ENXIO;
	if (vma->vm_pgoff == PARKLOT_OFF_COUNTERS >> PAGE_SHIFT) {
		area = &lots->counters;
		never |= VM_MAYWRITE;
	} else if (vma->vm_pgoff == PARKLOT_OFF_WORDS >> PAGE_SHIFT) {
		area = &lots->words;
	} else {
		return -EINVAL;
	}
	if (!(vma->vm_flags & VM_SHARED) || vma_pages(vma) != area->nr_pages)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC ||
	    (never & VM_MAYWRITE && vma->vm_flags & VM_WRITE))
		return -EACCES;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY, never);
	return vm_map_pages_zero(vma, area->pages, area->nr_pages);
}

static int parklot_open(struct inode *inode, struct file *file)
{
	struct parklot_space *space = parklot_space_create();

	if (IS_ERR(space))
		return PTR_ERR(space);
	file->private_data = space;
	return stream_open(inode, file);
}

/* @id is the table that the descriptor was in, or NULL. */
static int parklot_flush(struct file *file, fl_owner_t id)
{
	parklot_close_done(file, id);
	return 0;
}

static int parklot_release(struct inode *inode, struct file *file)
{
	parklot_space_destroy(file->private_data);
	return 0;
}

static void parklot_show_fdinfo(struct seq_file *seq, struct file *file)
{
	struct parklot_lots *lots = parklot_space_lots(file->private_data);

	if (lots)
		parklot_lots_show(lots, seq);
}

const struct file_operations parklot_fops = {
	.owner		= THIS_MODULE,
	.open		= parklot_open,
	.flush		= parklot_flush,
	.release	= parklot_release,
	.mmap		= parklot_mmap,
	.unlocked_ioctl	= parklot_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= parklot_show_fdinfo,
};
