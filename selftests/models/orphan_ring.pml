/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * orphan_ring: what is in flight on the ring of a worker that is held up
 * completes (lib/sched/orphan_ring.c's drawings; sleep_long() in sysmon.c;
 * pl__sysmon_notify_io(); steal_one() in steal.c; pl__ring_poll_for_owner(),
 * pl__ring_wait() in ring.c).
 *
 * The worker adds requests, and is held up after one until that is complete, or
 * is not; then it waits in its ring.  The kernel completes a request at any time.  Who polls has the ring's lock.  So a completion that
 * stays in the ring is a deadlock.  A helper's poll also takes the ring of the
 * doorbell, which the worker waits for; so a doorbell that was rung and does
 * not let the worker go is one, too.  Sysmon waits for something whenever
 * it sees nothing new, or its looks would hide the deadlock.
 *
 * MUTANT 1: [orphan-b] is left out: the request is seen late
 * MUTANT 2: [orphan-a] is left out: that sysmon sleeps is seen late
 * MUTANT 3: sysmon looks for requests before it says that it sleeps
 * MUTANT 4: the orphaned ring is not waited for
 * MUTANT 5: whoever polls for the owner keeps to itself that the bell was rung
 * MUTANT 6: the owner forgets before it waits that the bell was rung
 * MUTANT 7: the ring is not ready when it is orphaned: nothing is submitted
 * MUTANT 8: the waker looks whether sysmon polls before it sets the word
 * MUTANT 9: it sleeps, though the owner of an orphaned ring has added to that
 * MUTANT 10: who finds the lock of a ready ring taken leaves it at that
 */
#ifndef MUTANT
#define MUTANT 0
#endif

mtype = { OWNED, ORPHANED, ORPHAN_READY };

mtype ring_state = OWNED;
byte queued, submitted, complete, done;	/* requests */
bool in_task, held_up;
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
# define is_due		(is_at_risk && (ring_state == OWNED || ready_nr != nr_added))
#endif
#define goes_on		(!held_up || !is_at_risk || stalled_tick != tick)
#define NR_REQS		2
#define all_done	(done == NR_REQS && woken)

/* Submits, and reaps what is complete: by whoever has the lock. */
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

inline rouse()
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
		rouse();			/* [orphan-b] */
		atomic { held_up = false; tick++ };
		if
		:: held_up = true; done == nr || (nr < NR_REQS && ring_state == ORPHANED)
		:: skip
		fi
	od;
	atomic { in_task = false; held_up = false };
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

proctype helper()
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
			atomic { ring_state = (ring_state == ORPHANED -> OWNED : ring_state) };
			rouse()
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
	:: atomic { ring_state == OWNED && held_up && is_at_risk ->
		    ready_nr = nr_added;
		    stalled_tick = tick;
#if MUTANT == 7
		    ring_state = ORPHANED
#else
		    ring_state = ORPHAN_READY
#endif
		}
	:: atomic { ring_state != OWNED && goes_on && !asleep -> ring_state = OWNED }
	:: atomic { ring_state == ORPHANED && !goes_on && !asleep &&
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

/* Whoever wakes the worker from where it waits. */
proctype waker()
{
	bell = true
}

#if MUTANT == 1 || MUTANT == 2
/* Memory catches up some time. */
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
		run helper();
		run sysmon();
		run kernel();
		run waker()
	}
}
