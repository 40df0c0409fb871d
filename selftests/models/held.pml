/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * held: a task that is on its way to the queue of those that are held back,
 * when none is held back any more (lib/sched/held.h's drawing; pl__held_put()
 * and pl__held_notify() in held.c; pl__relief_recheck() in relief.c).
 *
 * One worker finds the task and moves it, and has another one to run then, for
 * as long as the task has not begun; the stalled worker comes to its next task,
 * which is as long. A third worker is idle, or about to park. It runs the task,
 * so a parked worker beside it is a deadlock.
 *
 * MUTANT 1: the worker that has moved the task does not look again
 * MUTANT 2: it looks again before the task is in the queue
 * MUTANT 3: that the task is in the queue is seen late
 * MUTANT 4: the stalled worker does not notify
 */
#ifndef MUTANT
#define MUTANT 0
#endif

bit deque = 1, held;		/* where the task is, but for its move */
bit late_held;			/* a store that is under way */
bit is_stalled = 1;		/* as many as the limit says */
bit nr_idle;
bool changed, listed, woken;	/* the lot of the worker that is idle */
bool has_begun;

/* In the deque it may be found, and moved. */
#define has_work	(deque || (held && !is_stalled))

/* pl__relief_recheck(), and the notification */
inline recheck()
{
	if
	:: !is_stalled && has_work ->
		if
		:: nr_idle ->
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

active proctype mover()
{
	if
	:: atomic { deque && !is_stalled -> deque = 0; has_begun = true }
	:: atomic { deque && is_stalled -> deque = 0 };
#if MUTANT == 2
		recheck();
#endif
#if MUTANT == 3
		late_held = 1;
#else
		held = 1;
#endif
#if MUTANT != 1 && MUTANT != 2
		recheck()
#endif
	fi;
	has_begun
}

active proctype stalled()
{
	is_stalled = 0;			/* [relief-a] */
#if MUTANT != 4
	recheck();
#endif
	has_begun
}

active proctype other()
{
	do
	:: has_begun -> break
	:: atomic { held && !is_stalled -> held = 0; has_begun = true; break }
	:: atomic { !has_begun && !(held && !is_stalled) -> changed = false };
		nr_idle = 1;			/* [idle-a] */
		/* The deque is looked at last; the task may be moved before. */
		if
		:: held && !is_stalled
		:: !(held && !is_stalled) ->	/* [relief-b] */
			if
			:: deque
			:: !deque ->
				if
				:: atomic { !changed -> listed = true };
					if
					:: atomic { woken -> woken = false }
					:: has_begun
					fi
				:: changed
				fi
			fi
		fi;
		nr_idle = 0
	od
}

#if MUTANT == 3
/* A late store reaches memory at any time. */
active proctype memory()
{
end:	late_held == 1;
	atomic { held = 1; late_held = 0 }
}
#endif
