/* SPDX-License-Identifier: GPL-2.0-only */
/* The device's file operations. */
#ifndef PARKLOT_DEV_H
#define PARKLOT_DEV_H

#include <linux/fs.h>

extern const struct file_operations parklot_fops;

#endif /* PARKLOT_DEV_H */
