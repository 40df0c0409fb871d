// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module that does wrong when told to, to prove that the harness sees it:
 * write the name of a fault to /sys/module/faulty/parameters/fault.
 */
#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/panic.h>
#include <linux/smp.h>
#include <linux/string.h>

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
MODULE_PARM_DESC(fault, "warn, oops, hold, taint or race");

MODULE_DESCRIPTION("Does wrong when told to");
MODULE_LICENSE("GPL");
