/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * crew_backlog: while tasks wait, the device's crew has its backlog set, and
 * wakes a parked worker in place of one that blocks (pl__sysmon_notify(),
 * pl__sysmon_clear_backlog(), pl__crew_publish_backlog() in
 * notify.c; sleep_long() in sysmon.c; pl__notify_one() in notify.c;
 * module/pool.c).
 *
 * The target is one worker, two are there: one parks when it should; the other
 * does not, and is blocked at first. A task blocks one of them until all have
 * begun; the others return at any time. Sysmon sleeps once, and looks once,
 * when it gets up: later looks would hide an error. A woken worker notifies
 * again for the tasks that are left. So a task that waits while a worker is
 * parked is a deadlock.
 *
 * MUTANT 1: a worker that parks does not look in the queue once the backlog is
 * clear
 * MUTANT 2: the backlog is stored without another look at the word
 * MUTANT 3: the thread that sets the backlog does not look again whether
 * enough run
 * MUTANT 4: a spawner wakes sysmon only if that sleeps
 * MUTANT 5: the kernel looks at the backlog before it counts the blocked
 * worker
 * MUTANT 6: sysmon gets up and does not publish the backlog
 * MUTANT 7: sysmon gets up and does not look whether enough run
 * MUTANT 8: a worker that was woken and is surplus parks and wakes no other
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	2
#define NR_TASKS	2
#define NR_SLEEPS	1
#define TARGET		1

mtype = { AWAKE, NO_BACKLOG, ASLEEP };

mtype word = NO_BACKLOG;
bool backlog;
byte queue, nr_begun;
byte nr_idle, nr_blocked;
bool changed, parked, woken;
bool is_stuck;			/* a worker is blocked until the end */

#define enough_run	(NR_WORKERS >= nr_idle + nr_blocked + TARGET)
#define is_surplus	(NR_WORKERS > nr_idle + nr_blocked + TARGET)
#define is_notify_due	(!enough_run && nr_idle > 0)
#define all_begun	(nr_begun == NR_TASKS)
#define kernel_is_short	(NR_WORKERS < parked + nr_blocked + TARGET && \
			 backlog && parked)

/* Wakes a parked worker; seq moves on in any case. */
inline wake()
{
	d_step {
		notified = true;
		changed = true;
		if
		:: parked -> parked = false; woken = true
		:: else -> notified = false
		fi
	}
}

/* crew_publish_backlog() */
inline publish_backlog()
{
	do
	:: published = word;
		atomic {
			backlog = (published == AWAKE);
#if MUTANT == 2
			published = word;
#endif
			if
			:: word == published -> published = AWAKE; break
			:: else
			fi
		}
	od
}

/* pl__sysmon_notify(), pl__sysmon_notify_slow(); is_set: backlog was set. */
inline sysmon_wake()
{
	atomic {
#if MUTANT == 4
		is_set = (word == ASLEEP && queue > 0);
#else
		is_set = (word != AWAKE && queue > 0);	/* [backlog-b] */
#endif
		if
		:: is_set -> word = AWAKE
		:: else
		fi
	};
	if
	:: is_set -> publish_backlog()
	:: else
	fi
}

/* pl__notify_one(), notify_slow(): the woken worker notifies in turn. */
inline notify()
{
	do
	:: atomic { is_notify_due -> wake() };
		if
		:: atomic { notified -> notified = false; break }
		:: atomic { !notified && is_notify_due && queue > 0 }
		:: atomic { !notified && !(is_notify_due && queue > 0) };
			sysmon_wake();
			atomic {
				if
				:: is_set && is_notify_due -> is_set = false
				:: else -> is_set = false; break
				fi
			}
		fi
	:: atomic { !is_notify_due };
		sysmon_wake();
		atomic {
			if
#if MUTANT != 3
			:: is_set && is_notify_due -> is_set = false
#endif
			:: else -> is_set = false; break
			fi
		}
	od
}

/* parklot_pool_check() as a worker blocks or parks; a later one is no worse. */
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
			was_notified = woken;
			woken = false
		}
	:: atomic { changed }
	fi
}

/* pl__sysmon_clear_backlog() */
inline clear_backlog()
{
	atomic {
		is_set = (word == AWAKE);
		word = (is_set -> NO_BACKLOG : word)	/* [backlog-a] */
	};
	if
	:: atomic { is_set -> is_set = false };
		publish_backlog();
#if MUTANT != 1
		if
		:: atomic { queue > 0 -> has_work = true };
			sysmon_wake();
			is_set = false
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
		was_searching = was_notified;
		was_notified = false
	};
	if
	:: atomic { !enough_run && queue > 0 -> was_notified = was_searching }
	:: atomic { enough_run };
#if MUTANT != 8
		if
		:: atomic { was_searching }; sysmon_wake()
		:: atomic { else }
		fi;
#endif
		if
		:: atomic { is_set && !enough_run }
		:: atomic { else }; park()
		fi
	:: atomic { !enough_run && queue == 0 };
		clear_backlog();
		if
		:: atomic { has_work -> was_notified = was_searching }
		:: atomic { else }; park()
		fi
	fi;
	atomic { nr_idle--; has_work = false; was_searching = false;
		 is_set = false }
}

/* The task blocks in the kernel, or returns at once. */
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

/* A worker that parks ... */
proctype worker()
{
	bool has_work, is_set, was_notified, was_searching;
	mtype published = AWAKE;

	do
	:: all_begun -> break
	:: atomic { !all_begun && queue > 0 && !is_surplus ->
		    queue--;
		    nr_begun++ };
		if
		:: atomic { was_notified && queue > 0 -> was_notified = false };
			sysmon_wake();	/* there is no other worker to notify */
			is_set = false
		:: atomic { else -> was_notified = false }
		fi;
		block()
	:: atomic { !all_begun && (queue == 0 || is_surplus) };
		idle()
	od
}

/* ... and one that never does, though it may be surplus. */
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
	bool is_set, notified;
	byte left = NR_SLEEPS;
	mtype published = AWAKE;

	do
	:: all_begun || left == 0 -> break
	:: atomic { queue == 0 && left > 0 -> left--; word = ASLEEP };
		publish_backlog();				/* [sysmon-a] */
		if
		:: atomic { queue > 0 }
		:: atomic { word != ASLEEP || all_begun }
		fi;
		atomic { is_set = (word != AWAKE); word = AWAKE };
		if
#if MUTANT != 6
		:: atomic { is_set -> is_set = false }; publish_backlog()
#endif
		:: atomic { else -> is_set = false }
		fi;
#if MUTANT != 7
		atomic {
			if
			:: queue > 0 && is_notify_due -> wake()
			:: else
			fi;
			notified = false
		}
#endif
	od
}

proctype spawner()
{
	byte left = NR_TASKS;
	bool is_set, notified;
	mtype published = AWAKE;

	do
	:: left == 0 -> break
	:: left > 0 ->
		if
		:: atomic { queue++; left-- }
		:: atomic { queue = queue + left; left = 0 }
		fi;
		notify()			/* [idle-b] */
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
