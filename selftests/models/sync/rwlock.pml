/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rwlock: a writer has the lock for itself, no waiter sleeps for ever, and a
 * thread that leaves touches nothing that another may have freed
 * (lib/sync/rwlock.c).
 *
 * Two readers and two writers, each of which comes once; the deadline of one
 * reader and one writer may pass while it is queued, and then it comes again,
 * without a deadline. A waiter may lose its patience whenever it was overtaken.
 * The last of the four to leave frees the lock. A waiter that waits for ever is
 * a deadlock. The queues need not be in order here, and any queued reader
 * belongs to the phase or not.
 *
 * MUTANT 1: the mark is set even if the lock became free meanwhile
 * MUTANT 2: an owner frees the lock, and looks for waiters then
 * MUTANT 3: an owner does not look again for waiters in the queues' lock
 * MUTANT 4: a waiter is woken by its frame, after the queues' lock
 * MUTANT 5: a waiter that gives up does not check that it is still queued
 * MUTANT 6: the last writer that gives up leaves readers queued
 * MUTANT 7: the last waiter that gives up leaves the marks behind
 * MUTANT 8: a waiter that gives up too late does not wait until it is told
 * MUTANT 9: a woken waiter that gives up leaves WOKEN behind
 * MUTANT 10: a woken waiter that waits on leaves WOKEN behind
 * MUTANT 11: a woken waiter that waits on does not look at the lock again
 * MUTANT 12: a heir that gives up leaves IMPATIENT behind
 * MUTANT 13: a reader that leaves does not see that it became the last
 * MUTANT 14: an heir is told in the queues' lock
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR		4
#define NONE		NR
#define is_writer(i)	((i) >= 2)

#define QUEUED		0
#define MAY_TRY		1
#define HAS_IT		2

byte nr_readers;		/* the word: its owners, and the marks */
bool writing, waited_for, writer_waits, woken, impatient;
bool locked;			/* the queues */
bool queued[NR];
byte heir = NONE;
byte state[NR];			/* a waiter's */
bool is_there[NR];		/* a waiter's frame */
byte in_as_reader, in_as_writer;
byte refs = NR;			/* users that have not left the lock yet */
bool freed;

#define is_held		(writing || nr_readers > 0)
#define is_last(i)	((is_writer(i) && writing) || \
			 (!is_writer(i) && nr_readers == 1))
#define is_kept_out(i)	(is_held && (is_writer(i) || writing || impatient || \
				     writer_waits))
#define is_kept_out_woken(i) (writing || (is_writer(i) && nr_readers > 0))
#define readers_wait	(queued[0] || queued[1])
#define writers_wait	(queued[2] || queued[3])
#define lock()		atomic { !locked -> assert(!freed); locked = true }
/* All settled: readers wait for a writer, and all for one to leave or try. */
#define unlock()	atomic { \
	assert(!freed); \
	assert(!readers_wait || writers_wait || writing || woken); \
	assert(!(readers_wait || writers_wait) || is_held || woken); \
	locked = false \
}

inline have(i)
{
	if
	:: is_writer(i) -> assert(!is_held); writing = true
	:: else -> assert(!writing); nr_readers++
	fi
}

inline have_not(i)
{
	if
	:: is_writer(i) -> assert(writing); writing = false
	:: else -> assert(nr_readers > 0); nr_readers--
	fi
}

/* rwlock_settle(), once the word's other bits are changed. */
inline settle()
{
	waited_for = (readers_wait || writers_wait);
	writer_waits = writers_wait;
	next = NONE;
	if
	:: writing || woken || impatient
	:: else ->
		if
		:: queued[0] -> next = 0
		:: queued[1] -> next = 1
		:: nr_readers == 0 && queued[2] -> next = 2
		:: nr_readers == 0 && queued[3] -> next = 3
		/* The phase is over. */
		:: nr_readers > 0 && writers_wait
		:: !readers_wait && !writers_wait
		/* Readers wait although no writer does: they may join. */
		fi
	fi;
	if
	:: next != NONE ->
		woken = true;
#if MUTANT != 4
		assert(queued[next] && is_there[next] &&
		       state[next] == QUEUED);
		state[next] = MAY_TRY	/* [rwlock-c] */
#endif
	:: else
	fi
}

/* By address: a late wake does no harm. */
inline wake_next()
{
#if MUTANT == 4
	if
	:: next != NONE ->
		assert(is_there[next]);
		state[next] = MAY_TRY
	:: else
	fi;
#endif
	next = NONE
}

/* In the queues' lock, as an owner that was woken. */
inline enter()
{
	atomic {
		assert(woken && queued[me]);
		queued[me] = false;
		state[me] = HAS_IT;
		woken = false;
		settle()
	}
}

/* In the queues' lock: take_or_wait_on() */
inline take_or_wait_on()
{
#if MUTANT == 11
	is_in = !is_kept_out_woken(me);
#endif
	atomic {			/* [rwlock-a] */
		assert(woken && queued[me] && heir == NONE);
#if MUTANT != 11
		is_in = !is_kept_out_woken(me);
#endif
		if
		:: is_in -> have(me)
		:: else ->
#if MUTANT != 10
			woken = false;
#endif
			if
			:: true
			:: heir = me; impatient = true
			fi;
			state[me] = QUEUED
		fi
	}
}

inline give_up()
{
	lock();
	is_in = false;
	if
#if MUTANT == 5
	:: true ->
#else
	:: queued[me] ->
#endif
		if
#if MUTANT != 9
		:: state[me] == MAY_TRY -> take_or_wait_on()
		:: else
#else
		:: true
#endif
		fi;
		if
		:: is_in -> enter()
		:: else ->
			atomic {
				queued[me] = false;
				if
				:: heir == me ->
					heir = NONE;
#if MUTANT != 12
					impatient = false
#endif
				:: else
				fi;
#if MUTANT == 6
				waited_for = (readers_wait || writers_wait);
				writer_waits = writers_wait
#elif MUTANT != 7
				settle()
#endif
			}
		fi
	:: else -> is_in = true
	fi;
	unlock();
	wake_next()
}

inline leave()
{
	do
	:: atomic {			/* [rwlock-b] */
		assert(!freed && is_held);
		must_look = waited_for && !woken && is_last(me);
#if MUTANT == 13
		must_look = must_look && is_writer(me);
#endif
		if
#if MUTANT == 2
		:: !impatient ->
#else
		:: !must_look ->
#endif
			have_not(me);
			refs--;
			frees = (refs == 0)
		:: else
		fi
	   };
	   if
	   :: !must_look -> break
	   :: else
	   fi;
	   lock();
	   atomic {
#if MUTANT == 3
		must_look = true;
#elif MUTANT != 2
		must_look = waited_for && is_last(me);
#endif
		if
#if MUTANT == 2
		:: !impatient -> settle()
#endif
		:: must_look ->
			if
			:: impatient ->
				to = heir;
				heir = NONE;
				queued[to] = false
			:: else
			fi
		:: else
		fi
	   };
	   if
#if MUTANT == 2
	   :: must_look && to == NONE
	   :: must_look && to != NONE ->
#else
	   :: must_look ->
#endif
		/* Other readers may have come meanwhile. */
		atomic {
			have_not(me);
			if
			:: to != NONE -> have(to); impatient = false
			:: else
			fi;
			refs--;
			frees = (refs == 0);
			settle()
		}
	   :: else
	   fi;
#if MUTANT == 14
	   if
	   :: to != NONE -> assert(is_there[to]); state[to] = HAS_IT;
		to = NONE
	   :: else
	   fi;
#endif
	   unlock();
	   if
	   :: to != NONE ->
		assert(is_there[to] && state[to] == QUEUED);
		state[to] = HAS_IT;	/* [rwlock-c] */
		to = NONE
	   :: else
	   fi;
	   wake_next();
	   if
	   :: must_look -> break
	   :: else
	   fi
	od
}

proctype user(byte me; bool has_deadline)
{
	byte next = NONE, to = NONE;
	bool is_in, must_look, frees;

come:	atomic {			/* rwlock_take() */
		assert(!freed);
		is_in = !is_kept_out(me);
		if
		:: is_in -> have(me); goto in
		:: else
		fi
	};
	lock();
#if MUTANT == 1
	is_in = !is_kept_out(me);
#endif
	atomic {			/* [rwlock-a] */
#if MUTANT != 1
		is_in = !is_kept_out(me);
#endif
		if
		:: is_in -> have(me)
		:: else ->
			waited_for = true;
			writer_waits = writer_waits || is_writer(me)
		fi
	};
	if
	:: !is_in -> d_step { queued[me] = true; state[me] = QUEUED;
			      is_there[me] = true }
	:: else
	fi;
	unlock();
	if
	:: is_in -> goto in
	:: else
	fi;

wait:	if
	:: state[me] == HAS_IT		/* [rwlock-d] */
	:: state[me] == MAY_TRY ->
		is_in = false;
		atomic {		/* rwlock_spin() */
			assert(!freed);
			if
			:: !is_kept_out_woken(me) -> have(me); is_in = true
			:: true
			fi
		};
		lock();
		if
		:: !is_in -> take_or_wait_on()
		:: else
		fi;
		if
		:: is_in -> enter()
		:: else
		fi;
		unlock();
		wake_next();
		goto wait
	:: has_deadline ->
		has_deadline = false;
		give_up();
		if
		:: !is_in -> is_there[me] = false; goto come
		:: else
		fi;
#if MUTANT != 8
		state[me] == HAS_IT
#endif
	fi;
	is_there[me] = false;

in:	is_in = false;
	d_step {
		if
		:: is_writer(me) -> in_as_writer++
		:: else -> in_as_reader++
		fi;
		assert(in_as_writer == 0 ||
		       (in_as_writer == 1 && in_as_reader == 0))
	};
	d_step {
		if
		:: is_writer(me) -> in_as_writer--
		:: else -> in_as_reader--
		fi
	};
	leave();
	if
	:: frees -> freed = true
	:: else
	fi
}

init {
	atomic {
		run user(0, false);
		run user(1, true);
		run user(2, false);
		run user(3, true)
	}
}
