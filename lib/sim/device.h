/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * device: /dev/parklot, as parklot-device(4) and its header have it
 *
 * A second model of that contract, beside the module: without a lock, as one
 * thread has the turn.  A run has the device with SIM_DEVICE=1.  A descriptor
 * of it is a file in memory, with the areas that are mapped.  There is no
 * hand-off and no command of io_uring; structs have today's sizes; areas,
 * memory and other processes are not checked, as the kernel does.
 */
#ifndef PL_SIM_DEVICE_H
#define PL_SIM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct pl__sim_space;

/* ---- what a program calls ---- */

/* Before the simulation begins: reads SIM_DEVICE. */
void pl__sim_device_begin(void);
bool pl__sim_has_device(void);

/* A new space's descriptor, or -1 and errno. */
int pl__sim_device_open(int flags);

/* NULL: the descriptor is of another file. */
struct pl__sim_space *pl__sim_device_at(int fd);

/* ioctl() of @fd, of the space: 0 or -errno. */
int pl__sim_device_call(struct pl__sim_space *s, int fd, unsigned long cmd,
			void *arg);

/* After one of its descriptors was closed. */
void pl__sim_device_closed(struct pl__sim_space *s);

/* ---- what the simulation calls ---- */

/* The calling thread sleeps in the kernel, does so no more, or ends. */
void pl__sim_device_blocks(void);
void pl__sim_device_returns(void);
void pl__sim_device_thread_ends(void);

/* Calls workers of a crew that are missing, if it is time; true: some. */
bool pl__sim_device_run(uint64_t now_ns);
/* When it is. */
uint64_t pl__sim_device_deadline(void);

#endif /* PL_SIM_DEVICE_H */
