/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lot: workers park while signallers queue tasks; a signaller that sees no
 * parked worker skips the system call (lib/park/lot.h, lot.c, lot.c;
 * pl__lots_stop()).
 *
 * Two workers; two signallers, each with a task; and in the end a stopper. Each
 * access is a step; the lot's lock is taken and dropped. A store without a full
 * barrier may reach memory late: it waits in a buffer. A worker that sleeps for
 * ever is a deadlock; as many workers are WOKEN as the signallers counted.
 *
 * MUTANT 1: [lot-a] is relaxed: nr_parked++ is seen late
 * MUTANT 2: [lot-pub] is relaxed: seq is seen late
 * MUTANT 3: [lot-c] is left out: seq is not compared once listed
 * MUTANT 4: the task is seen after seq, which published it
 * MUTANT 5: seq is peeked at after the look into the queues
 * MUTANT 6: a refused worker removes itself, although a signaller did
 * MUTANT 7: the stop bit is set without waking any worker
 * MUTANT 8: a signaller that wakes none does not move seq
 * MUTANT 9: a signaller that wakes none does not look again after it moved seq
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	2
#define NR_SIGNALLERS	2

/* In memory. */
byte queued;
byte seq, nr_parked;
bool stopped;
bool locked;			/* the lot's lock */
bool listed[NR_WORKERS];	/* under it */
bool woken[NR_WORKERS];		/* the sleeper's state */

/* Stores on their way to memory. */
byte late_parked, late_seq, late_queued;

byte nr_done;			/* tasks taken */
byte nr_counted, nr_woken;	/* by signallers; workers that returned */
byte nr_ended;			/* workers */

#define lock()		atomic { !locked -> locked = true }
#define drain_parked()	nr_parked = nr_parked + late_parked; late_parked = 0

/* A release: all stores before it are in memory. */
#define unlock()	d_step { drain_parked(); locked = false }

proctype worker(byte me)
{
	byte expected;
	bool same, was_stopped;

again:
#if MUTANT != 5
	atomic { expected = seq; was_stopped = stopped }
#endif
	if
	:: atomic { queued > 0 -> queued--; nr_done++ }; goto again
	:: queued == 0
	fi;
#if MUTANT == 5
	atomic { expected = seq; was_stopped = stopped }
#endif
	if
	:: was_stopped -> goto out
	:: else
	fi;

	woken[me] = false;
	lock();
	listed[me] = true;
#if MUTANT == 1
	late_parked++;
#else
	nr_parked++;		/* [lot-a] */
#endif
#if MUTANT == 3
	same = true;
#else
	same = (seq == expected && stopped == was_stopped);	/* [lot-c] */
#endif
#if MUTANT == 6
	unlock();
	if
	:: !same -> d_step { listed[me] = false; nr_parked-- }
	:: else
	fi;
#else
	if
	:: !same -> d_step { listed[me] = false; drain_parked(); nr_parked-- }
	:: else
	fi;
	unlock();
#endif
	if
	:: same -> atomic { woken[me] -> nr_woken++ }
	:: else
	fi;
	goto again;
out:
	nr_ended++
}

/* lot_list_wake(): wakes up to @nr workers. */
inline wake(nr)
{
	i = 0;
	do
	:: i < nr && nr_parked > 0 ->		/* [lot-b] */
		lock();
		if
		:: listed[0] -> d_step { taken = 0; listed[0] = false;
					 nr_parked-- }
		:: !listed[0] && listed[1] ->
			d_step { taken = 1; listed[1] = false; nr_parked-- }
		:: else -> taken = NR_WORKERS
		fi;
		unlock();
		if
		:: taken == NR_WORKERS -> break
		:: else -> d_step { woken[taken] = true; nr_counted++; i++ }
		fi
	:: else -> break
	od
}

proctype signaller()
{
	byte i, taken;

#if MUTANT == 4
	late_queued++;
#else
	queued++;
#endif
	wake(1);
	if
	:: i == 0 ->
#if MUTANT == 2
		late_seq++;
#elif MUTANT != 8
		seq++;			/* [lot-pub] */
#endif
#if MUTANT != 9
		wake(1)
#endif
	:: else
	fi
}

proctype stopper()
{
	byte i, taken;

	nr_done == NR_SIGNALLERS;
	stopped = true;
#if MUTANT != 7
	wake(NR_WORKERS);
#endif
	nr_ended == NR_WORKERS;
	assert(nr_counted == nr_woken && nr_parked == 0)
}

#if MUTANT == 1 || MUTANT == 2 || MUTANT == 4
/* Buffered stores reach memory at some time. */
active proctype memory()
{
end:	do
	:: atomic { late_parked > 0 -> drain_parked() }
	:: atomic { late_seq > 0 -> seq = seq + late_seq; late_seq = 0 }
	:: atomic { late_queued > 0 -> queued = queued + late_queued;
		    late_queued = 0 }
	od
}
#endif

init {
	atomic {
		run worker(0);
		run worker(1);
		run signaller();
		run signaller();
		run stopper()
	}
}
