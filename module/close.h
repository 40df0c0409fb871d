/* SPDX-License-Identifier: GPL-2.0-only */
/* The close of a table's last descriptor ends the sleeps of its threads. */
#ifndef PARKLOT_CLOSE_H
#define PARKLOT_CLOSE_H

#include <linux/types.h>

struct file;
struct files_struct;
struct parklot_lot;

bool parklot_close_was_last(struct parklot_lot *lot, u32 nr_interrupts,
			    struct file *file);
void parklot_close_done(struct file *file, struct files_struct *files);

#endif /* PARKLOT_CLOSE_H */
