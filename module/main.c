// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/parklot comes with the module and goes with it. An open file holds
 * the module, and so does a thread that joined a crew.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "feature.h"
#include "file.h"
#include "hand.h"

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

static int __init parklot_init(void)
{
	bool has_hands = parklot_is_built(PARKLOT_FEAT_CREW);
	int err;

	if (has_hands) {
		err = parklot_hand_init();
		if (err)
			return err;
	}
	err = misc_register(&parklot_device);
	if (err && has_hands)
		parklot_hand_exit();
	return err;
}
module_init(parklot_init);

static void __exit parklot_exit(void)
{
	misc_deregister(&parklot_device);
	if (parklot_is_built(PARKLOT_FEAT_CREW))
		parklot_hand_exit();
}
module_exit(parklot_exit);

MODULE_DESCRIPTION("Parking lots for the threads of M:N runtimes");
MODULE_AUTHOR("The parklot authors");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
