/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * chan: a waiting select is taken by one sender, and no thread touches its
 * memory once it has returned (lib/sync/chan.c: claim(), pl__chan_wake(),
 * pl__chan_wait(); lib/sync/chan.c; the drawing of chan.h).
 *
 * Two selects wait to receive from channels 0 and 1, from 0 by two cases; one
 * of them gives up at any time, the other once no sender can come any more. A
 * sender on each channel has one item for the longest waiting of the two, and
 * goes away if there is none. Each item is received by one select, which
 * reports it; no select waits for ever. Once a select is back its memory is
 * not touched, and the sender that woke it is done with the channel.
 *
 * MUTANT 1: the claim is no compare-and-exchange
 * MUTANT 2: a select that gives up does not check whether it was claimed
 * MUTANT 3: DONE before the channel is unlocked
 * MUTANT 4: a claimed select returns before it is DONE
 * MUTANT 5: a select that gives up leaves its cases listed
 * MUTANT 6: the channels are locked in the order of the cases
 * MUTANT 7: the wake comes before DONE
 * MUTANT 8: the claim leaves the call's other case on that channel listed
 */
#ifndef MUTANT
#define MUTANT 0
#endif

mtype = { WAITING, CLAIMED, DONE, GONE };

#define NO_CALL	2

bool locked[2];			/* the channels */
mtype state[2];			/* of the calls */
bool listed[4];			/* call c on channel h: [2 * c + h] */
bool again[4];			/* and a second case of it there */
byte first[2];			/* the call that has listed there first */
bool asleep[2];			/* on the call's state */
bool returned[2];		/* the call's memory is another's */
byte got[2];			/* items that each call received */
byte chosen[2];			/* by which channel */
bool inside[2];			/* a sender uses the channel */
byte nr_sent, nr_received, nr_over;

#define lock(h)		atomic { !locked[h] -> locked[h] = true }
#define unlock(h)	locked[h] = false

/* Off channel h, both cases, if they are on it. */
#define unlist(c, h)	listed[2 * (c) + (h)] = false; \
			again[2 * (c) + (h)] = false

proctype selecter(byte c)
{
	byte l = 0, k = 1;

#if MUTANT == 6
	l = c;
	k = 1 - c;
#endif
	lock(l);
	lock(k);
	d_step {
		state[c] = WAITING;
		listed[2 * c] = true;
		listed[2 * c + 1] = true;
		again[2 * c] = true;
		first[0] = (listed[2 * (1 - c)] -> 1 - c : c);
		first[1] = (listed[2 * (1 - c) + 1] -> 1 - c : c)
	}
	unlock(k);
	unlock(l);

	/* Sleeps while WAITING, or until its deadline. */
	do
	:: atomic { state[c] == WAITING -> asleep[c] = true };
		if
		:: !asleep[c]
		:: atomic { asleep[c] && (c == 1 || (nr_over == 2 &&
			    state[c] == WAITING)) ->
			    asleep[c] = false; l = NO_CALL };
			break
		fi
	:: state[c] != WAITING -> break
	od;
	if
	:: l == NO_CALL ->
#if MUTANT == 2
		state[c] = GONE
#else
		atomic {
			if
			:: state[c] == WAITING -> state[c] = GONE
			:: else
			fi
		}
#endif
	:: else
	fi;
	if
	:: state[c] == GONE ->
#if MUTANT != 5
		lock(0);
		unlist(c, 0);
		unlock(0);
		lock(1);
		unlist(c, 1);
		unlock(1);
#endif
		assert(got[c] == 0)
	:: else ->
#if MUTANT != 4
		/* Not to be interrupted: until it is woken, and DONE. */
		do
		:: atomic { state[c] != DONE -> asleep[c] = true };
			!asleep[c]
		:: state[c] == DONE -> break		/* [chan-b] */
		od;
#endif
		/* The channel of the sender is not touched again. */
		k = 1 - chosen[c];
		lock(k);
		unlist(c, k);
		unlock(k);
		assert(got[c] == 1);
		nr_received++
	fi;
	d_step {
		returned[c] = true;
		assert(!listed[2 * c] && !listed[2 * c + 1] && !again[2 * c]);
		assert(state[c] == GONE || !inside[chosen[c]])
	}
}

/* Claims the select that waits longest on channel h, if any is left. */
proctype sender(byte h)
{
	byte c, was = NO_CALL;
	bool tried[2], mine;

	lock(h);
	inside[h] = true;
	do
	:: was == NO_CALL && (listed[h] || listed[2 + h]) ->
		d_step {
			c = (listed[2 * first[h] + h] -> first[h] :
							 1 - first[h]);
			assert(!returned[c] && !tried[c]);
			tried[c] = true;
			listed[2 * c + h] = false
		}
#if MUTANT == 1
		mine = (state[c] == WAITING);
		if
		:: mine -> state[c] = CLAIMED
		:: else
		fi;
#else
		atomic {				/* [chan-a] */
			mine = (state[c] == WAITING);
			if
			:: mine -> state[c] = CLAIMED
			:: else
			fi
		}
#endif
		if
		:: mine ->
			assert(!returned[c]);
			was = c;
			d_step {
				chosen[c] = h;
#if MUTANT != 8
				again[2 * c + h] = false;
#endif
				got[c]++;
				nr_sent++
			}
		:: !mine ->
			/* Its second case is still there, and is taken off. */
			again[2 * c + h] = false
		fi
	:: else -> break
	od;
#if MUTANT == 3
	if
	:: was != NO_CALL -> state[was] = DONE; asleep[was] = false
	:: else
	fi;
	assert(was == NO_CALL || !returned[was]);
	unlock(h);
	inside[h] = false;
#else
	unlock(h);
	inside[h] = false;
	if
	:: was != NO_CALL ->
		assert(!returned[was]);
#if MUTANT == 7
		asleep[was] = false;
		assert(!returned[was]);
		state[was] = DONE
#else
		state[was] = DONE;		/* the last touch */
		asleep[was] = false		/* by address */
#endif
	:: else
	fi;
#endif
	nr_over++
}

init {
	atomic {
		run selecter(0);
		run selecter(1);
		run sender(0);
		run sender(1)
	}
	_nr_pr == 1;
	assert(nr_sent == nr_received)
}
