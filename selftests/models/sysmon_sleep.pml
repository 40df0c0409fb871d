/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sysmon_sleep: sysmon never sleeps while it has something to look after,
 * however its word is changed meanwhile (lib/pace/sysmon_wake.[ch];
 * sleep_long(), pl__sysmon_stop() in sysmon.c).
 *
 * Only sysmon sees to a task that waits, and to a stalled worker with I/O.
 * is_stalled stands for one more as well: a task that is to compute when others
 * do not. A worker that finds a task as it parks is taken to be blocked by the
 * next task at once. While sysmon is awake it sees to all of them. So a task or a stalled worker that is left
 * over when all else has ended is a deadlock, as is a sysmon that outlives the
 * runtime.
 *
 * MUTANT 1: a worker that finds a task as it parks does not wake a sleeping
 * sysmon
 * MUTANT 2: sysmon is woken before its word is changed
 * MUTANT 3: sysmon does not look once it has said that it sleeps
 * MUTANT 4: sysmon sleeps whatever its word is
 * MUTANT 5: a worker with I/O changes the word and does not wake sysmon
 * MUTANT 6: a worker with I/O changes the word though the runtime ends
 * MUTANT 7: sysmon says that it sleeps though the runtime ends
 * MUTANT 8: the runtime ends and does not wake sysmon
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_TASKS	2
#define NR_PARKS	2
#define NR_SLEEPS	3

mtype = { AWAKE, NO_BACKLOG, ASLEEP, OVER };

mtype word = NO_BACKLOG;
byte queue;
bool is_stalled;	/* a worker that has I/O in flight; one to compute */
bool is_in_futex;		/* sysmon, until a thread wakes it */

#if MUTANT == 3
#define is_to_sleep	(word == ASLEEP)
#else
#define is_to_sleep	(word == ASLEEP && queue == 0 && !is_stalled)
#endif

inline wake()
{
	is_in_futex = false
}

/* sysmon_set_state() */
inline set_state(new)
{
	atomic {
		old = word;
		if
#if MUTANT == 7
		:: true -> word = new
#else
		:: old != OVER -> word = new
		:: else
#endif
		fi
	}
}

/* pl__sysmon_notify_slow(), which looks first; the parker has just looked. */
inline sysmon_wake()
{
#if MUTANT == 2
	if
	:: word == ASLEEP -> wake()
	:: else
	fi;
#endif
	set_state(AWAKE);
#if MUTANT != 2
	if
	:: old == ASLEEP -> wake()
	:: else
	fi
#endif
}

/* pl__sysmon_kick(): was_asleep if it changed the word. */
inline kick()
{
	atomic {
		was_asleep = (word == ASLEEP);
		if
		:: was_asleep -> word = NO_BACKLOG
#if MUTANT == 6
		:: word == OVER -> word = NO_BACKLOG
#endif
		:: else
		fi
	}
}

/* sleep_long() */
inline sleep()
{
	do
#if MUTANT != 3
	:: queue > 0 || is_stalled -> break
#endif
#if MUTANT == 4
	:: atomic { queue == 0 && !is_stalled -> is_in_futex = true };
		!is_in_futex
#else
	:: atomic { word != ASLEEP -> break }
	:: atomic { is_to_sleep };
		atomic { is_in_futex = (word == ASLEEP) };
		!is_in_futex
#endif
	od;
	if
	:: queue > 0 -> set_state(AWAKE)
	:: else -> kick()
	fi
}

proctype sysmon()
{
	byte left = NR_SLEEPS;
	mtype old = AWAKE;
	bool was_asleep;

	do
	:: word == OVER -> break
	:: atomic { queue > 0 -> queue-- }	/* it starts a worker */
	:: atomic { is_stalled -> is_stalled = false }
	:: atomic { word != OVER && queue == 0 && !is_stalled && left > 0 ->
		    left-- };
		set_state(ASLEEP);		/* [sysmon-a], [compute-a] */
		if
		:: old != OVER -> sleep()
		:: else
		fi
	od
}

/* pl__sysmon_clear_backlog() */
proctype parker()
{
	byte left = NR_PARKS;
	mtype old = AWAKE;
	bool was_awake;

	do
	:: left == 0 -> break
	:: left > 0 ->
		left--;
		atomic {
			was_awake = (word == AWAKE);
			word = (was_awake -> NO_BACKLOG :
					     word)	/* [backlog-a] */
		};
		if
		:: was_awake && queue > 0 ->
#if MUTANT == 1
			set_state(AWAKE)
#else
			sysmon_wake()
#endif
		:: else
		fi
	od
}

/* pl__sysmon_notify() */
proctype spawner()
{
	byte left = NR_TASKS;
	mtype old = AWAKE;

	do
	:: left == 0 -> break
	:: left > 0 ->
		left--;
		queue++;
		if
		:: word != AWAKE ->		/* [sysmon-b], [backlog-b] */
			if
			:: queue > 0 -> sysmon_wake()
			:: else
			fi
		:: else
		fi
	od
}

/* pl__sysmon_notify_io() */
proctype reader()
{
	bool was_asleep;

	is_stalled = true;		/* [orphan-b], [compute-b] */
	if
	:: word == ASLEEP ->
		kick();
		if
#if MUTANT != 5
		:: was_asleep -> wake()
#endif
		:: else
		fi
	:: else
	fi
}

init {
	atomic {
		if
		:: word = AWAKE
		:: skip
		fi;
		run sysmon();
		run parker();
		run spawner();
		run reader()
	}
	(_nr_pr == 2 && queue == 0 && !is_stalled);
	/* pl__sysmon_stop() */
	word = OVER;
#if MUTANT != 8
	wake();
#endif
	_nr_pr == 1
}
