/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * idle_timeout: a surplus worker ends, and its slot is taken again
 * (lib/pace/worker_thread.h; pl__worker_end(), worker_give_up(),
 * worker_thread_end(), start_next() in worker_thread.c; idle() in worker.c;
 * park_in_lot(), pl__sleep() in worker.c; pl__notify_one(), notify_slow()
 * in notify.c).
 *
 * The target is one worker, two run at first, and there may be no more. A task
 * ends at once, or blocks its worker until each has begun; tasks come one by
 * one. So tasks that wait while too few workers run are a deadlock. The
 * reserve worker is left out: an idle worker ends whenever more are alive than
 * the target and the blocked ones. Its idle timeout expires but twice, so that
 * it does not make up for a signal that was lost. There is one queue, as all
 * workers steal from all. A worker that has ended looks once more, as a thread
 * that is no worker: `ended'.
 *
 * MUTANT 1: a worker that ends does not look in the queues afterwards
 * MUTANT 2: a worker that ends looks in the queues before nr_alive goes down
 * MUTANT 3: a worker woken as its idle timeout expired ends all the same
 * MUTANT 4: a worker that ends is still counted as alive
 * MUTANT 5: a worker started in the slot does not know that it is the searcher
 * MUTANT 6: a notifier that was refused a start does not look again
 * MUTANT 7: a notifier that woke no worker stops searching without another
 * look
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	2
#define NR_TASKS	NR_WORKERS
#define NR_TIMEOUTS	2

byte queue;
byte nr_alive = NR_WORKERS;
byte nr_idle, nr_blocked, nr_searching, nr_begun;
byte nr_timeouts = NR_TIMEOUTS;	/* to come */
byte nr_ended;			/* that have not looked since */
bool is_locked;			/* start_lock */
bool has_thread[NR_WORKERS] = true;
bool starts_searching[NR_WORKERS];
bool changed[NR_WORKERS];	/* seq, since the worker peeked at it */
bool listed[NR_WORKERS], woken[NR_WORKERS];

#define TARGET		1
#define all_begun	(nr_begun == NR_TASKS)
#define is_end_due	(nr_alive > TARGET + nr_blocked)
#define is_start_due	(nr_alive < NR_WORKERS && \
			 nr_alive < TARGET + nr_blocked)
#define is_surplus	(nr_alive > TARGET + nr_idle + nr_blocked)

/* is_notify_due(): two loads; other threads may run in between. */
inline look_at_counts()
{
	alive = nr_alive;
	is_due = (alive < TARGET + nr_idle + nr_blocked &&
		  (nr_idle > 0 || alive < NR_WORKERS))
}

/* The lots' signal: seq moves on if no worker sleeps yet. */
inline wake()
{
	d_step {
		if
		:: listed[0] -> listed[0] = false; woken[0] = true;
			notified = true
		:: !listed[0] && listed[1] -> listed[1] = false;
			woken[1] = true; notified = true
		:: else -> changed[0] = true; changed[1] = true
		fi
	}
}

/* start_next(), by the searcher. */
inline start()
{
	atomic { !is_locked -> is_locked = true };
	d_step {
		if
		:: is_start_due ->
			if
			:: !has_thread[0] -> has_thread[0] = true;
				starts_searching[0] = (MUTANT != 5)
			:: else -> has_thread[1] = true;
				starts_searching[1] = (MUTANT != 5)
			fi;
			nr_alive++;
			notified = true
		:: else -> refused = (MUTANT != 6)
		fi;
		is_locked = false
	}
}

/* pl__notify_one(), notify_slow() */
inline notify()
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
			:: atomic { notified -> notified = false }; break
			:: atomic { !notified -> nr_searching-- }
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

inline notify_if_work()
{
	if
	:: queue > 0 -> notify()
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

/* A worker that timed out is on no lot's list, so no signal wakes it. */
inline park()
{
	if
	:: atomic { !changed[me] -> listed[me] = true; woken[me] = false };
		if
		:: atomic { woken[me] -> searching = true }
		:: atomic { listed[me] && nr_timeouts > 0 ->
			    nr_timeouts--; listed[me] = false;
			    timed_out = true }
#if MUTANT == 3
		:: atomic { woken[me] && nr_timeouts > 0 ->
			    nr_timeouts--; timed_out = true }
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
	notify_if_work();
#endif
	if
	:: is_end_due ->
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
	:: nr_alive > TARGET &&
	   nr_alive >= TARGET + nr_idle + nr_blocked -> park()
	:: else ->
		if
		:: queue == 0 -> park()
		:: else -> found = true
		fi
	fi;
	if
	:: timed_out -> end(); timed_out = false
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
	:: searching -> stop_searching(); notify_if_work()
	:: else
	fi;
	if
	:: skip						/* it ends at once */
	:: nr_blocked++;				/* [idle-b] */
		notify_if_work();
		all_begun;
		nr_blocked--
	fi
}

/* A slot, and the threads that it has one after the other. */
proctype worker(byte me)
{
	byte alive;
	bool searching, notified, is_due, idle_seen, refused;
	bool timed_out, ends, got, found, was_searching;

	do
	:: all_begun -> break
	:: atomic { !all_begun && has_thread[me] && !is_locked ->
		    ends = false;
		    searching = starts_searching[me];
		    starts_searching[me] = false };
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

/* end(): the last look of each worker that has ended. */
proctype ended()
{
	byte alive;
	bool notified, is_due, idle_seen, refused;

	do
	:: all_begun -> break
	:: atomic { !all_begun && nr_ended > 0 -> nr_ended-- };
		notify_if_work()
	od
}

proctype spawner()
{
	byte alive, nr;
	bool notified, is_due, idle_seen, refused;

	do
	:: nr == NR_TASKS -> break
	:: else ->
		nr++;
		queue++;
		notify()				/* [idle-b] */
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
