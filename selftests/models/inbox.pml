/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * inbox: a worker takes the task that a thread has pushed, and does not notify
 * for it (lib/queue/ready.h; pl__inbox_drain_all_of() in ready.c; look_around()
 * in run.c; pl__work_anywhere() in ready.c).
 *
 * A worker that runs spawns a task, looks in the inbox, and then runs its own
 * task, for as long as the other one has not run.
 * Another worker is about to park. The thread pushes its task meanwhile, and
 * wakes a worker only if one is idle. A parked worker beside a task in a queue
 * is a deadlock.
 *
 * MUTANT 1: the look of the idle worker has the events before the deque
 * MUTANT 2: the worker takes its own task before it has queued the other
 * MUTANT 3: that the inbox is empty is seen before what the worker spawned
 * MUTANT 4: the look of the idle worker has the inbox last
 */
#ifndef MUTANT
#define MUTANT 0
#endif

bit inbox, deque, events;	/* tasks; the latter two are of the worker */
bit late_deque;
bit nr_idle, is_signalled;
bool has_run;			/* the thread's task */
bool is_long;			/* the worker is in its own task */

active proctype thread()
{
	inbox = 1;
	/* pl__notify_one(), [idle-b] */
	if
	:: nr_idle -> is_signalled = 1
	:: else
	fi
}

/* Runs its own task, as it has only that or took it as the oldest. */
active proctype worker()
{
	bit taken, own;

#if MUTANT == 3
	late_deque = 1;
#else
	deque = 1;
#endif
	atomic { taken = inbox; inbox = 0 };
#if MUTANT == 2
	atomic { own = deque; deque = 0 };
	events = taken;			/* [inbox-a] */
#else
	events = taken;			/* [inbox-a] */
#if MUTANT == 3
	late_deque == 0;
#endif
	atomic { own = deque; deque = 0 };
#endif
	is_long = own;
	do
	:: own && has_run -> break
	:: atomic { !own && events -> events = 0; has_run = true; break }
	:: atomic { !own && !events && inbox -> inbox = 0; has_run = true; break }
	:: !own && has_run -> break
	od
}

/* Takes either task; its own look finds the inbox, too. */
active proctype other()
{
	bool found;

	do
	:: has_run -> break
	:: atomic { deque -> deque = 0; break }
	:: atomic { events -> events = 0; has_run = true; break }
	:: atomic { inbox -> inbox = 0; has_run = true; break }
	:: atomic { !has_run && !deque && !events && !inbox ->
		    is_signalled = 0 };
		nr_idle = 1;			/* [idle-a] */
		found = false;
		/* [inbox-b] */
#if MUTANT == 1
		found = inbox;
		found = found || events;
		found = found || deque;
#elif MUTANT == 4
		found = deque;
		found = found || events;
		found = found || inbox;
#else
		found = inbox;
		found = found || deque;
		found = found || events;
#endif
		if
		:: found
		:: !found -> is_signalled || has_run
		fi;
		nr_idle = 0
	od
}

#if MUTANT == 3
/* A late store reaches memory at any time. */
active proctype memory()
{
end:	late_deque == 1;
	atomic { deque = 1; late_deque = 0 }
}
#endif
