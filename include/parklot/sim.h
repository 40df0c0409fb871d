/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The simulation: one seed decides which thread runs and what time it is, so
 * that a test of a server decides the same on any machine.
 *
 * Only the library of parklot-sim.pc has it; see parklot-sim(7).  Not a part of
 * <parklot.h>.
 */
#ifndef PARKLOT_SIM_H
#define PARKLOT_SIM_H

#include "base.h"

PL_BEGIN_DECLS

/**
 * pl_sim_run() - run @fn(@arg) under one seed
 * @seed: decides everything
 * @fn:   runs in a process of its own, with virtual time; the runtime is
 *        started in it, and stopped when @fn has returned
 * @arg:  passed to it
 *
 * Fails: a process that dies, by a failed assertion or otherwise, or that ends
 * by exit() with another status than 0; a deadlock; a livelock; a stop at which
 * tasks never end.  Lines on stderr say what, and name the seed.
 *
 * Context: a thread of a process that is not simulated and has not started the
 * runtime.
 * Return: 0; 1: it failed; -EBUSY: not in this context; -EINVAL; -ENOMEM,
 * -EAGAIN: no process or no memory could be had.
 */
PL_API int pl_sim_run(uint64_t seed, void (*fn)(void *arg), void *arg);

/**
 * pl_sim_seeds() - pl_sim_run() for @nr seeds from @from on
 *
 * Ends with the first one that fails, and says on stderr how many have passed,
 * how many schedules differed, and how many pairs of points of two threads
 * followed each other.
 *
 * Context, Return: as pl_sim_run().
 */
PL_API int pl_sim_seeds(uint64_t from, uint64_t nr, void (*fn)(void *arg),
			void *arg);

/**
 * pl_sim_all() - run @fn(@arg) in all schedules with few preemptions
 * @most: preemptions in a run; a thread that sleeps or ends is not preempted
 * @fn:   short: with n points and t threads that can run there are some
 *        (n * t)^@most schedules
 * @arg:  passed to it
 *
 * Context, Return: as pl_sim_run().
 */
PL_API int pl_sim_all(uint32_t most, void (*fn)(void *arg), void *arg);

/**
 * pl_sim_block() - the calling thread blocks, as in a system call
 * @ns: of virtual time
 *
 * Context: a task or thread that is simulated; else it is nanosleep().
 */
PL_API void pl_sim_block(uint64_t ns);

/**
 * pl_sim_compute() - the calling thread computes, and calls nothing meanwhile
 * @ns: of virtual time
 *
 * Context: a task or thread that is simulated; else nothing happens.
 */
PL_API void pl_sim_compute(uint64_t ns);

PL_END_DECLS

#endif /* PARKLOT_SIM_H */
