/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "debug/stat_export.h"
#include "ring/ring.h"
#include "run/run.h"
#include "time/timer_impl.h"

#define ENTRY(w, base, field, said, f) {				\
	.name = #said, .where = (w), .flags = (f),			\
	.size = sizeof(((base *)0)->field), .offset = offsetof(base, field), \
}
#define RT(field, said, f) \
	ENTRY(PL__EXPORT_RT, struct pl__rt, field, said, f)
#define GROUP(field, said, f) \
	ENTRY(PL__EXPORT_GROUP, struct pl__group, field, said, f)
#define STRIPE(i) \
	RT(outside[i].spawned, tasks_spawned, 0)
#define STRIPES_4(i) \
	STRIPE(i), STRIPE((i) + 1), STRIPE((i) + 2), STRIPE((i) + 3)
#define STRIPES_16(i) \
	STRIPES_4(i), STRIPES_4((i) + 4), STRIPES_4((i) + 8), \
	STRIPES_4((i) + 12)
/* Each in a sum, and by itself. */
#define CHANGES(why, sum, said) \
	GROUP(nr_changes[PL__##why], sum, 0), \
	GROUP(nr_changes[PL__##why], said, 0)
#define WORKER(field, said) \
	ENTRY(PL__EXPORT_WORKER, struct pl__worker, stat.field, said, 0)
#define DELAYS(field, said) \
	ENTRY(PL__EXPORT_WORKER, struct pl__worker, field.bin[0], said, \
	      PL__EXPORT_HIST)
#define TIMERS(field, said) \
	ENTRY(PL__EXPORT_TIMERS, struct pl__timers, field, said, 0)
#define BUCKET(field, said) \
	ENTRY(PL__EXPORT_BUCKET, struct bucket, field, said, 0)
#define RING(field, said) \
	ENTRY(PL__EXPORT_RING, struct pl__ring, field, said, 0)
#define PLACE(field) \
	ENTRY(PL__EXPORT_PLACE, struct pl__worker, field, field, 0)

/*
 * The counters that pl_stat_read() adds up, and what leads to the threads of
 * workers that have a task, and to the time that they are in it.
 */
static const struct pl__stat_export entries[] = {
	WORKER(spawned, tasks_spawned),
	STRIPES_16(0),
	STRIPES_16(16),
	STRIPES_16(32),
	STRIPES_16(48),
	RT(spawned_past, tasks_spawned, 0),
	RT(ended_outside, tasks_spawned, PL__EXPORT_MINUS),
	WORKER(ended, tasks_ended),
	RT(ended_past, tasks_ended, 0),
	WORKER(switches, switches),
	WORKER(steals, steals),
	WORKER(parks, parks),
	WORKER(wakes, wakes),
	GROUP(wakes_outside, wakes, 0),
	GROUP(lots.nr_empty, wakes_empty, 0),
	WORKER(signals, signals),
	WORKER(nosignals, nosignals),
	BUCKET(added, timers_added),
	TIMERS(fired, timers_fired),
	BUCKET(fired, timers_fired),
	BUCKET(died_listed, timers_deleted),
	BUCKET(died_heaped, timers_deleted),
	RING(nr_added, io_submitted),
	RING(nr_done, io_completed),
	RING(nr_enters, io_enters),
	DELAYS(io_latency, io_delay),
	DELAYS(deadline_latency, timer_delay),
	DELAYS(io_latency, queue_delay),
	DELAYS(spawn_latency, queue_delay),
	RT(nr_blocks, blocks, 0),
	GROUP(lots.nr_called, blocks, 0),
	RT(nr_all_blocked, all_blocked, 0),
	RT(nr_stalls, stalls, 0),
	RT(nr_stalls_over, stalls_over, 0),
	GROUP(nr_stalled, workers_stalled, PL__EXPORT_GAUGE),
	GROUP(active, workers_active, PL__EXPORT_GAUGE),
	CHANGES(RAISED_WAITS, active_raised, raised_waits),
	CHANGES(RAISED_STUCK, active_raised, raised_stuck),
	CHANGES(RAISED_TRIAL, active_raised, raised_trial),
	CHANGES(RAISED_BACK, active_raised, raised_back),
	CHANGES(LOWERED_BACK, active_lowered, lowered_back),
	CHANGES(LOWERED_TRIAL, active_lowered, lowered_trial),
	GROUP(aside.nr_put, set_aside, 0),
	GROUP(aside.nr_spares, spares, 0),
	GROUP(background.nr, background_ready, PL__EXPORT_GAUGE),
	GROUP(background.nr_late, background_late, 0),
	RT(cfg.max_tasks, max_tasks, PL__EXPORT_GAUGE),
	RT(task_limit.nr_refused, spawns_refused, 0),
	RT(task_limit.nr_waited, spawns_waited, 0),
	GROUP(task_limit.nr_refused, spawns_refused, 0),
	GROUP(task_limit.nr_waited, spawns_waited, 0),
	RT(stacks.nr_out, stacks, PL__EXPORT_GAUGE),
	GROUP(nr_alive, workers, PL__EXPORT_GAUGE),
	GROUP(nr_idle, workers_parked, PL__EXPORT_GAUGE),
	GROUP(nr_blocked, workers_blocked, PL__EXPORT_GAUGE),
	PLACE(current),
	PLACE(tid),
	PLACE(tick),
	PLACE(sysmon.task_since),
	PLACE(sysmon.ran_since),
};

_Static_assert(PL__NR_STRIPES == 64, "all of them are entries");

/* Hidden, but not static: the note below refers to it. */
extern struct pl__stat_export_table pl__stat_export_table;
struct pl__stat_export_table pl__stat_export_table __attribute__((used)) = {
	.magic		= "parklot",
	.version	= PL__EXPORT_VERSION,
	.nr		= ARRAY_SIZE(entries),
	.entries	= (uintptr_t)entries,
	.rt		= (uintptr_t)&pl__rt,
	.library	= PARKLOT_VERSION,
	.state		= offsetof(struct pl__rt, state),
	.backend	= offsetof(struct pl__rt, backend),
	.workers	= offsetof(struct pl__rt, workers),
	.nr_workers	= offsetof(struct pl__rt, nr_started),
	.timers		= offsetof(struct pl__rt, timers),
	.ring		= offsetof(struct pl__worker, ring_seen),
	.buckets	= offsetof(struct pl__timers, buckets),
	.nr_buckets	= offsetof(struct pl__timers, nr_buckets),
	.bucket_size	= sizeof(struct bucket),
	.ring_kind	= offsetof(struct pl__ring, kind),
	.groups		= offsetof(struct pl__rt, groups),
	.nr_groups	= offsetof(struct pl__rt, nr_groups),
	.group_name	= offsetof(struct pl__group, name),
};

/* An Elf64_Nhdr, the owner, and the description (stat_export.h). */
__asm__(
	"	.pushsection .note.parklot, \"a\", %note\n"
	"	.balign	4\n"
	"	.long	8, 8, 1\n"
	"	.asciz	\"parklot\"\n"
	"1:	.quad	pl__stat_export_table - 1b\n"
	"	.popsection\n");

void pl__stat_export_start(uint64_t now_ns)
{
	pl__stat_export_table.started_ns = now_ns;
}
