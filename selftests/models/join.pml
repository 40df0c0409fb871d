/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * join: a joiner sees that the task ended, or is woken; and the waker touches
 * nothing that the joiner may have freed (lib/wait/join.c, pl__task_end() in
 * task_exit.c, wait_link() and pl__wake() in wait.c).
 *
 * Two joiners of one task; each comes at any time. The task ends, and its slot
 * is used by a next one, which is not joined. The bucket's lock is taken and
 * dropped. The first joiner's word may also be in memory that is freed as soon
 * as its wait is over. A joiner that waits for ever is a deadlock.
 *
 * MUTANT 1: [join-a] is relaxed: on_end is seen late
 * MUTANT 2: [join-b] is relaxed: the version is seen late
 * MUTANT 3: the version is compared before the bucket's lock is taken
 * MUTANT 4: the task looks at on_end before it moves its version
 * MUTANT 5: the waker looks at the word again once it has changed
 * MUTANT 6: one joiner is woken, not all
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_JOINERS	2
#define OURS		1		/* the version that is joined */

byte version = OURS;
bool on_end;
bool locked;
bool waiting[NR_JOINERS];
bool freed;			/* by the first joiner, after its wait */
bool is_late_on_end, is_late_version;

#define lock()		atomic { !locked -> locked = true }
#define unlock()	locked = false

proctype joiner(byte me)
{
	bool same;

	do
	:: version != OURS -> break
	:: else ->
#if MUTANT == 1
		is_late_on_end = true;
#else
		on_end = true;			/* [join-a] */
#endif
#if MUTANT == 3
		same = (version == OURS);
		lock();
#else
		lock();
		same = (version == OURS);
#endif
		waiting[me] = same;
		unlock();
		!waiting[me]
	od;
	if
	:: me == 0 -> freed = true
	:: else
	fi
}

active proctype task()
{
	bool is_joined;

#if MUTANT == 4
	is_joined = on_end;
#endif
#if MUTANT == 2
	is_late_version = true;
#else
	version = OURS + 1;			/* [join-b] */
#endif
#if MUTANT != 4
	is_joined = on_end;
#endif
	if
	:: is_joined ->
#if MUTANT == 5
		assert(!freed);
#endif
		lock();
		d_step {
#if MUTANT == 6
			waiting[1] = waiting[1] && waiting[0];
#else
			waiting[1] = false;
#endif
			waiting[0] = false
		};
		unlock()
	:: else
	fi;
#if MUTANT == 2
	!is_late_version;
#endif
	/* The slot's next task, which is not joined. */
	on_end = false;
	version = OURS + 2
}

#if MUTANT == 1 || MUTANT == 2
active proctype memory()
{
end:	do
	:: atomic { is_late_on_end -> is_late_on_end = false; on_end = true }
	:: atomic { is_late_version -> is_late_version = false;
		    version = OURS + 1 }
	od
}
#endif

init {
	atomic {
		run joiner(0);
		run joiner(1)
	}
}
