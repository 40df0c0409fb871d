/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * remind: work that was listed before the reminder was asked for is found by
 * its function (lib/time/timer.c: pl__timers_remind(); timer_thread.c:
 * remind()).
 *
 * Two callers list work, and set the reminder unless one is set. The thread
 * takes the reminder and all the work that it sees. When nothing moves any
 * more, no work is left.
 *
 * MUTANT 1: [remind-a] is no barrier: the caller's work is seen late
 * MUTANT 2: [remind-b] is no barrier: the thread's change of the reminder is
 * seen late
 * MUTANT 3: the caller looks for a reminder before it lists its work
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_CALLERS	2

bool listed[NR_CALLERS], late_work[NR_CALLERS];
bool is_set, is_late;
byte nr_ended;

inline list_work()
{
#if MUTANT == 1
	late_work[me] = true
#else
	listed[me] = true			/* [remind-a] */
#endif
}

proctype caller(byte me)
{
	bool was_set;

#if MUTANT == 3
	was_set = is_set;
	list_work();
#else
	list_work();
	was_set = is_set;
#endif
	if
	:: was_set
	:: !was_set -> is_set = true
	fi;
	nr_ended++
}

active proctype thread()
{
end:	do
	:: is_set ->
#if MUTANT == 2
		is_late = true;
#else
		is_set = false;			/* [remind-b] */
#endif
		d_step {
			listed[0] = false;
			listed[1] = false
		}
#if MUTANT == 2
		!is_late
#endif
	od
}

#if MUTANT == 1 || MUTANT == 2
active proctype memory()
{
end:	do
	:: atomic { late_work[0] -> late_work[0] = false; listed[0] = true }
	:: atomic { late_work[1] -> late_work[1] = false; listed[1] = true }
	:: atomic { is_late -> is_late = false; is_set = false }
	od
}
#endif

active proctype observer()
{
	atomic {
		timeout;
		assert(nr_ended == NR_CALLERS && !listed[0] && !listed[1])
	}
}

init {
	atomic {
		run caller(0);
		run caller(1)
	}
}
