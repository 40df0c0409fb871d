/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rwlock: a writer has the lock for itself, the lock is never free while a
 * waiter is queued, and a thread that leaves touches nothing that the next
 * holder may have freed (lib/sync/rwlock.c).
 *
 * Two readers and two writers, each of which comes once; the deadline of one
 * reader and one writer may pass while it is queued, and then it comes again,
 * without a deadline. The last of the four to have the lock frees it. A waiter
 * that waits for ever is a deadlock. The queues need not be in order here: any
 * writer may be the next holder.
 *
 * MUTANT 1: the mark is set even if the lock became free meanwhile
 * MUTANT 2: the last holder drops the lock before it looks for waiters
 * MUTANT 3: a holder in hand_on() does not look again under the queues' lock
 * MUTANT 4: a holder in hand_on() wakes before it drops the queues' lock
 * MUTANT 5: a waiter that gives up does not check that it is still queued
 * MUTANT 6: the last writer that gives up leaves readers queued
 * MUTANT 7: the last waiter that gives up leaves the mark behind
 * MUTANT 8: a waiter that gives up too late does not wait until it is woken
 * MUTANT 9: a reader that leaves does not see that it became the last
 * MUTANT 10: a writer hands on to only one of the queued readers
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR		4
#define is_writer(i)	((i) >= 2)

byte nr_readers;		/* the word: its holders, and the mark */
bool writing, marked;
bool locked;			/* the queues */
bool queued[NR];
bool has_it[NR];		/* a waiter's state */
bool is_there[NR];		/* a waiter's frame */
byte in_as_reader, in_as_writer;
byte refs = NR;			/* users that have not left the lock yet */
bool freed;

#define is_held		(writing || nr_readers > 0)
#define is_kept_out(i)	(marked || writing || (is_writer(i) && nr_readers > 0))
#define readers_wait	(queued[0] || queued[1])
#define writers_wait	(queued[2] || queued[3])
#define lock()		atomic { !locked -> assert(!freed); locked = true }
#define unlock()	atomic { assert(!freed); locked = false }

inline have(i)
{
	if
	:: is_writer(i) -> writing = true
	:: else -> nr_readers++
	fi
}

/* Wakes those in @set; the last access to their frames. */
inline rwlock_wake(set)
{
	i = 0;
	do
	:: i < NR && (set & (1 << i)) ->
		assert(is_there[i] && !has_it[i]);
		has_it[i] = true;	/* [rwlock-c] */
		i++
	:: i < NR && !(set & (1 << i)) -> i++
	:: else -> break
	od;
	set = 0;
	i = 0
}

inline take_reader(r)
{
	if
	:: queued[r] -> queued[r] = false; set = set | (1 << r); n++
	:: else
	fi
}

/* Any of two queued writers. */
inline take_writer()
{
	if
	:: queued[2] -> queued[2] = false; set = set | 4
	:: queued[3] -> queued[3] = false; set = set | 8
	fi
}

/* after_unqueue() */
inline after_unqueue()
{
	atomic {
		assert(is_held && marked);
		if
		:: writers_wait || (writing && readers_wait)
		:: else ->
			n = 0;
#if MUTANT != 6
			take_reader(0);
			take_reader(1);
#endif
			nr_readers = nr_readers + n;
			n = 0;
#if MUTANT != 7
			marked = false
#endif
		fi
	}
}

/* rwlock_give_up(); @is_in: too late, it has the lock */
inline give_up()
{
	lock();
#if MUTANT == 5
	is_in = false;
#else
	is_in = !queued[me];
#endif
	if
	:: !is_in -> queued[me] = false; after_unqueue()
	:: else
	fi;
	unlock();
	rwlock_wake(set)
}

/* hand_on(): the word is stored one step after its value is made */
inline hand_on()
{
	atomic {
		n = 0;
		if
		:: is_writer(me) && readers_wait ->
			take_reader(0);
#if MUTANT == 10
			if
			:: n == 0 -> take_reader(1)
			:: else
			fi
#else
			take_reader(1)
#endif
		:: else -> take_writer()
		fi;
		is_more = (readers_wait || writers_wait)
	};
	atomic {
		nr_readers = n;
		writing = (n == 0);
		marked = is_more;
		refs--;
		n = 0;
		is_more = false
	}
}

inline leave()
{
	do
	:: atomic {			/* [rwlock-b] */
		assert(!freed && is_held);
		is_last = marked && nr_readers <= 1;
#if MUTANT == 9
		is_last = is_last && writing;
#endif
		if
#if MUTANT == 2
		:: true ->
#else
		:: !is_last ->
#endif
			if
			:: is_writer(me) -> writing = false
			:: else -> nr_readers--
			fi;
			refs--;
			frees = (refs == 0)
		:: else
		fi
	   };
	   if
	   :: !is_last -> break
	   :: else
	   fi;
	   lock();
#if MUTANT != 2 && MUTANT != 3
	   is_last = marked && nr_readers <= 1;
#endif
	   if
	   :: is_last -> hand_on()
	   :: else
	   fi;
#if MUTANT == 4
	   rwlock_wake(set);
#endif
	   unlock();
	   rwlock_wake(set);
	   if
	   :: is_last -> break
	   :: else
	   fi
	od
}

proctype user(byte me; bool has_deadline)
{
	byte set, n, i;
	bool is_in, is_last, is_more, frees;

come:	atomic {			/* rwlock_take() */
		assert(!freed);
		is_in = !is_kept_out(me);
		if
		:: is_in -> have(me)
		:: else
		fi
	};
	if
	:: is_in -> goto in
	:: else
	fi;
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
		:: else -> marked = true
		fi
	};
	if
	:: !is_in -> d_step { queued[me] = true; has_it[me] = false;
			      is_there[me] = true }
	:: else
	fi;
	unlock();
	if
	:: is_in -> goto in
	:: else
	fi;

	if
	:: has_it[me]			/* [rwlock-d] */
	:: has_deadline ->
		has_deadline = false;
		give_up();
		if
		:: !is_in -> is_there[me] = false; goto come
		:: else
		fi;
#if MUTANT != 8
		has_it[me]
#endif
	fi;
	is_there[me] = false;
	is_in = true;

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
