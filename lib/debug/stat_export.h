/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stat_export: where others find what a running process counts
 *
 * plstat(1) reads the counters where they are, by process_vm_readv(2): nothing
 * is published, no page is shared and nobody is asked, so that it costs nothing
 * and works on a process that hangs or is stopped.  The kernel refuses those
 * who may not trace it.  (A page shared by a descriptor would have to be
 * written on each count, and be kept from the child of a fork.)
 *
 * An ELF note of the program or library, owner "parklot", type
 * PL__EXPORT_NOTE, holds how far from itself the table lies: 8 bytes.  The
 * table tells names and places, so that a plstat of another version finds what
 * it knows.  A new counter is a new entry; the version changes if that is not
 * enough.
 */
#ifndef PL_STAT_EXPORT_H
#define PL_STAT_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#define PL__EXPORT_NOTE		1
#define PL__EXPORT_VERSION	1

/* What an entry's offset is from. */
enum pl__stat_export_where {
	PL__EXPORT_RT,		/* the runtime */
	PL__EXPORT_WORKER,	/* each worker */
	PL__EXPORT_RING,	/* each worker's, if it has one */
	PL__EXPORT_TIMERS,
	PL__EXPORT_BUCKET,	/* each bucket of the timers */
	PL__EXPORT_NR_WHERE,
};

#define PL__EXPORT_GAUGE	(1U << 0)	/* may go down */
#define PL__EXPORT_MINUS	(1U << 1)	/* to be taken off */
#define PL__EXPORT_HIST		(1U << 2)	/* struct pl__latency_hist */

/* One of a sum: all that have the same name are added up. */
struct pl__stat_export {
	char		name[20];
	uint16_t	where;
	uint8_t		size;		/* 4 or 8 bytes; of one bin */
	uint8_t		flags;
	uint32_t	offset;
};

/* Offsets of pointers and counts, by which the others are found. */
struct pl__stat_export_table {
	char		magic[8];	/* "parklot" */
	uint32_t	version;
	uint32_t	nr;		/* entries */
	uint64_t	entries;	/* address */
	uint64_t	rt;		/* address */
	uint64_t	started_ns;	/* CLOCK_MONOTONIC; 0: never */
	char		library[16];	/* its version */
	uint32_t	state;		/* in rt, 4 bytes: enum pl__rt_state */
	uint32_t	backend;	/* in rt, 4 bytes: enum pl_backend */
	uint32_t	workers;	/* in rt: to pointers to them */
	uint32_t	nr_workers;	/* in rt, 4 bytes */
	uint32_t	timers;		/* in rt: to the timers */
	uint32_t	ring;		/* in a worker: to its ring, or NULL */
	uint32_t	buckets;	/* in timers: to the first */
	uint32_t	nr_buckets;	/* in timers, 4 bytes */
	uint32_t	bucket_size;
	uint32_t	reserved;
};

/* At the start of the runtime. */
void pl__stat_export_start(uint64_t now_ns);

#endif /* PL_STAT_EXPORT_H */
