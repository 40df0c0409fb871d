/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * parklot: tasks for servers, M:N on a few workers
 *
 * A task is a function with a stack of its own that blocks without blocking
 * the thread below it.  Workers are the threads that run tasks; each has its
 * own run queue, and one with nothing to do steals from the others, then
 * parks.  The names and promises here are the library's whole interface.
 *
 * What holds everywhere, unless a function says otherwise:
 *
 * - 0 or a useful non-negative value on success, a negative errno on failure.
 *   errno itself is neither read nor written.
 * - Times are nanoseconds; a deadline is absolute on CLOCK_MONOTONIC
 *   (pl_now()).  PL_FOREVER never expires; a deadline in the past polls.
 * - What blocks may be called from a task (the task is parked, its worker goes
 *   on) and from any ordinary thread (the thread blocks), and returns
 *   -ETIMEDOUT at its deadline, -EINTR after pl_interrupt(), -ECANCELED after
 *   pl_cancel() or while the runtime stops.
 * - Bad arguments get -EINVAL, and nothing else happens; so does NULL where no
 *   comment allows it, but for functions that return void.
 * - Objects embedded by the caller are valid when zero-filled, need no destroy
 *   call and allocate nothing.
 * - Structs of options begin with their size, set by their *_INIT.
 * - The runtime starts by itself at first use.
 */
#ifndef PARKLOT_H
#define PARKLOT_H

#define PARKLOT_VERSION		"0.1.0"

#include "parklot/base.h"
#include "parklot/runtime.h"
#include "parklot/group.h"
#include "parklot/task.h"
#include "parklot/scope.h"
#include "parklot/key.h"
#include "parklot/hook.h"
#include "parklot/timer.h"
#include "parklot/word.h"
#include "parklot/sync.h"
#include "parklot/chan.h"
#include "parklot/queue.h"
#include "parklot/io.h"
#include "parklot/names.h"
#include "parklot/child.h"

#endif /* PARKLOT_H */
