/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * idle_timeout: a worker that is one of too many ends, and its slot is taken
 * again (lib/sched/worker_thread.h; pl__worker_end(), worker_give_up(), worker_thread_end(),
 * start_next() in worker_thread.c; idle(), park_in_lot(), pl__sleep() in
 * worker.c; pl__notify_one(), notify_slow() in notify.c).
 *
 * One worker is wanted, two run at first, and no more there may be. A task
 * ends at once, or blocks its worker until each has begun; they come one by
 * one. So tasks that wait while too few workers run are a deadlock. The one
 * in reserve is left out: an idle worker ends whenever more are alive than are
 * wanted or blocked. It may be late but twice, so that it does not make up for
 * a signal that was lost. Queues are one, as all steal from all; a worker that
 * has ended looks once more, as a thread that is none: `ended'.
 *
 * MUTANT 1: who ends does not look in the queues afterwards
 * MUTANT 2: who ends looks in the queues before it is counted
 * MUTANT 3: who was woken as it was late ends all the same
 * MUTANT 4: who ends is still counted as one that there is
 * MUTANT 5: who takes the slot does not know that it has the token
 * MUTANT 6: who was refused a start does not look again
 * MUTANT 7: who called in vain lays the token down and does not look again
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	2
#define NR_TASKS	NR_WORKERS
#define NR_LATE		2

byte queue;
byte nr_alive = NR_WORKERS;
byte nr_idle, nr_blocked, nr_searching, nr_begun;
byte nr_late = NR_LATE;		/* to come */
byte nr_ended;			/* that have not looked since */
bool is_locked;			/* start_lock */
bool has_thread[NR_WORKERS] = true;
bool gets_token[NR_WORKERS];
bool changed[NR_WORKERS];	/* seq, since the worker peeked at it */
bool listed[NR_WORKERS], woken[NR_WORKERS];

#define WANTED		1
#define all_begun	(nr_begun == NR_TASKS)
#define are_too_many	(nr_alive > WANTED + nr_blocked)
#define is_start_due	(nr_alive < NR_WORKERS && nr_alive < WANTED + nr_blocked)
#define is_surplus	(nr_alive > WANTED + nr_idle + nr_blocked)

/* is_notify_due(): loads, of which others may come in between. */
inline look_at_counts()
{
	alive = nr_alive;
	is_due = (alive < WANTED + nr_idle + nr_blocked &&
		  (nr_idle > 0 || alive < NR_WORKERS))
}

/* The lots' signal: seq moves on, whether somebody sleeps or not yet. */
inline wake()
{
	d_step {
		changed[0] = true;
		changed[1] = true;
		if
		:: listed[0] -> listed[0] = false; woken[0] = true;
			called = true
		:: !listed[0] && listed[1] -> listed[1] = false;
			woken[1] = true; called = true
		:: else
		fi
	}
}

/* start_next(), with the token. */
inline start()
{
	atomic { !is_locked -> is_locked = true };
	d_step {
		if
		:: is_start_due ->
			if
			:: !has_thread[0] -> has_thread[0] = true;
				gets_token[0] = (MUTANT != 5)
			:: else -> has_thread[1] = true;
				gets_token[1] = (MUTANT != 5)
			fi;
			nr_alive++;
			called = true
		:: else -> refused = (MUTANT != 6)
		fi;
		is_locked = false
	}
}

/* pl__notify_one(), notify_slow() */
inline signal()
{
	do
	:: nr_searching > 0 -> break
	:: else ->
		look_at_counts();
		if
		:: atomic { is_due && nr_searching == 0 -> nr_searching++ };
			idle_seen = (nr_idle > 0);
			if
			:: idle_seen -> wake()
			:: else -> start()
			fi;
			if
			:: atomic { called -> called = false }; break
			:: atomic { !called -> nr_searching-- }
			fi;
			if
			:: MUTANT != 7 && queue > 0 &&
			   (idle_seen || nr_idle > 0 ||
			    (refused && is_start_due)) -> refused = false
			:: else -> break
			fi
		:: !is_due || nr_searching > 0 -> break
		fi
	od;
	skip;
	d_step { alive = 0; is_due = false; idle_seen = false;
		 refused = false }
}

inline pass_on_help()
{
	if
	:: queue > 0 -> signal()
	:: else
	fi
}

inline stop_searching()
{
	atomic {
		assert(searching && nr_searching == 1);
		searching = false;
		nr_searching--
	}
}

/* Late: on no list of a lot, and so woken by nobody. */
inline park()
{
	if
	:: atomic { !changed[me] -> listed[me] = true; woken[me] = false };
		if
		:: atomic { woken[me] -> searching = true }
		:: atomic { listed[me] && nr_late > 0 ->
			    nr_late--; listed[me] = false; late = true }
#if MUTANT == 3
		:: atomic { woken[me] && nr_late > 0 ->
			    nr_late--; late = true }
#endif
		:: all_begun
		fi
	:: changed[me]
	fi
}

inline end()
{
	atomic { !is_locked -> is_locked = true };
#if MUTANT == 2
	pass_on_help();
#endif
	if
	:: are_too_many ->
#if MUTANT != 4
		nr_alive--;				/* [end-a] */
#endif
		nr_idle--;
		atomic {
			is_locked = false;
			has_thread[me] = false;
#if MUTANT != 1 && MUTANT != 2
			nr_ended++;
#endif
			ends = true
		}
	:: else -> is_locked = false
	fi
}

inline idle()
{
	atomic { changed[me] = false; was_searching = searching };
	nr_idle++;					/* [idle-a] */
	if
	:: searching -> stop_searching()
	:: else
	fi;
	if
	:: nr_alive > WANTED &&
	   nr_alive >= WANTED + nr_idle + nr_blocked -> park()
	:: else ->
		if
		:: queue == 0 -> park()
		:: else -> found = true
		fi
	fi;
	if
	:: late -> end(); late = false
	:: else
	fi;
	if
	:: !ends ->
		atomic {
			nr_idle--;
			if
			:: found && was_searching && nr_searching == 0 ->
				nr_searching++;
				searching = true
			:: else
			fi
		}
	:: else
	fi;
	d_step { found = false; was_searching = false }
}

inline run_task()
{
	if
	:: searching -> stop_searching(); pass_on_help()
	:: else
	fi;
	if
	:: skip						/* it ends at once */
	:: nr_blocked++;				/* [idle-b] */
		pass_on_help();
		all_begun;
		nr_blocked--
	fi
}

/* A slot, and the threads that it has one after the other. */
proctype worker(byte me)
{
	byte alive;
	bool searching, called, is_due, idle_seen, refused;
	bool late, ends, got, found, was_searching;

	do
	:: all_begun -> break
	:: atomic { !all_begun && has_thread[me] && !is_locked ->
		    ends = false;
		    searching = gets_token[me];
		    gets_token[me] = false };
		do
		:: all_begun || ends -> break
		:: else ->
			atomic {
				got = (queue > 0 && !is_surplus);
				queue = queue - got;
				nr_begun = nr_begun + got
			};
			if
			:: got -> got = false; run_task()
			:: else -> idle()
			fi
		od
	od
}

/* end(): what is left of those that have ended. */
proctype ended()
{
	byte alive;
	bool called, is_due, idle_seen, refused;

	do
	:: all_begun -> break
	:: atomic { !all_begun && nr_ended > 0 -> nr_ended-- };
		pass_on_help()
	od
}

proctype spawner()
{
	byte alive, nr;
	bool called, is_due, idle_seen, refused;

	do
	:: nr == NR_TASKS -> break
	:: else ->
		nr++;
		queue++;
		signal()				/* [idle-b] */
	od
}

init {
	atomic {
		run worker(0);
		run worker(1);
		run ended();
		run spawner()
	}
}
