/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stop: the runtime is taken apart once no task is left and no thread from
 * outside looks at it, and then for certain (lib/rt/runtime.c; pl__task_end()
 * in task_exit.c; pl__rt_enter() in rt.c; spawn_outside() in spawn.c;
 * start_next() and worker_main() in worker_thread.c).
 *
 * A thread spawns a task and starts the second worker for it, or comes too
 * late; the task runs there and spawns another, which the first worker runs.
 * The stopper sums up the ended tasks, then the spawned ones, worker by
 * worker, as far as workers are counted. No thread may touch the runtime once
 * it is gone.
 *
 * MUTANT 1: [inside-a] is relaxed: the thread is seen late
 * MUTANT 2: the stopper takes the runtime apart while threads look at it
 * [inside-b]
 * MUTANT 3: the thread counts its task once it has looked at the state
 * MUTANT 4: spawned tasks are summed up before ended ones
 * MUTANT 5: a task that ends does not notify the stopper [stop-b]
 * MUTANT 6: the stopper reads the word that ends move after its sums
 * MUTANT 7: a new worker runs tasks before it is counted
 * MUTANT 8: a thread that came too late does not count its task as ended
 * MUTANT 9: a spawner checks for STOPPING only, when the state may be DRAINED
 */
#ifndef MUTANT
#define MUTANT 0
#endif

mtype = { RUNNING, STOPPING, DRAINED, GONE };

mtype state = RUNNING;
byte nr_inside, ended_word;
byte spawned_outside, ended_outside;
byte spawned[2], ended[2];	/* by each worker */
byte nr_started = 1;
bool is_created;		/* the second worker's thread */
bool queued[2];			/* the thread's task, and that task's */
bool is_late_inside;

#define is_here()	assert(state != GONE)

inline end_task(w)
{
	is_here();
	ended[w]++;
#if MUTANT != 5
	if
	:: state == STOPPING -> ended_word++
	:: else
	fi
#endif
}

active proctype thread()
{
#if MUTANT == 1
	is_late_inside = true;
#else
	nr_inside++;				/* [inside-a] */
#endif
	if
	:: state == RUNNING || state == STOPPING ->
#if MUTANT != 3
		is_here();
		spawned_outside++;
#endif
		if
#if MUTANT == 9
		:: state == STOPPING ->
#else
		:: state != RUNNING ->
#endif
#if MUTANT != 8 && MUTANT != 3
			ended_outside++;
			if
			:: state == STOPPING -> ended_word++
			:: else
			fi
#endif
		:: else ->
#if MUTANT == 3
			spawned_outside++;
#endif
			is_here();
			queued[0] = true;
			is_created = true;
			is_here();
			nr_started = 2
		fi
	:: else
	fi;
#if MUTANT == 1
	!is_late_inside;
#endif
	nr_inside--
}

active proctype second_worker()
{
end:	is_created;
#if MUTANT != 7
	nr_started == 2;
#endif
	if
	:: queued[0] ->
		is_here();
		spawned[1]++;
		queued[1] = true;
		end_task(1)
	fi
}

active proctype first_worker()
{
end:	queued[1];
	end_task(0)
}

inline sum(first, second, outside, to)
{
	to = outside + first;
	if
	:: nr_started == 2 -> to = to + second
	:: else
	fi
}

active proctype stopper()
{
	byte word, nr_ended, nr_spawned;

	state = STOPPING;			/* [stop-a] */
	do
	::
#if MUTANT != 6
		word = ended_word;
#endif
#if MUTANT == 4
		sum(spawned[0], spawned[1], spawned_outside, nr_spawned);
		sum(ended[0], ended[1], ended_outside, nr_ended);
#else
		sum(ended[0], ended[1], ended_outside, nr_ended);
		sum(spawned[0], spawned[1], spawned_outside, nr_spawned);
#endif
#if MUTANT == 6
		word = ended_word;
#endif
		if
		:: nr_ended == nr_spawned -> break
		:: else
		fi;
		word != ended_word		/* asleep on it */
	od;
	state = DRAINED;
#if MUTANT != 2
	nr_inside == 0;				/* [inside-b] */
#endif
	state = GONE
}

#if MUTANT == 1
active proctype memory()
{
end:	atomic { is_late_inside -> is_late_inside = false; nr_inside++ }
}
#endif
