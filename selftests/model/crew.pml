/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew: a shortage is overlooked by nobody (module/crew.c, hand.c; the protocol
 * of `backlog' in include/uapi/linux/parklot.h).
 *
 * A worker that blocks until a task is done, two that look for the task and
 * park, who raises the backlog from 0 with that task, and the timer; the target
 * is 1. The raiser calls WAKE only if he sees too few run. A check, under the
 * roster's lock, finds it is not time yet, and sets the timer, or chooses
 * a hand, which it then looks for under its lot's lock. Who sleeps for ever
 * while the task is not done is a deadlock; that one is taken off a lot who is
 * not on it is an error.
 *
 * MUTANT 1: [crew-a] is left out by who blocks: nr_running-- is seen late
 * MUTANT 2: the raiser's barrier is left out: the backlog is seen late
 * MUTANT 3: who parks does not look
 * MUTANT 4: who parks looks before he is listed
 * MUTANT 5: who blocks looks before he is counted
 * MUTANT 6: the raiser looks before he has raised
 * MUTANT 7: the timer is taken for unset only after its check
 * MUTANT 8: who was chosen is taken off though he may have left
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_PARKERS	2
#define NOBODY		NR_PARKERS
#define TARGET		1

byte backlog;
byte nr_running = NR_PARKERS + 1;
byte nr_parked;
bool on_lot[NR_PARKERS], on_roster[NR_PARKERS];
bool lot_locked, roster_locked;
bool is_set;			/* the timer */
bool called[NR_PARKERS];	/* a reason to come back */
bool is_done;

/* On their way to memory: of who blocks, of who raises. */
byte late_running, late_backlog;

#define lock(l)		atomic { !l -> l = true }
#define unlock(l)	l = false
#define is_short(own) \
	(nr_running - own < TARGET && backlog > 0 && nr_parked > 0)

/* take_one(), under the lot's lock: the waker counts. */
inline take(p)
{
	assert(on_lot[p]);
	on_lot[p] = false;
	lock(roster_locked);
	on_roster[p] = false;
	unlock(roster_locked);
	nr_running++;
	nr_parked--;
	called[p] = true
}

/* parklot_roster_check() */
inline check(own)
{
	do
	::
		lock(roster_locked);
		chosen = NOBODY;
		if
		:: !is_short(own)
		:: is_short(own) -> is_set = true	/* not yet */
		:: is_short(own) && on_roster[0] -> chosen = 0
		:: is_short(own) && on_roster[1] -> chosen = 1
		fi;
		unlock(roster_locked);
		if
		:: chosen == NOBODY -> break
		:: else
		fi;
		lock(lot_locked);
		if
#if MUTANT == 8
		:: true ->
#else
		:: on_lot[chosen] ->
#endif
			take(chosen);
			unlock(lot_locked);
			break
#if MUTANT != 8
		:: else -> unlock(lot_locked)
#endif
		fi
	od
}

proctype blocker()
{
	byte chosen;

#if MUTANT == 5
	if
	:: is_short(1) -> nr_running--; check(0)
	:: else -> nr_running--
	fi;
#elif MUTANT == 1
	late_running = 1;
	if
	:: is_short(late_running) -> check(late_running)
	:: else
	fi;
	skip;
	d_step { nr_running = nr_running - late_running; late_running = 0 }
#else
	nr_running--;				/* [crew-a] */
	if
	:: is_short(0) -> check(0)
	:: else
	fi;
#endif
	is_done;
	nr_running++
}

proctype parker(byte me)
{
	byte chosen;

again:
	if
	:: atomic { backlog > 0 -> backlog--; is_done = true }
	:: backlog == 0 ->
#if MUTANT == 4
		if
		:: is_short(0) -> check(0)
		:: else
		fi;
#endif
		lock(lot_locked);
		on_lot[me] = true;
		lock(roster_locked);
		on_roster[me] = true;
		unlock(roster_locked);
		nr_parked++;
		nr_running--;			/* [crew-a] */
		unlock(lot_locked);
#if MUTANT != 3 && MUTANT != 4
		if
		:: is_short(0) -> check(0)
		:: else
		fi;
#endif
end_parked:
		called[me] -> called[me] = false;
		goto again
	fi
}

proctype raiser()
{
	byte seen;

#if MUTANT == 6
	seen = nr_running;
	backlog = 1;
#elif MUTANT == 2
	late_backlog = 1;
	seen = nr_running;
	backlog = late_backlog;
#else
	backlog = 1;
	seen = nr_running;
#endif
	if
	:: seen < TARGET ->
		lock(lot_locked);
		if
		:: on_lot[0] -> take(0)
		:: on_lot[1] -> take(1)
		:: !on_lot[0] && !on_lot[1]
		fi;
		unlock(lot_locked)
	:: else
	fi
}

proctype timer()
{
	byte chosen;

end_unset:
	do
	:: is_set ->
#if MUTANT != 7
		is_set = false;
#endif
		check(0)
#if MUTANT == 7
		;
		is_set = false
#endif
	od
}

/* When all has come to rest, the counts are what is so. */
proctype judge()
{
	is_done;
	atomic {
		timeout ->
		assert(nr_running + nr_parked == NR_PARKERS + 1);
		assert(nr_parked == on_lot[0] + on_lot[1]);
		assert(on_lot[0] == on_roster[0] && on_lot[1] == on_roster[1])
	}
}

init {
	atomic {
		run blocker();
		run parker(0);
		run parker(1);
		run raiser();
		run timer();
		run judge()
	}
}
