/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * notify: an idle worker is woken, or one is started, while tasks wait
 * (lib/pace/notify.h; pl__notify_one(), notify_slow(), search_leave(),
 * pl__search_take_left() in notify.c; pl__inboxes_drain(); pl_yield() in
 * run.c; worker_find_task(), idle() in worker.c;
 * pl__worker_look_and_park(), park_in_ring() in worker.c; start_next(),
 * worker_main() in worker_thread.c).
 *
 * There are as many tasks as there may be workers; none of them leaves its
 * worker until all run at once. So a task that waits in a queue while a worker
 * sleeps is a deadlock. A thread spawns them; one worker runs at first. A task
 * yields once, or a parked worker returns for a completion in its ring; once,
 * a worker that found nothing starts to search and looks again. The lot is one
 * step here: lot.pml has its steps. At most one worker searches.
 *
 * MUTANT 1: [idle-b] is left out: the task is seen after the look at nr_idle
 * MUTANT 2: [idle-a] is left out: nr_idle is seen late
 * MUTANT 3: [search-a] is left out: that nr_searching went down is seen late
 * MUTANT 4: the idle worker stops searching after its last look
 * MUTANT 5: a searcher that found a task does not look for more
 * MUTANT 6: a notifier that woke no worker stops searching without another
 * look
 * MUTANT 7: a worker that moved several tasks to its deque does not notify
 * MUTANT 8: a worker back for a completion takes itself for the searcher
 * MUTANT 9: a woken worker does not know that it is the searcher
 * MUTANT 10: a new worker does not wait until it is counted
 * MUTANT 11: a task that yields does not notify
 * MUTANT 12: a notifier that woke no worker does not consider starting one
 * MUTANT 13: a worker that stopped searching and found work does not search
 * again
 * MUTANT 14: a worker that searches by spinning parks still counted as
 * searching
 * MUTANT 15: a worker that spun and found a task searches while it runs the
 * task
 * MUTANT 16: a notifier leaves its search to nobody
 * MUTANT 17: a notifier leaves its search without another look at nr_idle
 * MUTANT 18: a worker looks for a search that was left before it stops to count
 * as idle
 * MUTANT 19: a notifier leaves its search without another signal
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	3
#define NR_TASKS	NR_WORKERS

byte deque[NR_WORKERS], inbox;
byte nr_started = 1;
byte nr_created = 1;		/* threads that run */
bool starting;			/* start_lock held */
byte nr_idle, nr_searching;
bool is_left;			/* is_search_left */
byte nr_uncounted;		/* searchers that search_leave() woke */
bool changed[NR_WORKERS];	/* seq, since the worker peeked at it */
bool listed[NR_WORKERS], woken[NR_WORKERS];

byte nr_running;		/* tasks */
byte nr_disturbances = 1;	/* to come */
byte nr_spins = 1;		/* to come, before a worker parks */

byte late_inbox, late_idle, late_searching;

#define all_run		(nr_running == NR_TASKS)
#define is_notify_due	(nr_idle > 0 || nr_started < NR_WORKERS)

/* pl__work_anywhere() */
inline look()
{
	found = (inbox > 0);
	do
	:: atomic { i == nr_started || found -> i = 0; break }
	:: atomic { i < nr_started && !found ->
		    found = (deque[i] > 0); i++ }
	od
}

inline wake()
{
	d_step {
		do
		:: i < NR_WORKERS && !listed[i] -> i++
		:: else -> break
		od;
		notified = (i < NR_WORKERS);
		if
		:: notified -> listed[i] = false; woken[i] = true
		:: else
		fi;
		i = 0
	}
}

inline move_seq()
{
	d_step { changed[0] = true; changed[1] = true; changed[2] = true }
}

/* pl__search_end(): each counted searcher, and each uncounted, comes here. */
inline search_end()
{
	assert(nr_searching + nr_uncounted > 0);
	nr_uncounted = nr_uncounted - (nr_searching == 0);
	nr_searching = nr_searching - (nr_searching > 0)
}

/* notify_slow(): seq moves on if no worker sleeps yet. */
inline wake_or_start()
{
	!starting || nr_idle > 0;
	if
	:: nr_idle > 0 ->
		wake();
		if
		:: !notified -> move_seq(); wake()
		:: else
		fi
	:: atomic { nr_idle == 0 && nr_started < NR_WORKERS && !starting ->
		    starting = true; nr_created++; notified = true };
		atomic { starting = false; nr_started++ }
	:: else
	fi
}

/* pl__notify_one(), notify_slow() */
inline notify()
{
	do
	:: atomic { nr_searching == 0 &&		/* [search-b] */
		    is_notify_due -> nr_searching++ };
		wake_or_start();
		atomic {
			if
			:: notified -> notified = false; break
			:: else
			fi;
			search_end();
#if MUTANT == 6
			break
#endif
		};
		if
#if MUTANT == 12
		:: nr_idle > 0 -> look()
#else
		:: is_notify_due -> look()
#endif
		:: else -> break
		fi;
		atomic {
			if
			:: found -> found = false
			:: else -> break
			fi
		};
		/* search_leave(): after a few tries, here at any */
		if
		:: skip
		:: true ->
#if MUTANT != 16
			is_left = true;		/* [left-a] */
#endif
			nr_uncounted++;
#if MUTANT != 19
			wake();
			if
			:: !notified -> move_seq(); wake()
			:: else
			fi;
#endif
			atomic {
				if
				:: notified -> notified = false; break
				:: else
				fi;
				assert(nr_uncounted > 0);
				nr_uncounted--;
#if MUTANT == 17
				break
#else
				if
				:: nr_idle > 0 -> break
				:: else
				fi
#endif
			}
		fi
	:: else -> break
	od
}

/* pl__search_take_left() */
inline take_left()
{
	atomic {
		if
		:: is_left ->
			is_left = false;
			if
			:: !searching && nr_searching == 0 ->
				nr_searching++;
				searching = true
			:: else
			fi
		:: else
		fi
	}
}

inline stop_searching()
{
	atomic {
		assert(searching);
		searching = false;
#if MUTANT == 3
		late_searching++
#else
		search_end()			/* [search-a] */
#endif
	}
}

/*
 * pl__next() and steal(): a task from the worker's own deque, or else from the
 * inbox, or else from another's deque. All of the inbox goes to the worker's
 * deque; inbox.pml has a look there while the deque has a task.
 */
inline next()
{
	d_step {
		got = true;
		if
		:: deque[me] > 0 -> deque[me]--
		:: deque[me] == 0 && inbox > 0 -> nr = inbox; inbox = 0
		:: else ->
			i = 0;
			do
			:: i < nr_started && deque[i] == 0 -> i++
			:: else -> break
			od;
			if
			:: i < nr_started -> deque[i]--
			:: else -> got = false
			fi;
			i = 0
		fi
	};
	if
	:: nr > 0 ->
		deque[me] = deque[me] + nr;
#if MUTANT != 7
		if
		:: nr > 1 -> notify()
		:: else
		fi;
#endif
		atomic {
			nr = 0;
			got = (deque[me] > 0);
			deque[me] = deque[me] - got
		}
	:: else
	fi
}

inline park()
{
	if
	:: atomic { !changed[me] -> listed[me] = true; woken[me] = false };
		if
		:: atomic { woken[me] ->
#if MUTANT != 9
			    searching = true
#endif
			  }
		:: atomic { listed[me] && nr_disturbances > 0 ->
			    nr_disturbances--;
#if MUTANT == 8
			    searching = true;
#endif
			    listed[me] = false }
		:: all_run
		fi
	:: changed[me]
	fi
}

inline idle()
{
	atomic { was_searching = searching; changed[me] = false };
#if MUTANT == 2
	late_idle++;
#else
	nr_idle++;				/* [idle-a] */
#endif
#if MUTANT == 4
	look();
	if
	:: searching -> stop_searching()
	:: else
	fi;
#else
	if
	:: searching -> stop_searching()
	:: else
	fi;
	look();
#endif
	if
	:: found
	:: else -> park()
	fi;
#if MUTANT == 18
	take_left();
#endif
	atomic {
		nr_idle = nr_idle + late_idle;
		late_idle = 0;
		nr_idle--;
		if
#if MUTANT != 13
		:: found && was_searching && nr_searching == 0 ->
			nr_searching++;
			searching = true
#endif
		:: else
		fi;
		found = false;
		was_searching = false
	};
#if MUTANT != 18
	take_left()				/* [left-b] */
#endif
}

/* The task runs; it may yield if its worker has another task. */
inline run_task()
{
	nr_running++;
	do
	:: all_run -> break
	:: atomic { !all_run && nr_disturbances > 0 && deque[me] > 0 ->
		    nr_disturbances--; deque[me]-- };
		nr_running--;
		deque[me]++;
#if MUTANT != 11
		notify();
#endif
		nr_running++
	od
}

proctype worker(byte me; bool searching)
{
	byte i, nr;
	bool found, notified, got, was_searching;

	nr_created > me;
#if MUTANT != 10
	nr_started > me || all_run;
#endif
	do
	:: all_run -> break
	:: else ->
		next();
		if
		:: got ->
			if
			:: searching ->
				stop_searching();
#if MUTANT != 5
				look();
				if
				:: found -> found = false; notify()
				:: else
				fi
#endif
			:: else
			fi;
			run_task()
		:: atomic { !got && !searching && nr_spins > 0 &&
			    nr_searching == 0 ->
			    nr_spins--; nr_searching++; searching = true };
#if MUTANT == 14
			next();
			if
			:: got -> stop_searching(); run_task()
			:: else -> searching = false; idle()
			fi
#elif MUTANT == 15
			next();
			if
			:: got -> run_task(); stop_searching()
			:: else
			fi
#endif
		:: !got -> idle()
		fi
	od
}

proctype spawner()
{
	byte i;
	bool found, notified;

#if MUTANT == 1
	late_inbox = NR_TASKS;
#else
	inbox = NR_TASKS;
#endif
	notify()				/* [idle-b] */
}

#if MUTANT == 1 || MUTANT == 2 || MUTANT == 3
/* Late stores reach memory at any time. */
active proctype memory()
{
end:	do
	:: atomic { late_inbox > 0 -> inbox = late_inbox;
		    late_inbox = 0 }
	:: atomic { late_idle > 0 -> nr_idle = nr_idle + late_idle;
		    late_idle = 0 }
	:: atomic { late_searching > 0 ->
		    nr_searching = (nr_searching > late_searching ->
				    nr_searching - late_searching : 0);
		    late_searching = 0 }
	od
}
#endif

init {
	atomic {
		run worker(0, false);
		run worker(1, true);
		run worker(2, true);
		run spawner()
	}
}
