/* SPDX-License-Identifier: GPL-2.0-only */
/* A WAKE. */
#ifndef PARKLOT_WAKE_H
#define PARKLOT_WAKE_H

#include <linux/parklot.h>
#include <linux/types.h>

struct parklot_lots;

/* A WAKE that has been checked. */
struct parklot_wake_call {
	struct parklot_lots		*lots;
	struct parklot_wake_entry	__user *uentries;
	u32				nr_entries;
	u32				limit;
	struct parklot_wake_entry	entry[PARKLOT_MAX_BATCH];
};

int parklot_wake_prepare(struct parklot_wake_call *call,
			 struct parklot_lots *lots,
			 const struct parklot_wake *wake);
u32 parklot_wake_run(struct parklot_wake_call *call, bool handoff);
int parklot_wake_report(const struct parklot_wake_call *call, u32 woken,
			struct parklot_wake __user *uwake);
int parklot_wake_user(struct parklot_lots *lots,
		      struct parklot_wake __user *uwake, size_t size);

#endif /* PARKLOT_WAKE_H */
