/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * barrier: a round takes exactly so many users as the barrier is for, and none
 * that came is left behind (lib/sync/barrier.c).
 *
 * A barrier of two, for two users that come twice each. One of them may be
 * interrupted once while it waits, and then comes again; and a wake may come
 * that was for an earlier object at the address. A user that waits for ever is
 * a deadlock. The word is counted on its own, after the state. That comparing
 * and falling asleep is one step to wakers is word.pml's.
 *
 * MUTANT 1: [barrier-a] the word is read after the state
 * MUTANT 2: [barrier-b] the word is moved before the state
 * MUTANT 3: an interrupted user takes its arrival back from a later round, too
 * MUTANT 4: an interrupted user does not take its arrival back
 * MUTANT 5: a woken user does not look whether the round is over
 * MUTANT 6: the round and the number of arrivals are moved one by one
 * MUTANT 7: a user that is interrupted too late comes again for the same round
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_ROUNDS	2

byte round, nr_come;		/* the state */
byte word;
bool waiting[2], interrupted;
byte nr_ones, nr_back;

inline come()
{
#if MUTANT == 6
	atomic {
		mine = round;
		nr_come++;
		is_last = (nr_come == 2)
	};
	if
	:: is_last -> nr_come = 0; round++
	:: else
	fi
#else
	atomic {
		mine = round;
		is_last = (nr_come == 1);
		if
		:: is_last -> nr_come = 0; round++
		:: else -> nr_come++
		fi;
		assert(nr_come < 2)
	}
#endif
}

inline wake_all()
{
#if MUTANT != 2
	word++;					/* [barrier-b] */
#endif
	atomic { waiting[0] = false; waiting[1] = false }
}

/* @is_over: 0 or -EINTR, that is, comes again */
inline wait_for_others()
{
	do
	::
#if MUTANT == 1
	   is_over = (round != mine);
	   seen = word;
#else
	   seen = word;				/* [barrier-a] */
	   is_over = (round != mine);
#endif
	   if
	   :: is_over -> break
	   :: else
	   fi;
	   atomic { waiting[me] = (word == seen) };
	   !waiting[me];
	   if
	   :: me == 1 && interrupted ->
		atomic {			/* take_back() */
			interrupted = false;
			is_over = (round != mine);
#if MUTANT == 3
			nr_come--;
			is_over = false
#elif MUTANT != 4
			if
			:: !is_over -> nr_come--
			:: else
			fi
#endif
		};
#if MUTANT == 7
		is_over = false;
#endif
		break
	   :: else
	   fi;
#if MUTANT == 5
	   is_over = true;
	   break
#endif
	od
}

proctype user(byte me)
{
	byte nth, mine, seen;
	bool is_last, is_over;

	do
	:: nth < NR_ROUNDS ->
#if MUTANT == 2
		word = word + nr_come;		/* as the last user does */
#endif
		come();
		if
		:: is_last ->
			wake_all();
			nr_ones++;
			is_over = true
		:: else -> wait_for_others()
		fi;
		if
		:: is_over -> nth++; assert(round >= nth)
		:: else
		fi
	:: else -> break
	od;
	atomic {
		nr_back++;
		assert(nr_back < 2 || (round == NR_ROUNDS && !nr_come &&
				       nr_ones == NR_ROUNDS))
	}
}

/* A late wake for something else, or an interrupt. */
active proctype stranger()
{
	atomic {
		if
		:: waiting[0] -> waiting[0] = false
		:: waiting[1] -> waiting[1] = false
		:: waiting[1] -> interrupted = true; waiting[1] = false
		:: true
		fi
	}
}

init {
	atomic {
		run user(0);
		run user(1)
	}
}
