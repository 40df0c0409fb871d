/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * command: the life of a PARK that is a command of io_uring (module/uring.c,
 * module/timeout.c; parklot_lot_enlist(), parklot_lot_give_up() and
 * lot_take_one() in module/lot.c).
 *
 * Its task submits the command with the ring's lock held, or io-wq submits it
 * without. A waker, the timer, a close of the last descriptor and the end of
 * the ring come at any time, the latter two or not at all. The command is
 * completed once, in each interleaving; an access to the request after it was
 * freed is an error; and a command that none of them will end any more is
 * parked, with its timer set if it has a deadline. A wake passes on if its
 * result goes to a ring that has ended.
 *
 * MUTANT 1: a cancel takes a command without a reason for a listed one
 * MUTANT 2: the submission does not look whether a cancel came first
 * MUTANT 3: [ring-b] the submission does not read the reason again
 * MUTANT 4: [ring-a] a completion does not cancel the timer
 * MUTANT 5: a waker removes the command after it has unlocked
 * MUTANT 6: the submission does not count as a reference
 * MUTANT 7: a wake does not pass on
 * MUTANT 8: the timer does not look whether the command is still listed
 * MUTANT 9: the submission does not look whether a close came first
 */
#ifndef MUTANT
#define MUTANT 0
#endif

mtype = { NONE, WOKEN, CHANGED, TIMEDOUT, INTERRUPTED, CANCELED };

/* The request; the lot's lock is a d_step. */
bool is_listed;
mtype reason = NONE;
#if MUTANT == 6
byte refs = 1;
#else
byte refs = 2;			/* submission, completion */
#endif
bool is_freed;

bool is_armed, is_firing;	/* the timer; is_firing: claims */
bool is_ending;			/* the timer, until it has queued */
bool has_deadline;
bool is_closed;			/* nr_interrupts has changed */

bool is_locked;			/* the ring */
bool is_cancelable;		/* the end of the ring finds it */
bool has_ended;
bool is_submitted, by_task, is_of_one_task;
byte nr_queued;			/* completions for the submitter's task */
byte nr_completed;
bool is_passed_on;		/* the wake, to another sleeper */
byte nr_over;			/* actors */

#define touch()		assert(!is_freed)
#define ring_lock()	atomic { !is_locked -> is_locked = true }
#define ring_unlock()	is_locked = false

inline put()
{
	d_step {
		touch();
		refs--;
		if
		:: refs == 0 -> is_freed = true
		:: else
		fi
	}
}

/* parklot_timeout_cancel(): waits for a claim, not for what follows it. */
inline cancel_timer()
{
	touch();
	is_armed = false;
	!is_firing
}

/* request_done(), with the ring's lock held. */
inline request_done()
{
#if MUTANT != 4
	cancel_timer();			/* [ring-a] */
#endif
	d_step {
		is_cancelable = false;
		nr_completed++;
		assert(nr_completed == 1)
	};
	put()
}

/* parklot_lot_give_up() */
inline give_up(why, was)
{
	d_step {
		touch();
#if MUTANT == 1
		was = (why == CANCELED && reason == NONE || is_listed);
#elif MUTANT == 8
		was = (why == TIMEDOUT || is_listed);
#else
		was = is_listed;
#endif
		is_listed = false;
		if
		:: reason == NONE -> reason = why
		:: else
		fi
	}
}

/* lot_enqueue(), under the lot's lock */
inline enlist(refusal)
{
	d_step {					/* [ring-c] */
		touch();
		if
#if MUTANT != 2
		:: reason != NONE -> refusal = reason
#endif
#if MUTANT != 9
		:: reason == NONE && is_closed -> refusal = INTERRUPTED
#endif
		:: else ->
			refusal = is_changed;
			if
			:: refusal == NONE ->
				is_listed = true;
				assert(reason == NONE)
			:: else
			fi
		fi
	}
}

proctype submission()
{
	mtype refusal = NONE;
	mtype is_changed = NONE;

	if
	:: is_changed = CHANGED		/* another seq */
	:: skip
	fi;
	if
	:: by_task -> ring_lock(); is_cancelable = true
	:: !by_task -> ring_lock(); is_cancelable = true; ring_unlock()
	fi;
	enlist(refusal);
	if
	:: refusal != NONE ->
		if
		:: !by_task -> ring_lock(); request_done(); ring_unlock()
		:: by_task -> request_done()
		fi
	:: refusal == NONE && has_deadline ->
		touch();
		is_armed = true;
#if MUTANT != 3
		touch();
		if
		:: reason != NONE -> cancel_timer()	/* [ring-b] */
		:: reason == NONE
		fi
#endif
	:: refusal == NONE && !has_deadline
	fi;
#if MUTANT != 6
	put();
#else
	touch();
#endif
	d_step {
		is_submitted = true;
		if
		:: by_task -> ring_unlock()
		:: else
		fi;
		nr_over++
	}
}

/* The waker may find the command, or come too early. */
proctype waker()
{
	bool was;

	d_step {
		was = is_listed;
		if
		:: was -> touch(); reason = WOKEN;
#if MUTANT != 5
			is_listed = false
#endif
		:: else
		fi
	};
#if MUTANT == 5
	if
	:: was -> is_listed = false
	:: !was
	fi;
#endif
	d_step {
		nr_queued = nr_queued + was;
		nr_over++
	}
}

proctype closer()
{
	d_step {
		is_closed = true;
		if
		:: is_listed ->
			touch();
			is_listed = false;
			reason = INTERRUPTED;
			nr_queued++
		:: else
		fi;
		nr_over++
	}
}

active proctype timer()
{
	bool was;

end:	do
	:: atomic {
		is_armed ->
		is_armed = false;
		is_firing = true;
		is_ending = true
	   };
		give_up(TIMEDOUT, was);
		is_firing = false;
		if
		:: was -> d_step { touch(); nr_queued++; is_ending = false }
		:: !was -> is_ending = false
		fi
	od
}

/*
 * request_done_by_task(), with the ring's lock held, as io_uring kills the
 * ring's references; never in the middle of its own submission.
 */
active proctype task()
{
end:	do
	:: nr_queued > 0 && (!by_task || is_submitted) ->
		touch();
		ring_lock();
#if MUTANT != 7
		is_passed_on = reason == WOKEN && has_ended;
#endif
		assert(reason != WOKEN || !has_ended || is_passed_on);
		request_done();
		d_step { ring_unlock(); nr_queued-- }
	od
}

/* io_ring_exit_work(): repeats until the command has completed. */
proctype ring_end()
{
	bool was;

	ring_lock();
	d_step { has_ended = true; ring_unlock() };
	do
	:: nr_completed > 0 -> break
	:: ring_lock();
		if
		:: is_cancelable ->
			give_up(CANCELED, was);
			if
			:: was && is_of_one_task -> nr_queued++
			:: was && !is_of_one_task -> request_done()
			:: !was
			fi
		:: !is_cancelable
		fi;
		ring_unlock()
	od;
	nr_over++
}

init {
	byte nr = 2;

	atomic {
		if
		:: by_task = true
		:: skip
		fi;
		if
		:: is_of_one_task = true
		:: skip
		fi;
		if
		:: has_deadline = true
		:: skip
		fi;
		run submission();
		run waker();
		if
		:: run closer(); nr++
		:: skip
		fi;
		if
		:: run ring_end(); nr++
		:: skip
		fi
	};
	/* All actors have ended, except perhaps the timer. */
	nr_over == nr;
	atomic {
		nr_queued == 0 && !is_ending && !is_locked ->
		if
		:: nr_completed == 0 ->
			assert(is_listed && !is_closed && !has_ended &&
			       reason == NONE && is_armed == has_deadline)
		:: else -> skip
		fi
	}
}
