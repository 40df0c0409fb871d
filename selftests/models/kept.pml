/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kept: no deadline passes while a worker keeps it that computes, or while
 * nobody keeps it and the timer thread sleeps for longer. (lib/time: list, fire,
 * take and tell what is kept, hear_of(), pull(); pl__kept_list() and
 * pl__kept_tell() in lib/pace/kept.c; pl__worker_runs() in pace.c; sleep_long()
 * in sysmon.c.)
 *
 * A keeper lists timers, each due before the last one, is idle in between and
 * calls what it keeps or wakes for something else, and computes for ever in the
 * end. A thief may call what it keeps as well. Another thread adds a timer that
 * only the timer thread may call. sysmon looks once whenever it is woken. Time
 * goes on to the earliest deadline: a thread that sleeps for longer does not
 * wake. When nothing moves any more, no timer is left.
 *
 * MUTANT 1: the keeper does not look whether sysmon sleeps
 * MUTANT 2: the keeper that runs again does not wake sysmon
 * MUTANT 3: sysmon does not look once it has said that it sleeps
 * MUTANT 4: the thread is not told to take the heap as well
 * MUTANT 5: the teller does not say in which bucket there are news
 * MUTANT 6: the teller says that after it has looked at the thread
 * MUTANT 7: the teller leaves the earliest deadline of the list
 * MUTANT 8: the keeper reads before it has the lock whether it kept something
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_TIMERS	3
#define NONE		(NR_TIMERS + 2)
#define LOUD		2	/* the deadline of the other timer */

mtype = { IDLE, RUNS, AWAKE, ASLEEP };

mtype word = AWAKE;		/* sysmon's */
mtype duty = RUNS;		/* the keeper's */

/* The bucket. */
bool is_locked, is_told, has_loud;
byte heap = NONE;	/* earliest of the keeper's timers */
byte kept = NONE;	/* at most that of those that the keeper comes to */
byte earliest = NONE;	/* at most the earliest of those of the thread */

/* The timer thread: 0 while it is awake, or until when it sleeps. */
byte next_ns = NONE;
bool is_changed;		/* seq, since the thread has read it */
bool has_news, is_woken;

inline lock()
{
	atomic { !is_locked -> is_locked = true }
}

inline unlock()
{
	is_locked = false
}

/* pl__timers_tell() */
inline tell_thread(ns)
{
#if MUTANT != 5 && MUTANT != 6
	has_news = true;		/* [timer-e] */
#endif
	is_changed = true;		/* [timer-a] */
	atomic {			/* [timer-b] */
		if
		:: ns < next_ns -> next_ns = ns; is_changed = true; is_woken = true
		:: else
		fi
	};
#if MUTANT == 6
	has_news = true
#endif
}

/* pl__timers_tell_kept(); ns is the caller's */
inline tell(ns)
{
	lock();
	ns = kept;
	kept = NONE;
	if
	:: ns != NONE ->
#if MUTANT != 4
		is_told = true;
#endif
#if MUTANT != 7
		if
		:: ns < earliest -> earliest = ns
		:: else
		fi
#endif
	:: else
	fi;
	unlock();
	if
	:: ns != NONE -> tell_thread(ns)
	:: else
	fi
}

/* pl__kept_list() */
inline list(ns)
{
#if MUTANT == 8
	has_begun = (kept == NONE);
	lock();
#else
	lock();
	has_begun = (kept == NONE);
#endif
	heap = ns;
	if
	:: ns < kept -> kept = ns
	:: else
	fi;
	unlock();
#if MUTANT != 1
	if
	:: has_begun && word == ASLEEP -> tell(told)	/* [kept-b] */
	:: else
	fi
#endif
}

/* pl__timers_fire_kept(): that which the thread was told of, as well */
inline fire()
{
	lock();
	if
	:: kept != NONE -> heap = NONE; kept = NONE
	:: else
	fi;
	unlock()
}

/* pl__timers_take_kept(): another worker, which may never come */
proctype thief()
{
	do
	:: fire()
	:: break
	od
}

/* idle(): what wakes it is due, or anything else */
inline idle()
{
	duty = IDLE;
	if
	:: kept != NONE -> duty = RUNS; fire()
	:: duty = RUNS
	fi;
#if MUTANT != 2
	if
	:: kept != NONE && word == ASLEEP -> word = AWAKE	/* [kept-b] */
	:: else
	fi
#endif
}

proctype keeper()
{
	byte left = NR_TIMERS, told = NONE;
	bool has_begun;

	do
	:: left > 0 -> list(left); left--
	:: idle()
	:: break
	od
	/* It computes for ever. */
}

/* pl__timer_add() */
proctype adder()
{
	byte told = NONE;

	lock();
	has_loud = true;
	if
	:: LOUD < earliest -> earliest = LOUD; told = LOUD
	:: else
	fi;
	unlock();
	if
	:: told != NONE -> tell_thread(told)
	:: else
	fi
}

inline look()
{
	if
	:: duty != IDLE && kept != NONE -> tell(told)
	:: else
	fi
}

/* sysmon_look(), sleep_long() */
proctype sysmon()
{
	byte told = NONE;

	do
	:: word == AWAKE ->
		if
		:: look()
		:: skip		/* it takes tasks, and is not late */
		fi;
		word = ASLEEP;			/* [kept-a] */
#if MUTANT != 3
		look();
#endif
end1:		word != ASLEEP
	od
}

/* pull(), fire() */
inline pull()
{
	lock();
	has_loud = false;
	earliest = NONE;
	if
	:: is_told -> heap = NONE; kept = NONE; is_told = false
	:: else
	fi;
	unlock()
}

#define SLEEPS_LONG	((has_loud && next_ns > LOUD) || next_ns > heap)

/* timer_run(), timer_sleep_until() */
proctype thread()
{
	byte known = NONE;

end:	do
	:: atomic { is_woken || (next_ns != NONE && !SLEEPS_LONG) ->
		    is_woken = false; next_ns = 0 };
		do
		:: is_changed = false;		/* [timer-a] */
			if
			:: atomic { has_news -> has_news = false };
				known = (earliest < known -> earliest : known)
			:: else
			fi;
			if
			:: known != NONE -> pull(); known = NONE
			:: known != NONE	/* not due yet */
			:: else
			fi;
			next_ns = known;	/* [timer-b] */
			if
			:: !is_changed -> break
			:: else -> next_ns = 0
			fi
		od
	od
}

init {
	atomic {
		run keeper();
		run adder();
		run sysmon();
		run thief();
		run thread()
	}
	timeout;
	assert(heap == NONE && !has_loud)
}
