/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The runtime, in place of bRPC's header of this name
 */
#ifndef BTHREAD_TASK_CONTROL_H
#define BTHREAD_TASK_CONTROL_H

#include "bthread/task_meta.h"

DECLARE_int32(task_group_ntags);

namespace bthread {

class TaskControl {
public:
	/* What bthread_setconcurrency() asked for. */
	int concurrency() const;
	int concurrency(bthread_tag_t tag) const;

	/* One line: how many tasks and workers there are. */
	void print_rq_sizes(std::ostream &os);
};

}  // namespace bthread

#endif  // BTHREAD_TASK_CONTROL_H
