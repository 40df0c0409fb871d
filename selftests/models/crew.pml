/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew: a shortage is overlooked by nobody (module/pool.c, worker.c; the protocol
 * of `backlog' in include/uapi/linux/parklot.h).
 *
 * A worker that blocks until two tasks are done, two that look for one each and
 * park, who raises the backlog from 0 with both, and the timer; the target is
 * 2. The raiser wakes as many as he sees are missing. How many run is a sum that
 * is never too high, see crew_sum: here it is one number. Who blocks or parks
 * has it checked if there is a backlog and somebody is parked. A check, under
 * the pool's lock, finds that enough run, or that it is not time yet, and sets
 * the timer, or chooses a worker, which it then looks for under its lot's lock;
 * meanwhile no other chooses, but the timer is set behind it. Who sleeps for
 * ever while the task is not done is a deadlock; that one is taken off a lot who
 * is not on it, and that two are called at a time, is an error.
 *
 * MUTANT 1: [crew-a] is left out by who blocks: that is seen late
 * MUTANT 2: the raiser's barrier is left out: the backlog is seen late
 * MUTANT 3: who parks does not look
 * MUTANT 4: who parks looks before he is listed
 * MUTANT 5: who blocks looks before he is counted
 * MUTANT 6: the raiser looks before he has raised
 * MUTANT 7: the timer is taken for unset only after its check
 * MUTANT 8: who was chosen is taken off though he may have left
 * MUTANT 9: who looks while one is called calls another
 * MUTANT 10: nobody looks again after a call
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_PARKERS	2
#define NOBODY		NR_PARKERS
#define NR_TASKS	NR_PARKERS
#define TARGET		2

byte backlog;
byte nr_running = NR_PARKERS + 1;
byte nr_parked;
bool on_lot[NR_PARKERS], in_pool[NR_PARKERS];
bool lot_locked, pool_locked;
bool is_set;			/* the timer */
bool is_replacing;		/* as the pool has it */
byte nr_replacing;		/* as it is */
bool called[NR_PARKERS];	/* a reason to come back */
byte nr_taken;			/* tasks, one a worker */
bool is_done;			/* all of them */

/* On their way to memory: of who blocks, of who raises. */
byte late_running, late_backlog;

#define lock(l)		atomic { !l -> l = true }
#define unlock(l)	l = false
#define needs_check	(backlog > 0 && (in_pool[0] || in_pool[1]))
#define is_short(own)	(nr_running - own < TARGET && needs_check)

/* lot_take_one(), under the lot's lock: the waker counts. */
inline take(p)
{
	assert(on_lot[p]);
	on_lot[p] = false;
	lock(pool_locked);
	nr_running++;
	nr_parked--;
	in_pool[p] = false;
	unlock(pool_locked);
	called[p] = true
}

/* parklot_pool_check(): whom to call, */
inline choose(own)
{
	lock(pool_locked);
	chosen = NOBODY;
	if
#if MUTANT != 9
	:: is_replacing
#endif
	:: (!is_replacing || MUTANT == 9) && !is_short(own)
	:: (!is_replacing || MUTANT == 9) && is_short(own) ->
		if
		:: is_set = true			/* not yet */
		:: in_pool[0] && on_lot[0] -> chosen = 0
		:: in_pool[1] && on_lot[1] -> chosen = 1
		:: !on_lot[0] && !on_lot[1]		/* they leave */
		fi
	fi;
	is_replacing = is_replacing || chosen != NOBODY;
	unlock(pool_locked)
}

/* and to call him, if he is still there: the next one is the timer's. */
inline check(own)
{
	choose(own);
	if
	:: chosen == NOBODY
	:: else ->
		nr_replacing++;
		assert(nr_replacing == 1);
		lock(lot_locked);
		if
#if MUTANT == 8
		:: true ->
#else
		:: on_lot[chosen] ->
#endif
			take(chosen)
#if MUTANT != 8
		:: else
#endif
		fi;
		unlock(lot_locked);
		lock(pool_locked);
		nr_replacing--;
		is_replacing = false;
#if MUTANT != 10
		if
		:: is_short(own) -> is_set = true
		:: else
		fi;
#endif
		unlock(pool_locked)
	fi
}

proctype blocker()
{
	byte chosen;

#if MUTANT == 5
	if
	:: needs_check -> nr_running--; check(0)
	:: else -> nr_running--
	fi;
#elif MUTANT == 1
	late_running = 1;
	if
	:: needs_check -> check(late_running)
	:: else
	fi;
	skip;
	d_step { nr_running = nr_running - late_running; late_running = 0 }
#else
	nr_running--;				/* [crew-a] */
	if
	:: needs_check -> check(0)
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
	:: atomic {
		backlog > 0 ->
		backlog--;
		nr_taken++;
		is_done = nr_taken == NR_TASKS
	   }
	:: backlog == 0 ->
#if MUTANT == 4
		if
		:: needs_check -> check(0)
		:: else
		fi;
#endif
		lock(lot_locked);
		on_lot[me] = true;
		lock(pool_locked);
		in_pool[me] = true;
		nr_parked++;
		nr_running--;			/* [crew-a] */
		unlock(pool_locked);
		unlock(lot_locked);
#if MUTANT != 3 && MUTANT != 4
		if
		:: needs_check -> check(0)
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
	backlog = NR_TASKS;
#elif MUTANT == 2
	late_backlog = NR_TASKS;
	seen = nr_running;
	backlog = late_backlog;
#else
	backlog = NR_TASKS;
	seen = nr_running;
#endif
	do
	:: seen < TARGET ->
		seen++;
		lock(lot_locked);
		if
		:: on_lot[0] -> take(0)
		:: on_lot[1] -> take(1)
		:: !on_lot[0] && !on_lot[1]
		fi;
		unlock(lot_locked)
	:: else -> break
	od
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
		assert(on_lot[0] == in_pool[0] && on_lot[1] == in_pool[1])
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
