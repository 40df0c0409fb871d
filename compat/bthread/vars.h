/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What /vars of bRPC shows of the runtime
 */
#ifndef PARKLOT_BTHREAD_VARS_H
#define PARKLOT_BTHREAD_VARS_H

#include "bthread/types.h"

namespace bthread {

/* vars_expose() - once, with the start of the runtime */
void vars_expose(class TaskControl *control);

/* vars_count_task() - @by more tasks of @tag are alive */
void vars_count_task(bthread_tag_t tag, int by);

}  // namespace bthread

#endif  // PARKLOT_BTHREAD_VARS_H
