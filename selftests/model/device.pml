/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * device: PARK against WAKE, timeouts and signals (module/lot.c; the protocol
 * in include/uapi/linux/parklot.h).
 *
 * Two parkers; a waker with a task, who wakes one; and who stops them, waking
 * all: he takes the whole list to a list of his own, and drops the lock
 * between two sleepers. One parker times out or gets a
 * signal, which restarts the call as it was. A sleeper stands on its
 * thread's stack: who touches it after the thread left it is caught. Who
 * sleeps for ever is a deadlock; and so many parkers report WOKEN as the
 * wakers counted.
 *
 * MUTANT 1: [park-a] is left out: nr_parked is seen late
 * MUTANT 2: [park-b] is left out: the waker's seq is seen late
 * MUTANT 3: seq is not compared once listed
 * MUTANT 4: a timeout or a signal does not look whether a waker was first
 * MUTANT 5: the task state is set after the reason was looked at
 * MUTANT 6: the waker reads the sleeper's task after it has set the reason
 * MUTANT 7: the waker wakes without having set the reason
 * MUTANT 8: a wake is not counted
 * MUTANT 9: who times out does not take nr_parked down
 * MUTANT 10: the waker takes the sleeper off after it has unlocked
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_PARKERS	2
#define NOBODY		NR_PARKERS
#define NR_WAKERS	2

mtype = { NONE, WOKEN, CHANGED, TIMEDOUT, RESTART };

bool queued, is_done;
byte seq, nr_parked;
bool stopped;
bool locked;

/* Where a sleeper is listed: nowhere, in the lot, or with waker 0 or 1. */
#define OFF	0
#define LOT	1
#define WITH	2
byte on[NR_PARKERS];
mtype reason[NR_PARKERS];	/* the sleeper's */
bool alive[NR_PARKERS];		/* its stack frame */
bool is_running[NR_PARKERS];	/* the state of the task */
bool is_disturbed;		/* parker 0 has a signal */
byte nr_disturbances = 1;	/* to come, for parker 0 */

bool late_parked, late_seq;
short unreported;	/* counted by wakers, not reported by parkers */
byte nr_ended;

#define lock()		!locked -> locked = true
#define unlock()	locked = false
#define no_task_on(list)	(on[0] != (list) && on[1] != (list))

/* What only the lock's holder looks at is one step with the lock. */

/* dequeue() */
inline give_up(why)
{
	d_step {
		!locked;
		if
#if MUTANT == 4
		:: true ->
#else
		:: reason[me] == NONE ->
#endif
			on[me] = OFF;
#if MUTANT != 9
			nr_parked--;
#endif
			reason[me] = why
#if MUTANT != 4
		:: else
#endif
		fi;
		result = reason[me]
	}
}

/* doze(): schedule() returns for whoever made the task run again. */
inline doze()
{
	do
	::
#if MUTANT == 5
		atomic {
			result = reason[me];
			if
			:: result != NONE -> break
			:: else
			fi
		};
		is_running[me] = false;
#else
		is_running[me] = false;
		atomic {
			result = reason[me];		/* [wake-b] */
			if
			:: result != NONE -> break
			:: else
			fi
		};
#endif
		if
		:: me == 0 && is_disturbed ->
			is_disturbed = false;
			give_up(RESTART);
			break
		:: else
		fi;
		if
		:: is_running[me]
		:: me == 0 && nr_disturbances > 0 ->
			nr_disturbances--;
			if
			:: is_disturbed = true		/* a signal */
			:: give_up(TIMEDOUT); break
			fi
		fi
	od
}

proctype parker(byte me)
{
	byte expected;
	bool was_stopped, same;
	mtype result;

again:
	atomic { expected = seq; was_stopped = stopped }
	atomic {
		if
		:: queued -> queued = false; is_done = true; goto again
		:: !queued && was_stopped -> goto out
		:: else
		fi
	};
restart:
	atomic {
		lock();
		alive[me] = true;
		on[me] = LOT;
#if MUTANT == 1
		late_parked = true
#else
		nr_parked++			/* [park-a] */
#endif
	};
#if MUTANT == 1
	same = (seq == expected && stopped == was_stopped);
#endif
	d_step {
#if MUTANT == 3
		same = true;
#elif MUTANT != 1
		same = (seq == expected && stopped == was_stopped);
#endif
		nr_parked = nr_parked + late_parked;
		late_parked = false;
		if
		:: !same -> on[me] = OFF; nr_parked--; reason[me] = CHANGED
		:: else
		fi;
		unlock()
	};
	if
	:: same -> doze()
	:: else -> result = CHANGED
	fi;
	atomic {
		assert(reason[me] == result);
		alive[me] = false;
		reason[me] = NONE;
		is_running[me] = true;
		if
		:: result == RESTART -> goto restart
		:: result == WOKEN -> unreported--
		:: else
		fi;
		goto again
	};
out:
	nr_ended++
}

/* take(), one sleeper of @list, which there is; and wake_tasks() */
inline take_and_wake(list)
{
	d_step {
		victim = (on[0] == list -> 0 : 1);
		assert(on[victim] == list && alive[victim]);
#if MUTANT == 10
		unlock()
#endif
	};
#if MUTANT == 6
	reason[victim] = WOKEN;			/* [wake-a] */
	d_step {
		assert(alive[victim]);		/* its task */
#else
	d_step {
#endif
		assert(alive[victim]);
		on[victim] = OFF;
		nr_parked--;
#if MUTANT != 6 && MUTANT != 7
		reason[victim] = WOKEN;		/* [wake-a] */
#endif
		woken++;
		is_more = !no_task_on(list);
#if MUTANT != 10
		unlock()
#endif
	};
	is_running[victim] = true
}

/* parklot_lot_wake(), with one sleeper to a hold of the lock. */
inline wake(nr, own)
{
	if
	:: nr_parked == 0 -> is_more = false	/* [park-b] */
	:: nr_parked > 0 ->
		atomic {
			lock();
			from = LOT;
			if
			:: nr >= nr_parked ->
				from = own;
				on[0] = (on[0] == LOT -> own : on[0]);
				on[1] = (on[1] == LOT -> own : on[1])
			:: else
			fi;
			is_more = !no_task_on(from);
			if
			:: !is_more -> unlock()
			:: else
			fi
		};
		do
		:: is_more ->
			take_and_wake(from);
			if
			:: woken == nr -> break
			:: woken < nr && is_more ->
				atomic { lock(); is_more = !no_task_on(from);
					 if
					 :: !is_more -> unlock()
					 :: else
					 fi }
			:: else -> break
			fi
		:: else -> break
		od;
		assert(no_task_on(own))
	fi;
	d_step {
#if MUTANT == 8
		unreported = unreported + (woken > 1 -> woken - 1 : woken);
#else
		unreported = unreported + woken;
#endif
		woken = 0; victim = 0; from = 0; is_more = false; nr_ended++
	}
}

proctype waker(byte nr, own)
{
	byte victim, from, woken;
	bool is_more;

	if
	:: own == WITH ->
		queued = true;
#if MUTANT == 2
		late_seq = true
#else
		seq++
#endif
	:: own != WITH ->
		is_done;
		stopped = true
	fi;
	wake(nr, own);
	if
	:: own == WITH
	:: own != WITH ->
		nr_ended == NR_PARKERS + NR_WAKERS;
		assert(unreported == 0 && nr_parked == 0)
	fi
}

#if MUTANT == 2
active proctype memory()
{
end:	do
	:: atomic { late_seq -> late_seq = false; seq++ }
	od
}
#endif

init {
	atomic {
		reason[0] = NONE;
		reason[1] = NONE;
		is_running[0] = true;
		is_running[1] = true;
		run parker(0);
		run parker(1);
		run waker(1, WITH);
		run waker(NR_PARKERS, WITH + 1)
	}
}
