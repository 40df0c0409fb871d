/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sysmon: sysmon sees tasks that are queued while all workers are blocked in
 * the kernel, and notifies another worker (lib/watch/sysmon.c's drawings;
 * pl__notify_one(), notify_slow() in notify.c; pl__duty() in pace.c; idle() in
 * worker.c).
 *
 * One worker runs at first and the target is one. Tasks are queued one at a
 * time, or both. A task blocks its worker until all tasks have begun, or
 * returns at any time. So a task that waits while sysmon sleeps, or has no
 * worker left to mark, is a deadlock. There is one queue, as all workers steal
 * from all. An awake sysmon that sees nothing new waits for a change, or its
 * looks would hide the deadlock.
 *
 * MUTANT 1: [idle-b] is left out: the task is seen late
 * MUTANT 2: [sysmon-a] is left out: that sysmon sleeps is seen late
 * MUTANT 3: sysmon looks in the queues before it says that it sleeps
 * MUTANT 4: sysmon marks and does not notify
 * MUTANT 5: a notifier that woke no worker does not wake sysmon
 * MUTANT 6: a notifier that finds enough workers running does not wake sysmon
 * MUTANT 7: nr_blocked goes up after the mark
 * MUTANT 8: a worker that parks leaves its mark's count behind
 * MUTANT 9: worker and sysmon both take the mark back
 * MUTANT 10: sysmon marks the worker that it saw, though it is idle by now
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	3
#define NR_TASKS	2
#define TARGET		1

mtype = { RUNS, BLOCKED, IDLE };

mtype duty[NR_WORKERS] = RUNS;
bool in_kernel[NR_WORKERS];
byte queue, nr_begun;
byte nr_started = 1, nr_idle, nr_blocked, nr_searching;
bool changed[NR_WORKERS], listed[NR_WORKERS], woken[NR_WORKERS];
bool asleep;			/* sysmon's word */
byte late_queue;
bool late_asleep;

#define enough_run	(nr_started >= nr_idle + nr_blocked + TARGET)
#define is_surplus	(nr_started > nr_idle + nr_blocked + TARGET)
#define is_notify_due	(!enough_run && \
			 (nr_idle > 0 || nr_started < NR_WORKERS))
#define all_begun	(nr_begun == NR_TASKS)
#define stalls(i)	(i < nr_started && duty[i] == RUNS && in_kernel[i])
#define computes(i)	(i < nr_started && duty[i] == BLOCKED && !in_kernel[i])

/* Wakes a listed worker, or starts one; seq moves on in any case. */
inline wake_or_start()
{
	d_step {
		notified = false;
		if
		:: nr_idle > 0 ->
			changed[0] = true;
			changed[1] = true;
			changed[2] = true;
			i = 0;
			do
			:: i < NR_WORKERS && !listed[i] -> i++
			:: else -> break
			od;
			if
			:: i < NR_WORKERS ->
				listed[i] = false;
				woken[i] = true;
				notified = true
			:: else
			fi
		:: nr_idle == 0 && nr_started < NR_WORKERS &&
		   nr_started < TARGET + nr_blocked ->
			nr_started++;
			notified = true
		:: else
		fi;
		i = 0
	}
}

/* pl__notify_one(), notify_slow() */
inline notify()
{
	do
	:: atomic { nr_searching == 0 && is_notify_due -> nr_searching++ };
		wake_or_start();
		if
		:: notified -> break
		:: else -> nr_searching--
		fi;
		if
		:: is_notify_due && queue > 0
		:: else ->
#if MUTANT != 5
			asleep = false;
#endif
			break
		fi
	:: atomic { nr_searching > 0 -> break }
	:: atomic { nr_searching == 0 && !is_notify_due ->
#if MUTANT != 6
		    asleep = false;	/* [sysmon-b] */
#endif
		    break }
	od;
	notified = false
}

/* The worker or sysmon takes the mark BLOCKED from worker w. */
inline take_back(w, to)
{
	atomic {
		had = (duty[w] == BLOCKED);	/* [duty-b] */
		if
		:: had || to == IDLE -> duty[w] = to
		:: else
		fi
	};
#if MUTANT == 9
	if
	:: was_marked -> had = true
	:: else
	fi;
#endif
	if
	:: had ->
		assert(nr_blocked > 0);
		nr_blocked--
	:: else
	fi
}

inline park()
{
	if
	:: atomic { !changed[me] -> listed[me] = true; woken[me] = false };
		if
		:: atomic { woken[me] -> searching = true }
		:: all_begun
		fi
	:: changed[me]
	fi
}

inline stop_searching()
{
	if
	:: searching ->
		assert(nr_searching == 1);
		searching = false;
		nr_searching--
	:: else
	fi
}

inline idle()
{
	atomic { was_searching = searching; changed[me] = false };
#if MUTANT == 8
	duty[me] = IDLE;
#else
	take_back(me, IDLE);
#endif
	nr_idle++;				/* [idle-a] */
	stop_searching();
	if
	:: enough_run ->
		if
		:: was_searching && queue > 0 -> asleep = false
		:: else
		fi;
		park()
	:: !enough_run && queue == 0 -> park()
	:: else ->
		if
		:: atomic { was_searching && nr_searching == 0 ->
			    nr_searching++; searching = true }
		:: else
		fi
	fi;
	duty[me] = RUNS;
	nr_idle--;
	was_searching = false
}

proctype worker(byte me; bool searching)
{
	bool had, was_searching, got, was_marked;

	nr_started > me || all_begun;
	do
	:: all_begun -> break
	:: else ->
		was_marked = (duty[me] == BLOCKED);
		take_back(me, RUNS);
		atomic {
			got = (queue > 0 && !is_surplus);
			queue = queue - got
		};
		if
		:: got ->
			got = false;
			if
			:: searching ->
				stop_searching();
				/* Enough run with this one: wake sysmon. */
				if
				:: queue > 0 && nr_searching == 0 ->
					asleep = false
				:: else
				fi
			:: else
			fi;
			atomic { in_kernel[me] = true; nr_begun++ };
			if
			:: skip -> all_begun
			:: skip			/* it returns */
			fi;
			in_kernel[me] = false
		:: else -> idle()
		fi
	od
}

inline mark(w)
{
#if MUTANT != 7
	nr_blocked++;
#endif
	atomic {
#if MUTANT == 10
		had = true;
#else
		had = (duty[w] == RUNS);	/* [duty-a] */
#endif
		if
		:: had -> duty[w] = BLOCKED
		:: else
		fi
	};
#if MUTANT == 7
	nr_blocked = nr_blocked + had;
#else
	if
	:: !had ->
		assert(nr_blocked > 0);
		nr_blocked--
	:: else
	fi;
#endif
	had = false
}

proctype sysmon()
{
	byte i, seen;
	bool notified, had, was_marked;

	do
	:: all_begun -> break
	:: atomic { !all_begun && (stalls(0) || stalls(1) || stalls(2)) ->
		    if
		    :: stalls(0) -> seen = 0
		    :: stalls(1) -> seen = 1
		    :: stalls(2) -> seen = 2
		    fi };
		mark(seen);
#if MUTANT != 4
		if
		:: queue > 0 -> notify()
		:: else
		fi
#endif
	:: atomic { !all_begun &&
		    (computes(0) || computes(1) || computes(2)) ->
		    if
		    :: computes(0) -> seen = 0
		    :: computes(1) -> seen = 1
		    :: computes(2) -> seen = 2
		    fi;
		    was_marked = true };
		take_back(seen, RUNS);
		was_marked = false
	:: queue == 0 && !all_begun ->
#if MUTANT == 2
		late_asleep = true;
#else
		asleep = true;			/* [sysmon-a] */
#endif
#if MUTANT != 3
		if
		:: queue > 0 -> atomic { asleep = false; late_asleep = false }
		:: else -> (!asleep && !late_asleep) || all_begun
		fi
#else
		!asleep || all_begun
#endif
	od
}

proctype spawner()
{
	byte i, left = NR_TASKS, nr;
	bool notified;

	do
	:: left == 0 -> break
	:: left > 0 ->
		if
		:: nr = 1
		:: nr = left
		fi;
		left = left - nr;
#if MUTANT == 1
		late_queue = late_queue + nr;
#else
		queue = queue + nr;
#endif
		notify()			/* [idle-b] */
	od
}

#if MUTANT == 1 || MUTANT == 2
/* Late stores reach memory at any time. */
active proctype memory()
{
end:	do
	:: atomic { late_queue > 0 -> queue = queue + late_queue;
		    late_queue = 0 }
	:: atomic { late_asleep -> asleep = true; late_asleep = false }
	od
}
#endif

init {
	atomic {
		run worker(0, false);
		run worker(1, true);
		run worker(2, true);
		run sysmon();
		run spawner()
	};
#if MUTANT != 1 && MUTANT != 2
	_nr_pr == 1;
	assert(nr_blocked == (duty[0] == BLOCKED) + (duty[1] == BLOCKED) +
			     (duty[2] == BLOCKED))
#endif
}
