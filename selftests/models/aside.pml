/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * aside: a task that is set aside is taken by a worker that is woken or started
 * for it (lib/run/run.h; pl__aside_notify() in notify.c;
 * worker_started_to_run() and pl__worker_look_and_park() in worker.c).
 *
 * No worker is alive but the submitter, which runs others; two may be started,
 * one at a time or both. One task at most blocks its worker, until each has
 * begun; so a task that nobody takes is a deadlock. Another thread counts as the
 * searcher for a while, and wakes none: notify_slow(). A worker that was woken
 * searches until it has a task, or is about to park. The first worker has I/O in
 * flight, and leaves the tasks to those that search or start, unless it
 * searches: pl__aside_is_left().
 *
 * MUTANT 1: [aside-b] is left out: the task is seen late
 * MUTANT 2: [aside-a] is left out where a worker parks: nr_idle is seen late
 * MUTANT 3: a surplus worker parks without a look at what is set aside
 * MUTANT 4: a spare that has started does not notify
 * MUTANT 5: a spare that has started looks before it lowers nr_starting
 * MUTANT 6: the thread that has woken none does not look at what is set aside
 * MUTANT 7: the worker with I/O leaves the tasks to others while it searches
 * MUTANT 8: a worker stops searching after it has looked at what is set aside
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	2
#define NR_TASKS	2

byte nr_aside, nr_idle, nr_starting, nr_searching, nr_begun, nr_alive;
byte most_starting;		/* PL__ASIDE_STARTERS, or processors */
byte late_aside, late_idle;
bool is_blocking;		/* a task does, until the end */
bool changed[NR_WORKERS];	/* seq, since the worker peeked at it */
bool listed[NR_WORKERS], woken[NR_WORKERS], started[NR_WORKERS];

#define all_begun	(nr_begun == NR_TASKS)

/* pl__aside_notify(): wakes a worker that is parked, or starts one. */
inline aside_notify()
{
	seen = nr_aside;
	is_any_idle = (nr_idle > 0);
	d_step {
		if
		:: seen > nr_searching && is_any_idle ->
			if
			:: listed[1] -> listed[1] = false; woken[1] = true;
				seen--; nr_searching++
			:: listed[0] -> listed[0] = false; woken[0] = true;
				seen--; nr_searching++
			:: else -> changed[0] = true; changed[1] = true
			fi
		:: else
		fi
	};
	d_step {
		do
		:: seen > nr_searching + nr_starting &&
		   nr_starting < most_starting && nr_alive < NR_WORKERS ->
			nr_starting++;
			started[nr_alive] = true;
			nr_alive++
		:: else -> break
		od;
		seen = 0;
		is_any_idle = false
	}
}

inline park()
{
	if
	:: atomic { !changed[me] -> listed[me] = true; woken[me] = false };
		if
		:: woken[me] -> is_searching = true
		:: all_begun
		fi
	:: changed[me]
	fi
}

/* pl__stop_searching() */
inline stop_searching()
{
	nr_searching = nr_searching - is_searching;	/* [search-a] */
	is_searching = false
}

/* pl__aside_is_left() */
#if MUTANT == 7
#define is_left		(me == 0 && nr_searching + nr_starting > 0)
#else
#define is_left		(me == 0 && !is_searching && \
			 nr_searching + nr_starting > 0)
#endif

/* worker_started_to_run() */
inline end_start()
{
	if
	:: is_starting ->
		is_starting = false;
#if MUTANT == 5
		aside_notify();
		nr_starting--
#else
		nr_starting--;				/* [aside-a] */
#if MUTANT != 4
		aside_notify()
#endif
#endif
	:: else
	fi
}

inline idle()
{
	changed[me] = false;
#if MUTANT == 2
	late_idle++;
#else
	nr_idle++;					/* [aside-a] */
#endif
	/* No notification: it might wait for this worker to park. */
	nr_starting = nr_starting - is_starting;	/* [aside-a] */
	is_starting = false;
#if MUTANT != 7 && MUTANT != 8
	stop_searching();
#endif
#if MUTANT == 3
	park();
#else
	if
	:: nr_aside == 0 || is_left ->
#if MUTANT == 7 || MUTANT == 8
		stop_searching();
#endif
		park()
	:: else
	fi;
#endif
	atomic {
		nr_idle = nr_idle + late_idle;
		late_idle = 0;
		nr_idle--
	}
}

proctype worker(byte me)
{
	byte seen;
	bool is_any_idle, got, is_starting = true, is_searching;

	if
	:: started[me]
	:: all_begun
	fi;
	do
	:: all_begun -> break
	:: else ->
		if
		:: me == 0 && !is_searching && nr_aside > 0 -> aside_notify()
		:: else
		fi;
		if
		:: is_left
		:: else -> atomic {
			got = (nr_aside > 0);
			nr_aside = nr_aside - got;
			nr_begun = nr_begun + got
		}
		fi;
		if
		:: got ->
			got = false;
			/* pl__aside_take(): others may have left more to it. */
			aside_notify();
			if
			:: is_searching -> stop_searching(); aside_notify()
			:: else
			fi;
			end_start();
			if
			:: atomic { !is_blocking -> is_blocking = true };
				all_begun
			:: skip
			fi
		:: else -> idle()
		fi
	od
}

proctype submitter()
{
	byte seen, nr;
	bool is_any_idle;

	do
	:: nr == NR_TASKS -> break
	:: else ->
#if MUTANT == 1
		late_aside++;
#else
		nr_aside++;				/* [aside-b] */
#endif
		aside_notify();
		nr++
	od
}

/* It has another task queued, and finds no worker asleep, or that enough run. */
proctype notifier()
{
	byte seen;
	bool is_any_idle;

	nr_searching--;					/* [search-a] */
#if MUTANT != 6
	aside_notify()
#endif
}

#if MUTANT == 1 || MUTANT == 2
/* Late stores reach memory at any time. */
active proctype memory()
{
end:	do
	:: atomic { late_idle > 0 -> nr_idle = nr_idle + late_idle;
		    late_idle = 0 }
	:: atomic { late_aside > 0 -> nr_aside = nr_aside + late_aside;
		    late_aside = 0 }
	od
}
#endif

init {
	atomic {
		if
		:: most_starting = 1
		:: most_starting = 2
		fi;
		nr_searching = 1;
		run worker(0);
		run worker(1);
		run submitter();
		run notifier()
	}
}
