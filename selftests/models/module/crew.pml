/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew: no shortage is overlooked (module/pool.c, worker.c; the protocol of
 * `backlog' in include/uapi/linux/parklot.h).
 *
 * A worker that blocks until two tasks are done; two workers that look for one
 * task each and park; a thread that raises the backlog from 0 with both tasks;
 * and the timer. The target is 2. The raiser wakes as many workers as its sum
 * finds missing. The number of running workers is a sum that is never too high,
 * see crew_sum: here it is one number. A worker that blocks or parks checks if
 * there is a backlog and a worker is parked. A check, under the pool's lock,
 * finds that enough workers run, or that calls are not due and sets the timer,
 * or chooses as many workers as are missing, each of which it then looks for
 * under its lot's lock; meanwhile no other check chooses; afterwards the timer
 * may be set. A worker that sleeps for ever while a task is left is a deadlock.
 * Two errors: a worker is removed from a lot that it is not on; two checks call
 * at a time.
 *
 * MUTANT 1: [crew-a] is left out by a blocking worker: its count is seen late
 * MUTANT 2: the raiser's barrier is left out: the backlog is seen late
 * MUTANT 3: a worker that parks does not check
 * MUTANT 4: a worker that parks checks before it is listed
 * MUTANT 5: a worker that blocks checks before it is counted
 * MUTANT 6: the raiser sums before it has raised the backlog
 * MUTANT 7: the timer counts as set until its check has ended
 * MUTANT 8: the chosen worker is removed although it may have left
 * MUTANT 9: a check during a call calls another worker
 * MUTANT 10: no check follows a call
 * MUTANT 11: calls count as over after the first of them
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_PARKERS	2
#define NR_TASKS	NR_PARKERS
#define TARGET		2

byte backlog;
byte nr_running = NR_PARKERS + 1;
byte nr_parked;
bool on_lot[NR_PARKERS], in_pool[NR_PARKERS];
bool lot_locked, pool_locked;
bool is_set;			/* the timer */
bool is_replacing;		/* the pool's: a call is under way */
byte nr_replacing;		/* checks that call */
bool called[NR_PARKERS];	/* a reason to come back */
byte nr_taken;			/* tasks, one a worker */
bool is_done;			/* all of them */

/* Stores on their way to memory: the blocker's, the raiser's. */
byte late_running, late_backlog;

#define lock(l)		atomic { !l -> l = true }
#define unlock(l)	l = false
#define needs_check	(backlog > 0 && (in_pool[0] || in_pool[1]))
#define is_short(own)	(nr_running - own < TARGET && needs_check)

/* lot_take_one(), under the lot's lock: the waker counts the wakee. */
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

#define missing(own)	(nr_running - own < TARGET -> \
			 TARGET - (nr_running - own) : 0)
#define is_there(p)	(in_pool[p] && on_lot[p])

/* pool_choose(): the workers to call, a bit for each */
inline choose(own)
{
	lock(pool_locked);
	calls = 0;
	if
#if MUTANT != 9
	:: is_replacing
#endif
	:: (!is_replacing || MUTANT == 9) && !is_short(own)
	:: (!is_replacing || MUTANT == 9) && is_short(own) ->
		if
		:: is_set = true			/* not due */
		:: missing(own) > 1 && is_there(0) && is_there(1) -> calls = 3
		:: is_there(0) && !(missing(own) > 1 && is_there(1)) ->
			calls = 1
		:: is_there(1) && !(missing(own) > 1 && is_there(0)) ->
			calls = 2
		:: !on_lot[0] && !on_lot[1]		/* they leave */
		fi
	fi;
	is_replacing = is_replacing || calls;
	unlock(pool_locked)
}

/* pool_call(): if the worker is still there */
inline call(p)
{
	lock(lot_locked);
	if
#if MUTANT == 8
	:: true ->
#else
	:: on_lot[p] ->
#endif
		take(p)
#if MUTANT != 8
	:: else
#endif
	fi;
	unlock(lot_locked)
}

/* pool_check(): calls the chosen workers, or sets the timer. */
inline check(own)
{
	choose(own);
	if
	:: !calls
	:: else ->
		nr_replacing++;
		assert(nr_replacing == 1);
		if
		:: calls & 1 -> call(0)
		:: else
		fi;
#if MUTANT == 11
		is_replacing = false;
#endif
		if
		:: calls & 2 -> call(1)
		:: else
		fi;
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
	byte calls;

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
	byte calls;

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
	byte calls;

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

/* When no process moves any more, the counts are exact. */
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
