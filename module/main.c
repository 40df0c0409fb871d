// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/parklot comes with the module and goes with it. An open file holds the
 * module, and so does a thread that joined a crew.
 *
 * It is not a misc device: misc_open() takes a mutex of the whole machine. An
 * opener that looks for memory, or is preempted, would keep all others waiting.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/device/class.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>

#include "compat.h"
#include "dev.h"
#include "feature.h"
#include "worker.h"

/*
 * Any user may open the device, as any user may call futex(2): a space reaches
 * only the threads of the process that opened it, and its memory is charged to
 * the opener's cgroup and user. So a group would guard nothing.
 */
static char *parklot_devnode(DEVNODE_CONST struct device *device, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static struct class parklot_class = {
	.name		= "parklot",
	.devnode	= parklot_devnode,
};

static struct cdev parklot_cdev;
static dev_t parklot_dev;

static int device_init(void)
{
	struct device *device;
	int err;

	err = alloc_chrdev_region(&parklot_dev, 0, 1, "parklot");
	if (err)
		return err;
	cdev_init(&parklot_cdev, &parklot_fops);
	parklot_cdev.owner = THIS_MODULE;
	err = cdev_add(&parklot_cdev, parklot_dev, 1);
	if (err)
		goto err_region;
	err = class_register(&parklot_class);
	if (err)
		goto err_cdev;
	device = device_create(&parklot_class, NULL, parklot_dev, NULL,
			       "parklot");
	if (!IS_ERR(device))
		return 0;
	err = PTR_ERR(device);
	class_unregister(&parklot_class);
err_cdev:
	cdev_del(&parklot_cdev);
err_region:
	unregister_chrdev_region(parklot_dev, 1);
	return err;
}

static void device_exit(void)
{
	device_destroy(&parklot_class, parklot_dev);
	class_unregister(&parklot_class);
	cdev_del(&parklot_cdev);
	unregister_chrdev_region(parklot_dev, 1);
}

static int __init parklot_init(void)
{
	bool has_crew = parklot_is_built(PARKLOT_FEAT_CREW);
	int err;

	if (has_crew) {
		err = parklot_worker_init();
		if (err)
			return err;
	}
	err = device_init();
	if (err && has_crew)
		parklot_worker_exit();
	return err;
}
module_init(parklot_init);

static void __exit parklot_exit(void)
{
	device_exit();
	if (parklot_is_built(PARKLOT_FEAT_CREW))
		parklot_worker_exit();
}
module_exit(parklot_exit);

MODULE_DESCRIPTION("Parking lots for the threads of M:N runtimes");
MODULE_AUTHOR("The parklot authors");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
