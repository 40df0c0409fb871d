/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wait_modes: a worker with I/O in flight waits in one sleep for completions,
 * for a signal to its lot and for messages, in any of three modes
 * (park_in_ring(), worker_park_polling() in lib/run/worker.c;
 * arm_event(), hear(), uring_pollfd() in lib/ring/ring_uring.c;
 * lib/park/parker.c).
 *
 * EVENTFD and FUTEX: listed in the lot, asleep in the ring, which hears a
 * bell, by a read of the eventfd, or by a wait on nr_rung while that has the
 * value last heard. PARK: in the device, which compares seq and polls the
 * ring; work of the ring that is left to the owner ends the sleep, and the
 * owner does it on the way out. Two signals, a message and a completion come
 * at any time; the message makes the owner cause another completion. An owner
 * that waits for ever is a deadlock.
 *
 * MUTANT 1: the value heard is read as the wait is armed, not as the last
 * ended
 * MUTANT 2: the bell's futex is woken before it is counted
 * MUTANT 3: the device does not compare seq
 * MUTANT 4: the owner parks in the device without submitting before
 * MUTANT 5: the device does not poll
 * MUTANT 6: work that is left to the owner does not end the sleep in the
 * device
 * MUTANT 7: a futex wait that found another number is taken for armed
 * MUTANT 8: a message is queued after the bell was rung for it
 * MUTANT 9: seq is peeked at after the look for tasks
 *
 * LARGER: NR_SIGNALS=3 NR_IO=2
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_SIGNALS	2
#define NR_IO		1

mtype = { EVENTFD, FUTEX, PARK };
mtype mode;

byte queued;			/* tasks */
byte seq;
bool listed;			/* of the lot, here or in the device */
bool woken;			/* the parker's state, or the device's reason */
bool message;			/* in the ring's inbox */

bool counter;			/* the bell: its eventfd's; its futex */
byte nr_rung;
bool hears;			/* the ring's read or wait is in the kernel */

byte work;			/* completions of I/O that wait for the owner */
bool work_bell;
byte cqe;			/* completions that the owner can see */
bool cqe_bell;

byte nr_tasks, nr_seen;		/* by the owner */
byte nr_taken, nr_woken;

#define is_complete	(cqe > 0 || cqe_bell)
#define is_work		(work > 0 || work_bell)

inline wake_futex()
{
	atomic {
		if
		:: hears -> hears = false; work_bell = true
		:: else
		fi
	}
}

/* pl__bell_ring() */
inline ring_bell()
{
	if
	:: mode != FUTEX -> counter = true
	:: else ->
#if MUTANT == 2
		wake_futex();
		nr_rung++
#else
		nr_rung++;			/* [bell-a] */
		wake_futex()
#endif
	fi
}

/* complete_all(); hear() */
inline reap()
{
	d_step {
		nr_seen = nr_seen + cqe;
		cqe = 0;
		if
		:: cqe_bell ->
			cqe_bell = false;
			is_armed = false;
			heard = nr_rung		/* [bell-b] */
		:: else
		fi
	}
}

/* Cancels are submitted with other new requests, and complete at once. */
inline take_messages()
{
	d_step { is_cancel = is_cancel || message; message = false }
}

inline arm()
{
	if
	:: !is_armed ->
		d_step { is_armed = true; is_new = true };
#if MUTANT == 1
		heard = nr_rung
#endif
	:: else
	fi
}

/* On the owner's way out of the kernel. */
inline do_work()
{
	cqe = cqe + work;
	cqe_bell = cqe_bell || work_bell;
	work = 0;
	work_bell = false
}

/* The kernel takes new requests, and compares a futex wait's value. */
inline enter()
{
	d_step {
		do_work();
		cqe = cqe + is_cancel;
		is_cancel = false;
		if
#if MUTANT != 7
		:: is_new && mode == FUTEX && nr_rung != heard ->
			cqe_bell = true
		:: is_new && (mode != FUTEX || nr_rung == heard) ->
			hears = true
#else
		:: is_new -> hears = (mode != FUTEX || nr_rung == heard)
#endif
		:: else
		fi;
		is_new = false
	}
}

inline park_in_ring()
{
	woken = false;
	/* Under the lot's lock. */
	d_step { listed = (seq == expected); may_sleep = listed };
	if
	:: may_sleep ->
		take_messages();
		arm();
		enter();
		/* The sleep, in the same call. */
		is_complete || is_work;
		enter();
		d_step { is_woken = !listed; listed = false };
		if
		:: is_woken -> woken; nr_woken++
		:: else
		fi
	:: else
	fi
}

inline park_polling()
{
	take_messages();
	arm();
#if MUTANT != 4
	enter();
#endif
	if
	:: is_complete
	:: !is_complete ->
		d_step {
			woken = false;
#if MUTANT == 3
			listed = true;
#else
			listed = (seq == expected);
#endif
			may_sleep = listed
		};
		if
		:: may_sleep ->
#if MUTANT == 5
			woken;
#elif MUTANT == 6
			is_complete || woken;
#else
			is_complete || is_work || woken;
#endif
			d_step {
				is_woken = !listed;
				listed = false;
				nr_woken = nr_woken + is_woken;
				do_work()
			}
		:: else
		fi
	fi
}

#define is_all_seen	(nr_tasks == NR_SIGNALS && nr_seen == NR_IO + 1)

inline look_for_tasks()
{
	d_step { nr_tasks = nr_tasks + queued; queued = 0 }
}

active proctype owner()
{
	byte expected, heard;
	bool is_armed, is_new, is_cancel, is_woken, may_sleep;

	if
	:: mode = EVENTFD
	:: mode = FUTEX
	:: mode = PARK
	fi;
	do
	:: is_all_seen -> break
	:: else ->
		reap();
#if MUTANT == 9
		look_for_tasks();
		expected = seq;
#else
		expected = seq;
		look_for_tasks();
#endif
		if
		:: is_all_seen
		:: !is_all_seen && mode != PARK -> park_in_ring()
		:: !is_all_seen && mode == PARK -> park_polling()
		fi;
		d_step { is_woken = false; may_sleep = false; expected = 0 }
	od;
	assert(!listed && nr_taken == nr_woken)
}

/* pl__lots_signal() */
active proctype signaller()
{
	byte nr = NR_SIGNALS;
	bool is_taken;

	mode != 0;
	do
	:: nr > 0 ->
		nr--;
		queued++;
		seq++;
		d_step {
			is_taken = listed;
			listed = false;
			nr_taken = nr_taken + is_taken;
			/* The device sets the reason under its lock. */
			woken = woken || (is_taken && mode == PARK)
		};
		if
		:: is_taken && mode != PARK -> woken = true; ring_bell()
		:: else
		fi
	:: else -> break
	od
}

/* pl__ring_cancel(), pl__ring_tell() */
active proctype canceller()
{
	mode != 0;
#if MUTANT == 8
	ring_bell();
	message = true
#else
	message = true;
	ring_bell()
#endif
}

active proctype kernel()
{
	byte nr = NR_IO;

end:	do
	:: d_step { mode != 0 && nr > 0 -> nr--; work++ }
	:: d_step { hears && counter ->
		    hears = false; counter = false; work_bell = true }
	od
}
