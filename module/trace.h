/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints, see parklot-module(4): /sys/kernel/tracing/events/parklot. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM parklot

#if !defined(PARKLOT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define PARKLOT_TRACE_H

#include <linux/parklot.h>
#include <linux/tracepoint.h>

/* A park ends after @ns nanoseconds. */
TRACE_EVENT(parklot_park,
	TP_PROTO(u32 lot, int reason, u64 ns),
	TP_ARGS(lot, reason, ns),
	TP_STRUCT__entry(
		__field(u32, lot)
		__field(int, reason)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->lot = lot;
		__entry->reason = reason;
		__entry->ns = ns;
	),
	TP_printk("lot=%u reason=%s ns=%llu", __entry->lot,
		  __print_symbolic(__entry->reason,
				   { PARKLOT_WOKEN, "woken" },
				   { PARKLOT_CHANGED, "changed" },
				   { PARKLOT_TIMEDOUT, "timedout" },
				   { PARKLOT_POLLED, "polled" },
				   { PARKLOT_INTERRUPTED, "interrupted" },
				   { PARKLOT_CALLED, "called" }),
		  __entry->ns)
);

/* A lot is served: a waker asked for @nr sleepers, and took @woken. */
TRACE_EVENT(parklot_wake,
	TP_PROTO(u32 lot, u32 nr, u32 woken),
	TP_ARGS(lot, nr, woken),
	TP_STRUCT__entry(
		__field(u32, lot)
		__field(u32, nr)
		__field(u32, woken)
	),
	TP_fast_assign(
		__entry->lot = lot;
		__entry->nr = nr;
		__entry->woken = woken;
	),
	TP_printk("lot=%u nr=%u woken=%u", __entry->lot, __entry->nr,
		  __entry->woken)
);

/* Of a crew: the worker's slot, and the number of running workers after it. */
DECLARE_EVENT_CLASS(parklot_worker,
	TP_PROTO(u32 slot, u32 nr_running),
	TP_ARGS(slot, nr_running),
	TP_STRUCT__entry(
		__field(u32, slot)
		__field(u32, nr_running)
	),
	TP_fast_assign(
		__entry->slot = slot;
		__entry->nr_running = nr_running;
	),
	TP_printk("slot=%u running=%u", __entry->slot, __entry->nr_running)
);

/* The current thread sleeps in the kernel, and runs again. */
DEFINE_EVENT(parklot_worker, parklot_blocked,
	TP_PROTO(u32 slot, u32 nr_running),
	TP_ARGS(slot, nr_running)
);

DEFINE_EVENT(parklot_worker, parklot_unblocked,
	TP_PROTO(u32 slot, u32 nr_running),
	TP_ARGS(slot, nr_running)
);

/* A parked worker is called in place of a worker that does not run. */
DEFINE_EVENT(parklot_worker, parklot_replace,
	TP_PROTO(u32 slot, u32 nr_running),
	TP_ARGS(slot, nr_running)
);

#endif /* PARKLOT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
