/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/**
 * DOC: Overview
 *
 * /dev/parklot: lots in which the threads of one process sleep (park), and
 * are woken by number, in order, several lots in one call.
 *
 * A descriptor opened O_RDWR is a space of lots. It belongs to the address
 * space that opened it: in any other (after exec, in a fork, passed over a
 * socket) every ioctl and mmap gives -EIO. Order of use: QUERY, SETUP once,
 * mmap both areas, then PARK and WAKE from any thread.
 *
 * The protocol. `seq` is the lot's word in the words area, `nr_parked` its word
 * in the counters area::
 *
 *	parker				waker
 *	s = seq
 *	look for work			publish the work
 *	PARK, expected_seq = s:		seq += 2
 *	    nr_parked++			full barrier		[park-b]
 *	    full barrier  [park-a]	if (nr_parked)
 *	    if (seq == s)		    WAKE
 *		sleep
 *
 * Each side writes its own word and then reads the other side's, with a full
 * barrier in between: so either the parker sees the new seq and does not sleep,
 * or the waker sees nr_parked and wakes it. Without [park-b] both can miss, and
 * the parker sleeps although there is work. The thread that removes a sleeper
 * from a lot, and no other, takes nr_parked down, before the sleeper runs. A
 * waker may call WAKE without reading nr_parked.
 */

/**
 * DOC: Structs and errors
 *
 * For all structs: reserved fields and unknown flags must be zero, else
 * -EINVAL; fields marked "out" are ignored on input, and not written when a
 * call fails. Structs may grow at their end. The size is part of the command: a
 * size smaller than the first version's (``PARKLOT_*_SIZE_VER0``) is -EINVAL;
 * fields beyond a smaller size are zero; a larger size than the module's is
 * -E2BIG unless all bytes beyond are zero. So programs run on older modules and
 * on newer ones.
 *
 * Errors: -EIO as above, -ENOTTY for unknown commands, -ENXIO for a call that
 * needs SETUP first, -EINVAL for a lot that does not exist, -EFAULT (nothing
 * was done, unless memory was unmapped during the call), -ENOMEM.
 */
#ifndef _UAPI_LINUX_PARKLOT_H
#define _UAPI_LINUX_PARKLOT_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PARKLOT_ABI_VERSION	1

#define PARKLOT_MAX_LOTS	1024
#define PARKLOT_MAX_WORKERS	65536
#define PARKLOT_MAX_BATCH	64	/* entries of one WAKE */

/* Sizes of the structs in their first versions. */
#define PARKLOT_QUERY_SIZE_VER0		24
#define PARKLOT_SETUP_SIZE_VER0		24
#define PARKLOT_PARK_SIZE_VER0		32
#define PARKLOT_WAKE_SIZE_VER0		24
#define PARKLOT_CREW_SIZE_VER0		16
#define PARKLOT_WORKER_SIZE_VER0	8

/* Each shared word stands in a line of its own, bytes. */
#define PARKLOT_LINE		64

/* Times are absolute, CLOCK_MONOTONIC of the caller's time namespace, ns. */
#define PARKLOT_FOREVER		(~0ULL)

/**
 * DOC: Features
 *
 * Bits of struct parklot_query.features:
 *
 * - %PARKLOT_FEAT_CREW: blocked workers are seen
 * - %PARKLOT_FEAT_HANDOFF: a wakee runs on this CPU
 * - %PARKLOT_FEAT_POLLFD: PARK also polls
 */
#define PARKLOT_FEAT_CREW	(1ULL << 0)
#define PARKLOT_FEAT_HANDOFF	(1ULL << 1)
#define PARKLOT_FEAT_POLLFD	(1ULL << 2)

/**
 * struct parklot_query - what PARKLOT_IOC_QUERY says; all fields are out
 * @abi_version: %PARKLOT_ABI_VERSION of the module
 * @max_lots:	 most lots of a space
 * @max_workers: most workers of a crew
 * @max_batch:	 most entries of one WAKE
 * @features:	 bits, ``PARKLOT_FEAT_*``
 */
struct parklot_query {
	__u32	abi_version;
	__u32	max_lots;
	__u32	max_workers;
	__u32	max_batch;
	__u64	features;
};

/**
 * struct parklot_setup - argument of PARKLOT_IOC_SETUP
 * @nr_lots:	   1 to max_lots
 * @nr_workers:	   0 for no crew, up to max_workers; -EOPNOTSUPP without
 *		   %PARKLOT_FEAT_CREW
 * @flags:	   0: no flags yet
 * @reserved:	   0
 * @counters_size: out: bytes to map, whole pages
 * @words_size:	   out: bytes to map, whole pages
 *
 * A second SETUP: -EBUSY.
 *
 * SETUP pins memory until the space is gone: for each lot a struct and two
 * lines, for each worker a line and a pointer, in whole pages. It counts
 * against RLIMIT_MEMLOCK of the caller's user (-ENOMEM), as memory that
 * io_uring pins does, except with CAP_IPC_LOCK, and is shown as VmPin. A crew
 * also takes a line and two pointers for each processor that the machine may
 * have.
 */
struct parklot_setup {
	__u32	nr_lots;
	__u32	nr_workers;
	__u32	flags;
	__u32	reserved;
	__u32	counters_size;
	__u32	words_size;
};

/**
 * DOC: Memory
 *
 * The counters are mapped at %PARKLOT_OFF_COUNTERS, the words at
 * %PARKLOT_OFF_WORDS. Both areas are mapped MAP_SHARED, whole, and not
 * executable; they are not inherited by fork() (unless madvise(2) with
 * MADV_DOFORK asks for it) and not dumped. The counters are mapped without
 * PROT_WRITE, which mprotect(2) cannot add.
 */
#define PARKLOT_OFF_COUNTERS	0x00000000
#define PARKLOT_OFF_WORDS	0x10000000

/**
 * struct parklot_lot_counters - a lot, as the kernel counts it
 * @nr_parked: number of threads that sleep in the lot
 * @reserved:  0
 */
struct parklot_lot_counters {
	__u32	nr_parked;
	__u32	reserved[15];
};

/**
 * struct parklot_counters - the counters area, written by the kernel
 * @nr_cpus:  number of lines of processors that are in use
 * @reserved: 0
 * @lot:      nr_lots lines
 *
 * With a crew, lines of struct parklot_cpu_counters come behind the lots, one
 * for each processor that the machine may have. The first nr_cpus of them are
 * in use: a processor gets the next line when a worker of the crew first
 * changes its state there.
 */
struct parklot_counters {
	__u32	nr_cpus;
	__u32	reserved[15];
	struct parklot_lot_counters lot[];
};

/**
 * struct parklot_state_counters - how often workers changed a state; both wrap
 * @in:	 number of times that workers entered it
 * @out: number of times that workers left it
 */
struct parklot_state_counters {
	__u32	in;
	__u32	out;
};

/**
 * struct parklot_cpu_counters - one processor, which alone writes this line
 * @running:  have a processor or wait for one
 * @blocked:  sleep in the kernel, anywhere but in PARK
 * @parked:   sleep in PARK
 * @reserved: 0
 *
 * A worker may leave a state on another processor than it entered it: only the
 * sums over all lines tell how many workers are in it, nr = sum(in) - sum(out).
 * Changes during a sum make it inexact, on the side that the order of the two
 * sums decides::
 *
 *	in, read barrier, out	maybe too low, even below 0, never too high
 *	out, read barrier, in	maybe too high, never too low
 */
struct parklot_cpu_counters {
	struct parklot_state_counters running;
	struct parklot_state_counters blocked;
	struct parklot_state_counters parked;
	__u32	reserved[10];
};

/* Offset of line @i of the processors in the counters area, bytes. */
#define PARKLOT_CPU_OFFSET(nr_lots, i) \
	(PARKLOT_LINE * (1UL + (nr_lots) + (i)))

/**
 * struct parklot_lot_words - a lot, as the process signals it
 * @seq:      signals << 1 | stopped
 * @reserved: not read
 */
struct parklot_lot_words {
	__u32	seq;
	__u32	reserved[15];
};

/**
 * struct parklot_words - the words area; the kernel only compares
 * @backlog:  runnable tasks that wait, a hint
 * @reserved: not read
 * @lot:      nr_lots lines
 *
 * Written by the process. Behind the lots come nr_workers of
 * struct parklot_worker_words.
 */
struct parklot_words {
	__u32	backlog;
	__u32	reserved[15];
	struct parklot_lot_words lot[];
};

#define PARKLOT_WORKER_IDLE	1	/* waits in io_uring_enter() */

/**
 * struct parklot_worker_words - a worker, as the process describes it
 * @state:    %PARKLOT_WORKER_IDLE, or 0
 * @reserved: not read
 */
struct parklot_worker_words {
	__u32	state;
	__u32	reserved[15];
};

/* Offset of the words of worker @slot in the words area, bytes. */
#define PARKLOT_WORKER_OFFSET(nr_lots, slot) \
	(PARKLOT_LINE * (1UL + (nr_lots) + (slot)))

/**
 * DOC: Reasons
 *
 * Why a park ended, struct parklot_park.reason:
 *
 * - %PARKLOT_WOKEN: counted by exactly one WAKE
 * - %PARKLOT_CHANGED: seq is not expected_seq
 * - %PARKLOT_TIMEDOUT: at the deadline; a past one polls
 * - %PARKLOT_POLLED: pollfd became ready
 * - %PARKLOT_INTERRUPTED: none of the others, see struct parklot_park
 * - %PARKLOT_CALLED: by the crew, in place of a worker that does not run
 */
#define PARKLOT_WOKEN		1
#define PARKLOT_CHANGED		2
#define PARKLOT_TIMEDOUT	3
#define PARKLOT_POLLED		4
#define PARKLOT_INTERRUPTED	5
#define PARKLOT_CALLED		6

/**
 * struct parklot_park - argument of PARKLOT_IOC_PARK
 * @lot:	  below nr_lots
 * @expected_seq: the `seq` that the caller read
 * @deadline_ns:  %PARKLOT_FOREVER for none
 * @pollfd:	  -1, or a descriptor to poll
 * @poll_events:  of pollfd
 * @flags:	  0: no flags yet
 * @reason:	  out: %PARKLOT_WOKEN, %PARKLOT_CHANGED, %PARKLOT_TIMEDOUT,
 *		  %PARKLOT_POLLED, %PARKLOT_INTERRUPTED or %PARKLOT_CALLED
 *
 * PARK sleeps until there is a reason to return, and returns 0 and the reason.
 * Of the threads parked in a lot the last one is the first that a WAKE wakes.
 * A signal restarts it if SA_RESTART is set (-EINTR otherwise); the deadline,
 * being absolute, stays.
 *
 * A parked thread keeps the space alive. When the last descriptor of the space
 * leaves the table of descriptors through which the thread parked (its own, see
 * clone(2), CLONE_FILES), whichever thread or process closes it, PARK returns
 * PARKLOT_INTERRUPTED: parking again gives -EBADF. Other closes, of a duplicate
 * or in a child of fork or vfork, end no sleep; but if several tables have
 * threads parked, those of the other tables leave the lot for a moment, and are
 * parked last. A descriptor that is moved at the same time may be missed:
 * parking again is then possible.
 *
 * pollfd other than -1 is polled as by poll(2) for poll_events (POLLIN and so
 * on, 16 bits; POLLERR and POLLHUP always): when it is ready, at once or
 * later, the reason is PARKLOT_POLLED. -EOPNOTSUPP without PARKLOT_FEAT_POLLFD,
 * -EBADF. With -1, poll_events must be zero. As with poll(2), an io_uring with
 * IORING_SETUP_DEFER_TASKRUN does not wake the thread that would do its work:
 * poll an eventfd that is registered with it.
 */
struct parklot_park {
	__u32	lot;
	__u32	expected_seq;
	__u64	deadline_ns;
	__s32	pollfd;
	__u32	poll_events;
	__u32	flags;
	__u32	reason;
};

/**
 * struct parklot_wake_entry - one lot of a WAKE
 * @lot:      below nr_lots
 * @nr:	      most sleepers of this lot to wake
 * @woken:    out: number of wakees
 * @reserved: 0
 */
struct parklot_wake_entry {
	__u32	lot;
	__u32	nr;
	__u32	woken;
	__u32	reserved;
};

/*
 * struct parklot_wake.flags: the last wakee is placed on this CPU. Only in a
 * WAKE_PARK (-EINVAL in a WAKE), -EOPNOTSUPP without PARKLOT_FEAT_HANDOFF.
 */
#define PARKLOT_WAKE_HANDOFF	(1U << 0)

/**
 * struct parklot_wake - argument of PARKLOT_IOC_WAKE
 * @entries:	address of nr_entries of struct parklot_wake_entry
 * @nr_entries: up to max_batch
 * @flags:	%PARKLOT_WAKE_HANDOFF, in a WAKE_PARK only
 * @limit:	most threads to wake
 * @woken:	out: wakees of all entries
 *
 * WAKE serves the entries in order until `limit` threads are woken; a limit of
 * 0 wakes no thread, ~0U is no limit. More than max_batch entries give -EINVAL;
 * 0 entries are legal. All entries are checked before the first one is served.
 * An `nr` of at least nr_parked wakes the threads that were parked, each once,
 * even if threads park again meanwhile.
 */
struct parklot_wake {
	__u64	entries;
	__u32	nr_entries;
	__u32	flags;
	__u32	limit;
	__u32	woken;
};

/**
 * struct parklot_wake_park - argument of PARKLOT_IOC_WAKE_PARK
 * @wake: what to wake
 * @park: where to sleep then
 *
 * WAKE, then PARK, in one call; both are checked before anything is done.
 * It does not restart: once the wakes are done a signal ends the sleep with
 * PARKLOT_INTERRUPTED and 0, so that no wake is done twice. The caller cannot
 * wake itself. This struct is frozen: another size is another command.
 */
struct parklot_wake_park {
	struct parklot_wake	wake;
	struct parklot_park	park;
};

/**
 * DOC: The crew
 *
 * The crew: threads that have joined, each in a slot below nr_workers. They are
 * counted in struct parklot_cpu_counters::
 *
 *	running		have a processor or wait for one
 *	blocked		sleep in the kernel, anywhere but in PARK: in a read, a
 *			page fault, for a mutex of another thread
 *	parked		sleep in PARK
 *
 * A thread that sleeps while the `state` of its slot is PARKLOT_WORKER_IDLE is
 * in none of these states: it waits for work, in io_uring_enter() for example.
 * A thread that a signal has stopped, or that a debugger or a freezer holds,
 * counts as running.
 *
 * CREW: if fewer than `target` workers run, `backlog` is not 0 and a worker is
 * parked, as many workers as are missing are called, those first that parked
 * last: their PARKs return PARKLOT_CALLED. That happens once this has lasted
 * stall_ns (0: at once), 50 us after the last such calls at the earliest, and
 * never while `max` workers run. The kernel checks for it when a worker blocks,
 * parks or leaves, and at CREW, but not when `backlog` changes::
 *
 *	thread that raises backlog	worker that blocks
 *	backlog = 1			running.out++
 *	full barrier			full barrier
 *	sum of running, in first	if (backlog and any parked)
 *	if (sum < target)		    sum of running, in first
 *	    WAKE			    if (sum < target)
 *						call workers
 *
 * Calls help progress; no program may rely on them. Before the first CREW, and
 * with a target of 0, no worker is called. No flags yet; target > max: -EINVAL.
 */

/**
 * struct parklot_crew - argument of PARKLOT_IOC_CREW
 * @target:   number of workers meant to run
 * @max:      no call while that many run
 * @stall_ns: time before a call, ns
 * @flags:    0: no flags yet
 */
struct parklot_crew {
	__u32	target;
	__u32	max;
	__u32	stall_ns;
	__u32	flags;
};

/**
 * struct parklot_worker - argument of PARKLOT_IOC_WORKER_JOIN and _LEAVE
 * @slot:  below nr_workers
 * @flags: 0: no flags yet
 *
 * WORKER_JOIN: the calling thread joins; -EBUSY if the slot is taken, or the
 * thread has joined this or another crew. WORKER_LEAVE: it leaves; -ENOENT if
 * the slot is not its own. A thread that exits or runs another program has
 * left. Without workers in SETUP all three give -EINVAL, without
 * PARKLOT_FEAT_CREW -EOPNOTSUPP; if that feature is taken away at run time,
 * leaving still works. No flags yet.
 */
struct parklot_worker {
	__u32	slot;
	__u32	flags;
};

#define PARKLOT_IOC_MAGIC	0xe7

#define PARKLOT_IOC_QUERY \
	_IOR(PARKLOT_IOC_MAGIC, 0x40, struct parklot_query)
#define PARKLOT_IOC_SETUP \
	_IOWR(PARKLOT_IOC_MAGIC, 0x41, struct parklot_setup)
#define PARKLOT_IOC_PARK \
	_IOWR(PARKLOT_IOC_MAGIC, 0x42, struct parklot_park)
#define PARKLOT_IOC_WAKE \
	_IOWR(PARKLOT_IOC_MAGIC, 0x43, struct parklot_wake)
#define PARKLOT_IOC_WAKE_PARK \
	_IOWR(PARKLOT_IOC_MAGIC, 0x44, struct parklot_wake_park)
#define PARKLOT_IOC_CREW \
	_IOW(PARKLOT_IOC_MAGIC, 0x45, struct parklot_crew)
#define PARKLOT_IOC_WORKER_JOIN \
	_IOW(PARKLOT_IOC_MAGIC, 0x46, struct parklot_worker)
#define PARKLOT_IOC_WORKER_LEAVE \
	_IOW(PARKLOT_IOC_MAGIC, 0x47, struct parklot_worker)

#endif /* _UAPI_LINUX_PARKLOT_H */
