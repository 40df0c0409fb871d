/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew_backlog: while tasks wait, the device's crew is told so, and calls a
 * parked worker for one that blocks (pl__sysmon_notify(),
 * pl__sysmon_clear_backlog(), tell_crew(), sleep_long() in lib/sched/sysmon.c;
 * pl__notify_one() in notify.c; module/pool.c).
 *
 * One worker is wanted, two are there: one parks when it should; the other does
 * not, and is blocked at first.  A task blocks one of them until all have begun;
 * the others return at any time.  Sysmon sleeps once, and looks once, when
 * it gets up: later looks would hide what goes wrong.  Whom somebody wakes passes
 * on what was left to it.  So a task that waits while a worker is parked is a
 * deadlock.
 *
 * MUTANT 1: who parks does not look in the queue once it has said so
 * MUTANT 2: the backlog is stored without another look at the word
 * MUTANT 3: who raises the backlog does not look again whether enough run
 * MUTANT 4: who queues a task wakes sysmon only where that sleeps
 * MUTANT 5: the kernel looks at the backlog before it counts who blocks
 * MUTANT 6: sysmon gets up and does not tell
 * MUTANT 7: it does not look whether enough run
 * MUTANT 8: who was called and is one too many parks and wakes nobody
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	2
#define NR_TASKS	2
#define NR_SLEEPS	1
#define WANTED		1

mtype = { AWAKE, NO_BACKLOG, ASLEEP };

mtype word = NO_BACKLOG;
bool backlog;
byte queue, nr_begun;
byte nr_idle, nr_blocked;
bool changed, parked, woken;
bool is_stuck;			/* one is blocked for good */

#define enough_run	(NR_WORKERS >= nr_idle + nr_blocked + WANTED)
#define is_surplus	(NR_WORKERS > nr_idle + nr_blocked + WANTED)
#define is_notify_due	(!enough_run && nr_idle > 0)
#define all_begun	(nr_begun == NR_TASKS)
#define kernel_is_short	(NR_WORKERS < parked + nr_blocked + WANTED && \
			 backlog && parked)

/* Wakes one that is parked; seq moves on in any case. */
inline wake()
{
	d_step {
		called = true;
		changed = true;
		if
		:: parked -> parked = false; woken = true
		:: else -> called = false
		fi
	}
}

/* tell_crew() */
inline tell()
{
	do
	:: said = word;
		atomic {
			backlog = (said == AWAKE);
#if MUTANT == 2
			said = word;
#endif
			if
			:: word == said -> said = AWAKE; break
			:: else
			fi
		}
	od
}

/* pl__sysmon_notify(), pl__sysmon_notify_slow(): is_told if it raised the backlog. */
inline get_up()
{
	atomic {
#if MUTANT == 4
		is_told = (word == ASLEEP && queue > 0);
#else
		is_told = (word != AWAKE && queue > 0);	/* [backlog-b] */
#endif
		if
		:: is_told -> word = AWAKE
		:: else
		fi
	};
	if
	:: is_told -> tell()
	:: else
	fi
}

/* pl__notify_one(), notify_slow(): whom it wakes looks for more in turn. */
inline signal()
{
	do
	:: atomic { is_notify_due -> wake() };
		if
		:: atomic { called -> called = false; break }
		:: atomic { !called && is_notify_due && queue > 0 }
		:: atomic { !called && !(is_notify_due && queue > 0) };
			get_up();
			atomic {
				if
				:: is_told && is_notify_due -> is_told = false
				:: else -> is_told = false; break
				fi
			}
		fi
	:: atomic { !is_notify_due };
		get_up();
		atomic {
			if
#if MUTANT != 3
			:: is_told && is_notify_due -> is_told = false
#endif
			:: else -> is_told = false; break
			fi
		}
	od
}

/* parklot_pool_check(), for who blocks or parks; later calls are no worse. */
inline kernel_looks()
{
	if
	:: kernel_is_short -> parked = false
	:: else
	fi
}

inline park()
{
	if
	:: atomic { !changed ->
		    parked = true;		/* [crew-a] */
		    kernel_looks() };
		atomic {
			!parked || all_begun;
			was_called = woken;
			woken = false
		}
	:: atomic { changed }
	fi
}

/* pl__sysmon_clear_backlog() */
inline untell()
{
	atomic {
		is_told = (word == AWAKE);
		word = (is_told -> NO_BACKLOG : word)	/* [backlog-a] */
	};
	if
	:: atomic { is_told -> is_told = false };
		tell();
#if MUTANT != 1
		if
		:: atomic { queue > 0 -> has_work = true };
			get_up();
			is_told = false
		:: atomic { queue == 0 }
		fi
#endif
	:: else
	fi
}

inline idle()
{
	atomic {
		changed = false;
		nr_idle++;			/* [idle-a] */
		was_searching = was_called;
		was_called = false
	};
	if
	:: atomic { !enough_run && queue > 0 -> was_called = was_searching }
	:: atomic { enough_run };
#if MUTANT != 8
		if
		:: atomic { was_searching }; get_up()
		:: atomic { else }
		fi;
#endif
		if
		:: atomic { is_told && !enough_run }
		:: atomic { else }; park()
		fi
	:: atomic { !enough_run && queue == 0 };
		untell();
		if
		:: atomic { has_work -> was_called = was_searching }
		:: atomic { else }; park()
		fi
	fi;
	atomic { nr_idle--; has_work = false; was_searching = false;
		 is_told = false }
}

/* The task blocks, or not; in the kernel's words. */
inline block()
{
#if MUTANT == 5
	kernel_looks();
	nr_blocked++;
#else
	atomic { nr_blocked++; kernel_looks() };
#endif
	if
	:: atomic { !is_stuck -> is_stuck = true }; all_begun
	:: skip
	fi;
	nr_blocked--
}

/* One that parks ... */
proctype worker()
{
	bool has_work, is_told, was_called, was_searching;
	mtype said = AWAKE;

	do
	:: all_begun -> break
	:: atomic { !all_begun && queue > 0 && !is_surplus ->
		    queue--;
		    nr_begun++ };
		if
		:: atomic { was_called && queue > 0 -> was_called = false };
			get_up();	/* there is nobody else to call */
			is_told = false
		:: atomic { else -> was_called = false }
		fi;
		block()
	:: atomic { !all_begun && (queue == 0 || is_surplus) };
		idle()
	od
}

/* ... and one that never does, though it may be one too many. */
proctype blocker()
{
	block();
	do
	:: all_begun -> break
	:: atomic { queue > 0 -> queue--; nr_begun++ };
		block()
	od
}

proctype sysmon()
{
	bool is_told, called;
	byte left = NR_SLEEPS;
	mtype said = AWAKE;

	do
	:: all_begun || left == 0 -> break
	:: atomic { queue == 0 && left > 0 -> left--; word = ASLEEP };
		tell();				/* [sysmon-a] */
		if
		:: atomic { queue > 0 }
		:: atomic { word != ASLEEP || all_begun }
		fi;
		atomic { is_told = (word != AWAKE); word = AWAKE };
		if
#if MUTANT != 6
		:: atomic { is_told -> is_told = false }; tell()
#endif
		:: atomic { else -> is_told = false }
		fi;
#if MUTANT != 7
		atomic {
			if
			:: queue > 0 && is_notify_due -> wake()
			:: else
			fi;
			called = false
		}
#endif
	od
}

proctype spawner()
{
	byte left = NR_TASKS;
	bool is_told, called;
	mtype said = AWAKE;

	do
	:: left == 0 -> break
	:: left > 0 ->
		if
		:: atomic { queue++; left-- }
		:: atomic { queue = queue + left; left = 0 }
		fi;
		signal()			/* [idle-b] */
	od
}

init {
	atomic {
		run worker();
		run blocker();
		run sysmon();
		run spawner()
	};
	_nr_pr == 1;
	assert(nr_blocked == 0 && nr_idle == 0)
}
