/* SPDX-License-Identifier: GPL-2.0-only */
/* The device's file operations. */
#ifndef PARKLOT_FILE_H
#define PARKLOT_FILE_H

#include <linux/fs.h>

extern const struct file_operations parklot_fops;

#endif /* PARKLOT_FILE_H */
