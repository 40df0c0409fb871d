/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * orphan_ring: requests in flight on the ring of a stalled worker complete
 * (lib/run/run.h's drawings; sleep_long() in sysmon.c;
 * pl__sysmon_notify_io(); steal_one() in steal.c; pl__ring_poll_for_owner(),
 * pl__ring_wait() in ring.c).
 *
 * The worker adds requests, and is stalled after one until that is complete,
 * or is not. Then it is idle, and may be woken to be a spare, which blocks
 * until all are complete; at last it waits in its ring. The kernel completes a
 * request at any time. A thread that polls holds the ring's lock. So a
 * completion that stays in the ring is a deadlock. A thief that polls also
 * takes the doorbell's completion, for which the owner waits; so a doorbell that was rung and does
 * not end the owner's wait is one, too. Sysmon waits for a change whenever it
 * sees nothing new, or its looks would hide the deadlock.
 *
 * MUTANT 1: [orphan-b] is left out: the request is seen late
 * MUTANT 2: [orphan-a] is left out: that sysmon sleeps is seen late
 * MUTANT 3: sysmon looks for requests before it says that it sleeps
 * MUTANT 4: sysmon does not wait for completions in the orphaned ring
 * MUTANT 5: the thief that polls for the owner does not tell it of the
 * doorbell
 * MUTANT 6: the owner clears the doorbell's mark before it waits
 * MUTANT 7: the ring is not ready when it is orphaned: nothing is submitted
 * MUTANT 8: the waker looks whether sysmon polls before it sets the word
 * MUTANT 9: sysmon sleeps though requests were added to an orphaned ring
 * MUTANT 10: a thief that finds the lock of a ready ring taken leaves it at
 * that
 * MUTANT 11: [orphan-b] is left out where an idle worker becomes a spare
 */
#ifndef MUTANT
#define MUTANT 0
#endif

mtype = { OWNED, ORPHANED, ORPHAN_READY };

mtype ring_state = OWNED;
byte queued, submitted, complete, done;	/* requests */
bool in_task, stalled;
byte nr_added, ready_nr;		/* how many when it was ready */
byte tick, stalled_tick;		/* tasks taken; when it was orphaned */
bool asleep, polling, event;		/* sysmon */
bool locked, bell, bell_seen, woken;	/* the ring */
byte late_queued;
bool late_asleep;

#define has_io		(queued + submitted + complete > 0)
#define is_at_risk	(in_task && has_io)
#if MUTANT == 9
# define is_due		(is_at_risk && ring_state == OWNED)
#else
# define is_due		(is_at_risk && \
			 (ring_state == OWNED || ready_nr != nr_added))
#endif
#define moves_on	(!stalled || !is_at_risk || stalled_tick != tick)
#define NR_REQS		2
#define all_done	(done == NR_REQS && woken)

/* The holder of the lock submits, and reaps completions. */
inline poll()
{
	d_step {
		submitted = submitted + queued;
		queued = 0;
		done = done + complete;
		complete = 0;
		if
		:: bell -> bell = false; rung = true
		:: else
		fi
	}
}

inline sysmon_kick()
{
#if MUTANT == 8
	was_polling = polling;
#endif
	if
	:: atomic { asleep -> asleep = false };
#if MUTANT != 8
		was_polling = polling;		/* [orphan-d] */
#endif
		if
		:: was_polling -> event = true
		:: else
		fi
	:: else
	fi
}

/* Before it parks: pl__ring_take_back(). */
inline leave_task()
{
	atomic { in_task = false; stalled = false };
	if
	:: atomic { ring_state == ORPHAN_READY -> ring_state = OWNED }
	:: else
	fi
}

proctype worker()
{
	bool rung, was_polling;
	byte nr;

	in_task = true;
	do
	:: nr == NR_REQS -> break
	:: else ->
		atomic { !locked -> locked = true; nr++; nr_added++ };
#if MUTANT == 1
		late_queued++;
#else
		queued++;
#endif
		locked = false;
		sysmon_kick();			/* [orphan-b] */
		atomic { stalled = false; tick++ };
		if
		:: stalled = true;
			done == nr || (nr < NR_REQS && ring_state == ORPHANED)
		:: skip
		fi
	od;
	leave_task();
	/* idle_no_more() in worker.c */
	if
	:: in_task = true;
#if MUTANT != 11
		sysmon_kick();			/* [orphan-b] */
#endif
		atomic { stalled = true; tick++ };
		done == NR_REQS;
		leave_task()
	:: skip
	fi;
	/* Waits: pl__ring_wait(). */
	do
	:: all_done -> break
	:: else ->
		atomic { !locked -> locked = true };	/* [rung-a] */
#if MUTANT == 6
		bell_seen = false;
#endif
		poll();
		if
		:: bell_seen || rung -> skip
		:: else ->
			if
			:: complete > 0 -> skip
			:: bell -> skip
			:: all_done -> skip
			fi
		fi;
		poll();
		if
		:: bell_seen || rung -> woken = true
		:: else
		fi;
		bell_seen = false;
		rung = false;
		locked = false
	od
}

proctype thief()
{
	bool rung, was_polling;

	do
	:: all_done -> break
	:: atomic { ring_state == ORPHAN_READY -> ring_state = ORPHANED };
		if
		:: atomic { !locked -> locked = true };
			poll();
#if MUTANT != 5
			bell_seen = bell_seen || rung;	/* [rung-b] */
#endif
			rung = false;
			locked = false
#if MUTANT != 10
		:: atomic { locked };
			atomic { ring_state = (ring_state == ORPHANED ->
					       OWNED : ring_state) };
			sysmon_kick()
#else
		:: atomic { locked }
#endif
		fi
	od
}

proctype sysmon()
{
	do
	:: all_done -> break
	:: atomic { ring_state == OWNED && stalled && is_at_risk ->
		    ready_nr = nr_added;
		    stalled_tick = tick;
#if MUTANT == 7
		    ring_state = ORPHANED
#else
		    ring_state = ORPHAN_READY
#endif
		}
	:: atomic { ring_state != OWNED && moves_on && !asleep ->
		    ring_state = OWNED }
	:: atomic { ring_state == ORPHANED && !moves_on && !asleep &&
		    (complete > 0 || ready_nr != nr_added) ->
		    ready_nr = nr_added;
		    ring_state = ORPHAN_READY }
	:: atomic { ring_state != ORPHAN_READY && !asleep && !all_done };
#if MUTANT == 3
		if
		:: is_due -> goto again
		:: else
		fi;
#endif
#if MUTANT == 2
		late_asleep = true;
#else
		asleep = true;			/* [orphan-a] */
#endif
#if MUTANT != 3
		if
		:: is_due ->
			atomic { asleep = false; late_asleep = false };
			goto again
		:: else
		fi;
#endif
		if
		:: ring_state == ORPHANED ->
			polling = true;		/* [orphan-c] */
			if
			:: asleep || late_asleep ->
#if MUTANT == 4
				event || all_done
#else
				event || complete > 0 || all_done
#endif
			:: else
			fi;
			atomic { polling = false; event = false }
		:: else ->
			(!asleep && !late_asleep) || all_done
		fi;
		atomic { asleep = false; late_asleep = false };
again:		skip
	od
}

proctype kernel()
{
end:	do
	:: atomic { submitted > 0 -> submitted--; complete++ }
	od
}

/* Another thread wakes the worker from its ring. */
proctype waker()
{
	bell = true
}

#if MUTANT == 1 || MUTANT == 2
/* Late stores reach memory at any time. */
active proctype memory()
{
end:	do
	:: atomic { late_queued > 0 -> queued = queued + late_queued;
		    late_queued = 0 }
	:: atomic { late_asleep -> asleep = true; late_asleep = false }
	od
}
#endif

init {
	atomic {
		run worker();
		run thief();
		run sysmon();
		run kernel();
		run waker()
	}
}
