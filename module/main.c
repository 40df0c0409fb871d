// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/parklot comes with the module and goes with it. An open file holds
 * the module, so there is nothing left to wait for at its end.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "file.h"

/*
 * For everybody, as futex(2) is: a space reaches only the threads of the
 * process that opened it, its memory is charged to the opener's cgroup and the
 * number of spaces a user has is capped. There is nothing to guard by a group.
 */
static struct miscdevice parklot_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "parklot",
	.mode	= 0666,
	.fops	= &parklot_fops,
};

module_misc_device(parklot_device);

MODULE_DESCRIPTION("Parking lots for the threads of M:N runtimes");
MODULE_AUTHOR("The parklot authors");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
