/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What /vars of bRPC shows of the runtime
 */
#ifndef PARKLOT_BTHREAD_VARS_H
#define PARKLOT_BTHREAD_VARS_H

namespace bthread {

/* vars_expose() - once, with the start of the runtime */
void vars_expose(class TaskControl *control);

}  // namespace bthread

#endif  // PARKLOT_BTHREAD_VARS_H
