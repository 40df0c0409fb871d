/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * device: PARK against WAKE, timeouts and signals (module/lot.c; the protocol
 * in include/uapi/linux/parklot.h).
 *
 * Two parkers; a waker with a task, which wakes one; and a waker of all, which
 * stops them: it marks the parked sleepers as due, and drops the lock between
 * two sleepers. One parker times out or gets a signal, which restarts the call
 * as it was. A sleeper lies on its thread's stack: an access after the thread
 * has left it is an error. A parker that sleeps for ever is a deadlock. As many
 * parkers report WOKEN as the wakers counted. A waker that finds sleepers takes
 * one, even if another waker of all has begun. Each sleeper that was parked
 * when a waker of all began is off the lot when that waker ends.
 *
 * MUTANT 1: [park-a] is left out: nr_parked is seen late
 * MUTANT 2: [park-b] is left out: the waker's seq is seen late
 * MUTANT 3: seq is not compared once listed
 * MUTANT 4: a timeout or a signal does not look whether a waker was first
 * MUTANT 5: the task state is set after the reason was read
 * MUTANT 6: the waker reads the sleeper's task after it has set the reason
 * MUTANT 7: the waker wakes without having set the reason
 * MUTANT 8: a wake is not counted
 * MUTANT 9: a parker that times out does not take nr_parked down
 * MUTANT 10: the waker removes the sleeper after it has unlocked
 * MUTANT 11: the due sleepers are left to the waker that marked them
 * MUTANT 12: the waker of all ends once it has taken one due sleeper
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

/* The place of a sleeper: on no list, on the lot, or there and due. */
#define OFF	0
#define LOT	1
#define DUE	2
byte on[NR_PARKERS];
bool was_parked[NR_PARKERS];	/* when the waker of all began */
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

/* Accesses that only the lock's holder sees are one step with the lock. */

/* lot_dequeue() */
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
			was_parked[me] = false;
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

/* lot_sleep(): schedule() returns after any wake, a spurious one included. */
inline lot_sleep()
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
	:: same -> lot_sleep()
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

/* Has the lot a sleeper for this waker? The due ones come first. */
#define has_due		(on[0] == DUE || on[1] == DUE)
#define is_one_left	(on[0] == LOT || on[1] == LOT)
#if MUTANT == 11
#define can_take	(only_due && has_due || !only_due && is_one_left)
#else
#define can_take	(has_due || !only_due && is_one_left)
#endif

/* lot_take() of one sleeper, with can_take; and batch_wake_tasks() */
inline take_and_wake()
{
	d_step {
		if
#if MUTANT == 11
		:: only_due ->
#else
		:: has_due ->
#endif
			victim = (on[0] == DUE -> 0 : 1)
		:: else -> victim = (on[0] == LOT -> 0 : 1)
		fi;
		assert(on[victim] != OFF && alive[victim]);
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
		was_parked[victim] = false;
		nr_parked--;
#if MUTANT != 6 && MUTANT != 7
		reason[victim] = WOKEN;		/* [wake-a] */
#endif
		woken++;
#if MUTANT != 10
		unlock()
#endif
	};
	is_running[victim] = true
}

/* The first hold of the lock; only there are sleepers marked. */
inline begin()
{
	lock();
	assert(nr_parked == 0 || has_due || is_one_left);
	if
#if MUTANT == 11
	:: limit >= nr_parked && is_all ->
#else
	:: limit >= nr_parked ->
#endif
		limit = nr_parked;
		only_due = true;
		on[0] = (on[0] == LOT -> DUE : on[0]);
		on[1] = (on[1] == LOT -> DUE : on[1]);
		was_parked[0] = was_parked[0] || (is_all && on[0] == DUE);
		was_parked[1] = was_parked[1] || (is_all && on[1] == DUE)
	:: else
	fi;
	/* Even if another waker has marked sleepers. */
	assert(nr_parked == 0 || can_take)
}

/* lot_wake_many(), with one sleeper to a hold of the lock. */
inline wake()
{
	if
	:: nr_parked == 0			/* [park-b] */
	:: nr_parked > 0 ->
		atomic { begin() };
		do
		:: limit > woken && can_take ->
			take_and_wake();
			if
#if MUTANT == 12
			:: woken > 0 -> break
#endif
			:: woken == limit -> break
			:: woken < limit -> atomic { lock() }
			fi
		:: else -> unlock(); break
		od;
		assert(!is_all || !was_parked[0] && !was_parked[1])
	fi;
	d_step {
#if MUTANT == 8
		unreported = unreported + (woken > 1 -> woken - 1 : woken);
#else
		unreported = unreported + woken;
#endif
		woken = 0; victim = 0; limit = 0; only_due = false; nr_ended++
	}
}

proctype waker(byte limit; bool is_all)
{
	byte victim, woken;
	bool only_due;

	if
	:: !is_all ->
		queued = true;
#if MUTANT == 2
		late_seq = true
#else
		seq++
#endif
	:: is_all ->
		is_done;
		stopped = true
	fi;
	wake();
	if
	:: !is_all
	:: is_all ->
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
		run waker(1, false);
		run waker(NR_PARKERS, true)
	}
}
