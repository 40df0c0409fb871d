/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * worker_exit: the end of a worker (module/worker.c). Its thread exits, joins
 * another crew, or goes on, while a second thread takes its slot and a third
 * one closes the space.
 *
 * One worker, its thread, and its pool. The scheduler's notifier runs in
 * switch_out(), with preemption off, which makes it a reader of RCU. The
 * notifier removes the worker from the thread's list once its pool is gone or
 * its thread exits; the work item then frees the worker.
 *
 * No memory is used after it was freed, and the worker is freed once.
 *
 * MUTANT 1: only dismissal asks for a grace period, not a slot's new owner
 * MUTANT 2: the pool is freed without a grace period
 * MUTANT 3: the notifier gives the worker away before it uses the pool
 * MUTANT 4: the work item frees the worker without a grace period
 * MUTANT 5: the thread looks for its worker while it can be preempted
 * MUTANT 6: a thread that joins again finds its old worker before the lock
 */
#ifndef MUTANT
#define MUTANT 0
#endif

/* The worker. M: workers_lock held. */
bool has_pool = true;		/* M: worker->pool */
bool is_linked = true;		/* in the thread's list of notifiers */
bool is_dead;			/* given to the work item */
bool is_worker_free;
byte nr_ends;			/* calls of worker_end() */

/* The pool. */
bool is_in_slot = true;		/* M: the worker */
bool is_taken;			/* M: by the taker */
bool needs_grace;		/* M */
bool is_pool_free;

bool is_exiting;		/* PF_EXITING, or another program's memory */
bool is_over;			/* the thread is dead */
bool is_locked;			/* workers_lock */
byte nr_calls = 1;		/* in flight on the space: the taker's */

/* The thread as a reader of RCU: in a section; the number of the last one. */
bool is_reading;
byte nr_read;

inline lock() { atomic { !is_locked; is_locked = true } }
inline unlock() { is_locked = false }

/* synchronize_rcu(), call_rcu(): sections that began before are over. */
inline wait_grace(n)
{
	n = nr_read;
	!is_reading || nr_read != n
}

inline use_pool() { assert(!is_pool_free) }
inline use_worker() { assert(!is_worker_free) }

/* worker_detach() */
inline detach()
{
	d_step { is_in_slot = false; has_pool = false }	/* [worker-a] */
}

/* worker_end(), without the notifier; RCU frees it. */
inline end_worker(n)
{
	lock();
	if
	:: has_pool -> detach()
	:: else
	fi;
	d_step { nr_ends++; assert(nr_ends == 1) };
	unlock();
#if MUTANT != 4
	wait_grace(n);
#endif
	is_worker_free = true
}

/* worker_sched_out() */
inline switch_out(r)
{
	if
	:: is_linked ->
		atomic { is_reading = true; nr_read++ };
		use_worker();
		r = has_pool;					/* [worker-b] */
		if
		:: !r || is_exiting ->
#if MUTANT == 3
			is_linked = false;
			is_dead = true;
#endif
			if
			:: r -> use_pool()
			:: else
			fi;
#if MUTANT != 3
			is_linked = false;
			is_dead = true;
#endif
			/* The next notifier is read from this one. */
			use_worker()
		:: else -> use_pool()
		fi;
		is_reading = false
	:: else
	fi
}

/* worker_of_pool(), by a call on another space: it does not hold the pool. */
inline look()
{
#if MUTANT == 5
	seen = is_linked;
	switch_out(r);
	if
	:: seen -> use_worker()
	:: else
	fi
#else
	d_step {
		if
		:: is_linked -> use_worker()
		:: else
		fi
	}
#endif
}

/* parklot_worker_join() of another crew; the new worker is not modelled. */
inline join_again()
{
#if MUTANT == 6
	seen = is_linked;
	switch_out(r);
	lock();
	is_linked = false;
#else
	lock();
	d_step { seen = is_linked && !has_pool };
	if
	:: seen -> is_linked = false
	:: else
	fi;
#endif
	unlock();
	if
	:: seen -> end_worker(n)
	:: else
	fi
}

active proctype thread()
{
	bool r, seen;
	byte n;

	switch_out(r);
	look();
	if
	:: true
	:: switch_out(r)
	:: join_again()
	fi;
	is_exiting = true;
	switch_out(r);
	assert(!is_linked);
	is_over = true
}

/* reap_dead() */
active proctype reaper()
{
	byte n;

	if
	:: is_dead -> end_worker(n)
	:: is_over && !is_dead
	fi
}

/* JOIN in the worker's slot, and LEAVE; the caller holds the space. */
active proctype taker()
{
	lock();
	if
	:: is_in_slot && is_exiting ->
		detach();
#if MUTANT != 1
		needs_grace = true;
#endif
		is_taken = true
	:: is_in_slot && !is_exiting
	:: !is_in_slot -> is_taken = true
	fi;
	unlock();
	use_pool();
	lock();
	is_taken = false;
	unlock();
	nr_calls--
}

/* The last close: parklot_worker_dismiss(), a grace period, pool_free(). */
active proctype closer()
{
	bool g;
	byte n;

	nr_calls == 0;
	lock();
	if
	:: is_in_slot -> detach(); needs_grace = true
	:: else
	fi;
	g = needs_grace;
	unlock();
#if MUTANT != 2
	if
	:: g -> wait_grace(n)
	:: else
	fi;
#endif
	is_pool_free = true
}
