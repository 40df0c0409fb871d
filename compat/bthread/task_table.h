/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What is kept of tasks, by the slot in a handle
 */
#ifndef PARKLOT_BTHREAD_TASK_TABLE_H
#define PARKLOT_BTHREAD_TASK_TABLE_H

#include "bthread/task_group.h"

namespace bthread {

/* task_table_get() - the entry of @tid's slot, made if need be; NULL: ENOMEM */
TaskMeta *task_table_get(bthread_t tid);

}  // namespace bthread

#endif  // PARKLOT_BTHREAD_TASK_TABLE_H
