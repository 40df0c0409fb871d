/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * parklot for C++17: tasks of lambdas, with their results and exceptions;
 * scopes of tasks; mutexes for the standard's locks, condition variable,
 * channel and timer.
 *
 * All of it is in this header, on the functions of <parklot.h>, and allocates
 * nothing that these do not, but a function for each child of a scope, and each
 * large one of detach().  A task and a timer keep their function, and the task
 * its result, in the object itself: it cannot be moved, and its destructor
 * waits.  An error, -errno in C, is a std::system_error: -EINTR after an
 * interruption, -ECANCELED once the task is cancelled.  pl_cxx(3) has more.
 */
#ifndef PARKLOT_HPP
#define PARKLOT_HPP

#include "parklot.h"
#include "parklot/base.hpp"
#include "parklot/chan.hpp"
#include "parklot/lock.hpp"
#include "parklot/scope.hpp"
#include "parklot/task.hpp"
#include "parklot/timer.hpp"

#endif /* PARKLOT_HPP */
