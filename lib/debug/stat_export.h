/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stat_export: where other processes find the counters of a running one
 *
 * plstat(1) reads the counters where they are, by process_vm_readv(2): the
 * process publishes nothing, shares no page and takes no part.  So this costs
 * nothing, and works on a process that hangs or is stopped.  The kernel refuses
 * a reader that may not trace the process.  (A page shared by a descriptor
 * would have to be written at each count, and be kept from the child of a
 * fork.)
 *
 * An ELF note of the program or library, owner "parklot", type PL__EXPORT_NOTE,
 * holds the distance from itself to the table: 8 bytes.  The table has names
 * and places, so that a plstat of another version finds the counters that it
 * knows.  A new counter is a new entry; the version changes if that is not
 * enough.
 */
#ifndef PL_STAT_EXPORT_H
#define PL_STAT_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#define PL__EXPORT_NOTE		1
#define PL__EXPORT_VERSION	2

/* What an entry's offset is relative to. */
enum pl__stat_export_where {
	PL__EXPORT_RT,		/* the runtime */
	PL__EXPORT_WORKER,	/* each worker */
	PL__EXPORT_RING,	/* each worker's ring, if it has one */
	PL__EXPORT_TIMERS,
	PL__EXPORT_BUCKET,	/* each bucket of the timers */
	PL__EXPORT_GROUP,	/* each group of workers */
	PL__EXPORT_NR_WHERE,
	/* in a worker; no counter, and older readers pass over it */
	PL__EXPORT_PLACE = 256,
};

#define PL__EXPORT_GAUGE	(1U << 0)	/* may go down */
#define PL__EXPORT_MINUS	(1U << 1)	/* to be subtracted */
#define PL__EXPORT_HIST		(1U << 2)	/* struct pl__latency_hist */

/* A part of a sum: the reader adds up all entries of one name. */
struct pl__stat_export {
	char		name[20];
	uint16_t	where;
	uint8_t		size;		/* bytes, 4 or 8; of one bin */
	uint8_t		flags;
	uint32_t	offset;
};

/*
 * Addresses, and offsets by which the reader finds rings, buckets and counts.
 */
struct pl__stat_export_table {
	char		magic[8];	/* "parklot" */
	uint32_t	version;
	uint32_t	nr;		/* number of entries */
	uint64_t	entries;	/* address of the first entry */
	uint64_t	rt;		/* address of the runtime */
	uint64_t	started_ns;	/* CLOCK_MONOTONIC; 0: never started */
	char		library[16];	/* version of the library */
	uint32_t	state;		/* in rt, 4 bytes: enum pl__rt_state */
	uint32_t	backend;	/* in rt, 4 bytes: enum pl_backend */
	uint32_t	workers; /* in rt: address of pointers to workers */
	uint32_t	nr_workers;	/* in rt, 4 bytes: number of workers */
	uint32_t	timers;		/* in rt: address of the timers */
	uint32_t	ring;	/* in a worker: address of its ring, or NULL */
	uint32_t	buckets; /* in timers: address of the first bucket */
	uint32_t	nr_buckets; /* in timers, 4 bytes: number of buckets */
	uint32_t	bucket_size;
	uint32_t	ring_kind;	/* in a ring, 4 bytes: enum pl_io */
	uint32_t	groups;	/* in rt: the first of pointers to groups */
	uint32_t	nr_groups;	/* in rt, 4 bytes: number of groups */
	uint32_t	group_name; /* in a group: 16 bytes, with a 0 */
	uint32_t	reserved;
};

/* Called at the start of the runtime. */
void pl__stat_export_start(uint64_t now_ns);

#endif /* PL_STAT_EXPORT_H */
