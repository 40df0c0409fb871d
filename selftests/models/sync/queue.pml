/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queue: each item of which a push reported success is executed, by one task
 * at a time, and the end comes once, after which no thread touches the queue
 * (lib/sync/queue.c: push_entry(), take_all(), go_idle(), pl_queue_close(),
 * queue_end(); its two drawings).
 *
 * Three pushers with an item each; each may find that no task can be had; a
 * closer; a joiner, which frees the queue. A pusher's exchange succeeds on
 * equal heads, whatever has happened in between.
 *
 * MUTANT 1: BUSY goes off by a store, after a look
 * MUTANT 2: the pusher decides to spawn by the head before the exchange
 * MUTANT 3: the task is reserved after the push
 * MUTANT 4: the closer looks for BUSY before it sets CLOSED
 * MUTANT 5: the task looks for CLOSED after BUSY is off
 * MUTANT 6: entries are taken in two steps
 * MUTANT 7: the end is reported before BUSY is off
 * MUTANT 8: a pusher that reserved a task commits it though another set BUSY
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_PUSHERS	3

byte inbox;			/* head: how many entries */
bool busy, closed;		/* head: its flags */
bool ended, is_freed;
byte nr_inside;			/* pushers that may still touch the queue */
byte nr_accepted, nr_executed, nr_executing;

inline touch()
{
	assert(!is_freed)
}

inline end_it()
{
	d_step { touch(); assert(!ended); ended = true }
}

proctype task()
{
	byte nr;
	bool was_closed;

	do
	::
#if MUTANT == 6
		atomic { touch(); nr = inbox };
		inbox = 0;
#else
		atomic { touch(); nr = inbox; inbox = 0 };	/* [queue-a] */
#endif
		if
		:: nr > 0 ->
			nr_executing++;
			assert(nr_executing == 1);
			nr_executed = nr_executed + nr;
			nr_executing--
		:: else ->
#if MUTANT == 7
			if
			:: atomic { closed && inbox == 0 -> end_it() }
			:: else
			fi;
#endif
#if MUTANT == 1
			touch();
			if
			:: atomic { inbox == 0 -> was_closed = closed };
				busy = false;
				break
			:: else
			fi
#else
			atomic {
				touch();
				if
				:: inbox == 0 ->
					busy = false;	/* [queue-b] */
					was_closed = closed; /* [queue-c] */
					break
				:: else
				fi
			}
#endif
		fi
	od;
#if MUTANT == 5
	was_closed = closed;
#endif
#if MUTANT != 7
	if
	:: was_closed -> end_it()
	:: else
	fi
#endif
}

proctype pusher()
{
	byte nr;
	bool was_busy, was_closed, has_task, is_in, is_first;

	atomic { touch(); nr = inbox; was_busy = busy; was_closed = closed };
#if MUTANT == 2
	is_first = !was_busy;
#endif
	do
	:: was_closed -> break
#if MUTANT != 3
	:: !was_closed && !was_busy && !has_task ->
		if
		:: has_task = true
		:: break			/* none to be had */
		fi
	:: !was_closed && (was_busy || has_task) ->
#else
	:: !was_closed ->
#endif
		atomic {
			touch();
			if
			:: nr == inbox && was_busy == busy &&
			   was_closed == closed ->
				inbox++;
				busy = true;
				is_in = true;
#if MUTANT != 2
				is_first = !was_busy;
#endif
				break
			:: else ->
				nr = inbox;
				was_busy = busy;
				was_closed = closed
			fi
		}
	od;
	nr_inside--;
#if MUTANT == 3
	if
	:: is_in && is_first ->
		if
		:: true
		:: is_first = false		/* none to be had */
		fi
	:: else
	fi;
#endif
#if MUTANT == 8
	is_first = has_task;
#endif
	nr_accepted = nr_accepted + is_in;
	if
	:: is_in && is_first -> run task()
	:: else
	fi
}

proctype closer()
{
	bool was_busy;

#if MUTANT == 4
	atomic { touch(); was_busy = busy };
	closed = true;
#else
	atomic { touch(); was_busy = busy; closed = true };
#endif
	if
	:: !was_busy -> end_it()
	:: else
	fi
}

init {
	byte i;

	atomic {
		nr_inside = NR_PUSHERS;
		for (i : 1 .. NR_PUSHERS) {
			run pusher()
		}
		run closer()
	}
	/* The joiner; by contract all pushers have returned by then. */
	atomic { ended && nr_inside == 0 -> is_freed = true };
	assert(inbox == 0 && !busy);
	_nr_pr == 1;
	assert(nr_executed == nr_accepted)
}
