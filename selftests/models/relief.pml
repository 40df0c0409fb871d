/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * relief: tasks that have not started are held back while too many workers are
 * stalled, and run once they are not (lib/sched/relief.h's drawing;
 * pl__relief_recheck(), relief_mark(), relief_limit_raise() in relief.c;
 * pl__steal_to_run(), pl__work_anywhere() in steal.c;
 * pl__worker_look_and_park() in worker_park.c).
 *
 * The target is two, and so is the limit at first. Two workers are stalled: one
 * of them until the end, the other may come to its next task, which is long as
 * well and its own. The relief finds tasks that have not started. So a task
 * that is left to the parked relief is a deadlock. sysmon raises the limit once
 * while tasks are held back, or may try to mark the relief and fail. It does
 * not raise a limit that holds nothing back.
 *
 * MUTANT 1: [relief-a] is left out: nr_stalled is seen to fall late
 * MUTANT 2: [relief-b] is left out: nr_idle is seen to rise late
 * MUTANT 3: a worker that takes its mark back does not notify
 * MUTANT 4: the relief looks whether tasks are held back before it counts as
 * idle
 * MUTANT 5: sysmon raises the limit and does not notify
 * MUTANT 6: sysmon fails to mark a worker and does not notify
 * MUTANT 7: a mark that fails stays counted
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_TASKS	2
#define TARGET		2

byte deque = NR_TASKS;		/* tasks that have not started */
byte unstarted, nr_begun;
byte nr_stalled = 2, limit = TARGET, nr_idle;
byte late_stalled, late_idle;	/* stores that are under way */
bool is_back;			/* the worker that is stalled for a while */
bool changed, listed, woken;	/* the relief's lot */

#define is_held		(nr_stalled >= limit)
#define all_begun	(nr_begun == NR_TASKS)
#define has_work	(deque > 0 || (unstarted > 0 && !is_held))
/* Of the stalled two, and the relief. */
#define nr_running	(3 - nr_stalled - nr_idle)
#define is_notify_due	(nr_idle > 0 && nr_running < TARGET)

/* pl__relief_recheck(): each line is one look. */
inline recheck()
{
	if
	:: !is_held && has_work ->
		if
		:: is_notify_due ->
			d_step {
				if
				:: listed -> listed = false; woken = true
				:: else -> changed = true
				fi
			}
		:: else
		fi
	:: else
	fi
}

active proctype stalled()
{
	if
	:: skip -> all_begun		/* stays in its task */
	:: skip ->
#if MUTANT == 1
		late_stalled = 1;
#else
		nr_stalled--;			/* [relief-a] */
#endif
		is_back = true;
#if MUTANT != 3
		recheck()
#endif
	fi
}

active proctype relief_worker()
{
	bool held;

	do
	:: all_begun -> break
	:: else ->
		changed = false;
		/* pl__steal_to_run() */
		do
		:: atomic { deque > 0 && is_held -> deque--; unstarted++ }
		:: atomic { deque > 0 && !is_held -> deque--; nr_begun++ }
		:: atomic { deque == 0 && unstarted > 0 && !is_held ->
			    unstarted--; nr_begun++ }
		:: atomic { deque == 0 && (unstarted == 0 || is_held) ->
			    break }
		od;
#if MUTANT == 4
		held = is_held;
#endif
#if MUTANT == 2
		late_idle = 1;
#else
		nr_idle++;			/* [idle-a] */
#endif
#if MUTANT != 4
		held = is_held;			/* [relief-b] */
#endif
		if
		:: deque == 0 && (held || unstarted == 0) ->
			if
			:: atomic { !changed -> listed = true };
				if
				:: atomic { woken -> woken = false }
				:: all_begun
				fi
			:: changed
			fi
		:: else
		fi;
		atomic {
			if
			:: late_idle > 0 -> late_idle = 0
			:: else -> nr_idle--
			fi
		}
	od
}

/*
 * The worker that is back counts as running, so the limit does not matter to it
 * until it is stalled again; then sysmon marks it, which has no step here.
 */
active proctype sysmon()
{
	bool fails;

	if
	:: fails = true
	:: fails = false
	fi;
	do
	:: all_begun -> break
	:: atomic { !all_begun && !is_back && late_stalled == 0 && is_held &&
		    limit == TARGET && (deque > 0 || unstarted > 0) ->
		    limit++ };
#if MUTANT != 5
		recheck()
#else
		skip
#endif
	:: atomic { !all_begun && fails && is_back && late_stalled == 0 &&
		    nr_stalled == 1 -> nr_stalled++ };
		/* The worker has come to its next task: not marked. */
#if MUTANT != 7
		nr_stalled--;
#endif
#if MUTANT != 6
		recheck();
#endif
		break
	od
}

#if MUTANT == 1 || MUTANT == 2
/* Late stores reach memory at any time. */
active proctype memory()
{
end:	do
	:: atomic { late_stalled > 0 -> nr_stalled--; late_stalled = 0 }
	:: atomic { late_idle > 0 -> nr_idle++; late_idle = 0 }
	od
}
#endif
