/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scope: the children of a cancelled task are cancelled, whenever it enters
 * the scope and whenever they start; no canceller touches a scope that its
 * owner may have freed (lib/scope/scope.c).
 *
 * An owner enters a scope and spawns a child, which waits until it is
 * cancelled; a task cancels the owner at any time; the deadline comes at any
 * time, or is taken back. A child that waits for ever is a deadlock.
 *
 * MUTANT 1: the owner looks whether it is cancelled before it says that it is
 *	     in a scope
 * MUTANT 2: the owner says so before it has locked and listed the scope
 * MUTANT 3: the child looks at the error before it lists itself
 * MUTANT 4: the canceller looks at the children before it notes the error
 * MUTANT 5: the canceller unlocks the bucket before it pins
 * MUTANT 6: the owner does not wait for the pins
 * MUTANT 7: the child unlists itself after it is counted as ended
 * MUTANT 8: the owner does not wait for the timer that runs
 */
#ifndef MUTANT
#define MUTANT 0
#endif

bool in_scope, cancelled;	/* the owner's state */
bool bucket, lock;		/* held */
bool listed, error, freed;	/* the scope */
byte nr_children, nr_pins;
bool is_child_listed, is_child_cancelled;
mtype = { ARMED, FIRED, DELETED, OVER };
mtype timer = ARMED;

inline acquire(l)
{
	atomic { !l -> l = true }
}

inline acquire_scope()
{
	atomic { !lock -> assert(!freed); lock = true }
}

inline mark()
{
	atomic { assert(!freed); won = !error; error = true }
}

inline pin()
{
	atomic { assert(!freed); nr_pins++ }
}

inline cancel_child()
{
	acquire_scope();
	if
	:: is_child_listed -> is_child_cancelled = true
	:: else
	fi;
	lock = false
}

inline unpin()
{
	atomic { assert(!freed); nr_pins-- }
}

proctype child()
{
#if MUTANT == 3
	bool seen = error;
#endif
	acquire_scope();
	is_child_listed = true;
	if
#if MUTANT == 3
	:: seen ->
#else
	:: error ->
#endif
		is_child_cancelled = true
	:: else
	fi;
	lock = false;
	is_child_cancelled;
#if MUTANT == 7
	nr_children--;
#endif
	acquire_scope();
	is_child_listed = false;
	lock = false;
#if MUTANT != 7
	atomic { assert(!freed); nr_children-- }
#endif
}

inline say_in_scope()
{
#if MUTANT == 1
	was = cancelled;
	in_scope = true
#else
	atomic {			/* [scope-a] */
		was = cancelled;
		in_scope = true
	}
#endif
}

active proctype owner()
{
	bool was, won;

#if MUTANT == 2
	say_in_scope();
	acquire(bucket);
	listed = true;
#else
	acquire(bucket);
	listed = true;
	say_in_scope();
#endif
	if
	:: was -> mark()
	:: else
	fi;
	bucket = false;
	if
	:: error
	:: !error -> nr_children++; run child()
	fi;
	nr_children == 0;
	atomic {
		if
		:: timer == ARMED -> timer = DELETED
		:: else
		fi
	};
#if MUTANT != 8
	timer == DELETED || timer == OVER;
#endif
	acquire(bucket);
	listed = false;
	in_scope = false;
	bucket = false;
#if MUTANT != 6
	nr_pins == 0;
#endif
	freed = true
}

active proctype canceller()
{
	bool seen, won;

	atomic {			/* [scope-b] */
		cancelled = true;
		seen = in_scope
	};
	if
	:: seen ->
		acquire(bucket);
		if
		:: listed ->
#if MUTANT == 4
			pin();
			bucket = false;
			cancel_child();
			mark();
			unpin();
			won = false
#elif MUTANT == 5
			mark();
			bucket = false;
			if
			:: won -> pin()
			:: else
			fi
#else
			mark();
			if
			:: won -> pin()
			:: else
			fi;
			bucket = false
#endif
		:: else -> bucket = false
		fi;
		if
		:: won -> cancel_child(); unpin()
		:: else
		fi
	:: else
	fi
}

active proctype deadline()
{
	bool won;

	atomic {
		if
		:: timer == ARMED -> timer = FIRED
		:: timer == ARMED || timer == DELETED -> goto end
		fi
	};
	mark();
	if
	:: won -> pin(); cancel_child(); unpin()
	:: else
	fi;
	timer = OVER;
end:	skip
}
