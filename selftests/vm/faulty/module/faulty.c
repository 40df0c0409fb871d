// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module that does wrong when told to, to prove that the harness sees it:
 * write the name of a fault to /sys/module/faulty/parameters/fault.
 */
#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/panic.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/timer.h>

static DEFINE_MUTEX(one);
static DEFINE_MUTEX(other);

/* In one order, and in the other. */
static void fault_order(void)
{
	mutex_lock(&one);
	mutex_lock(&other);
	mutex_unlock(&other);
	mutex_unlock(&one);

	mutex_lock(&other);
	mutex_lock(&one);
	mutex_unlock(&one);
	mutex_unlock(&other);
}

static void fault_sleep(void)
{
	preempt_disable();
	might_sleep();
	preempt_enable();
}

static void fault_use_after_free(void)
{
	int *freed = kmalloc(sizeof(*freed), GFP_KERNEL);

	kfree(freed);
	OPTIMIZER_HIDE_VAR(freed);
	if (freed)
		WRITE_ONCE(*freed, 1);
}

/*
 * So many that neither stale words of a stack nor the allocator's own lists of
 * objects in use (Linux 6.18 and later) refer to all of them.
 */
static void fault_leak(void)
{
	int i;

	for (i = 0; i < 192; i++)
		if (!kmalloc(96, GFP_KERNEL))
			return;
}

static void never(struct timer_list *timer)
{
}

/* A timer that is set when its memory goes. */
static void fault_object(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, never, 0);
	mod_timer(timer, jiffies + 1000 * HZ);
	kfree(timer);
}

static unsigned long raced;

static void race(void *unused)
{
	int i;

	for (i = 0; i < 4000000; i++) {
		raced++;
		barrier();
	}
}

static int fault_set(const char *val, const struct kernel_param *kp)
{
	if (sysfs_streq(val, "warn"))
		WARN(1, "faulty: as asked\n");
	else if (sysfs_streq(val, "oops"))
		*(volatile int *)8 = 1;
	else if (sysfs_streq(val, "hold"))
		__module_get(THIS_MODULE);
	else if (sysfs_streq(val, "taint"))
		add_taint(TAINT_USER, LOCKDEP_STILL_OK);
	else if (sysfs_streq(val, "order"))
		fault_order();
	else if (sysfs_streq(val, "sleep"))
		fault_sleep();
	else if (sysfs_streq(val, "use_after_free"))
		fault_use_after_free();
	else if (sysfs_streq(val, "leak"))
		fault_leak();
	else if (sysfs_streq(val, "object"))
		fault_object();
	else if (sysfs_streq(val, "race"))
		on_each_cpu(race, NULL, 1);
	else
		return -EINVAL;

	return 0;
}

static const struct kernel_param_ops fault_ops = {
	.set = fault_set,
};
module_param_cb(fault, &fault_ops, NULL, 0200);
MODULE_PARM_DESC(fault, "warn, oops, hold, taint; where the kernel "
		 "sees it: order, sleep, use_after_free, leak, object, race");

MODULE_DESCRIPTION("Does wrong when told to");
MODULE_LICENSE("GPL");
