/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * switch_finish: a task is made ready only once its registers are saved and
 * its stack is left (lib/run/run.h; pl__switch_prepare(),
 * pl__switch_finish() in run.c; pl__task_free() in task_exit.c;
 * wait_link_after() in wait.c).
 *
 * A task waits on a word on one worker and leaves for the worker's loop, which
 * runs the callback; a waker makes it ready; any of two workers resumes it. It
 * waits twice, then ends; its stack goes to a next task. No two workers may be
 * on one stack, and no thread reads a frame that its task has left.
 *
 * MUTANT 1: the callback runs before the switch
 * MUTANT 2: the next context does not run the callback
 * MUTANT 3: the callback reads its argument, in the frame, after it has
 * published
 * MUTANT 4: the stack is given back by the task that still runs on it
 * MUTANT 5: the callback is not cleared once it has run
 *
 * LARGER: NR_WORKERS=3 NR_WAITS=3
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_WORKERS	2
#define NR_WAITS	2

mtype = { NOTHING, LINK, FREE };

bool ready = true;		/* the task, in a queue */
bool linked;			/* it waits on the word */
bool on_stack[NR_WORKERS];	/* the stack they share, one at a time */
bool is_saved = true;		/* the task's registers */
bool has_frame;			/* of its wait */
byte nr_waits;
bool is_free;			/* the stack, once the task has ended */
byte nr_wakes;

inline switch_finish()
{
	if
	:: after == LINK ->
#if MUTANT != 3
		assert(has_frame);
#endif
		assert(!linked);
		linked = true;
#if MUTANT == 3
		assert(has_frame);
#endif
	:: after == FREE -> assert(!is_free); is_free = true
	:: else
	fi;
#if MUTANT != 5
	after = NOTHING
#endif
}

inline switch_to_loop()
{
	assert(after == NOTHING);
	after = why;
#if MUTANT == 1
	switch_finish();
#endif
	is_saved = true;
	on_stack[me] = false;
#if MUTANT != 2
	switch_finish()
#endif
}

proctype worker(byte me)
{
	mtype after = NOTHING, why;

	do
	:: atomic { ready -> ready = false };
		assert(is_saved && !on_stack[1 - me]);
		d_step { on_stack[me] = true; is_saved = false;
			 has_frame = false };
		if
		:: nr_waits < NR_WAITS ->
			d_step { nr_waits++; has_frame = true; why = LINK }
		:: else ->
			why = FREE;
#if MUTANT == 4
			is_free = true;
			why = NOTHING
#endif
		fi;
		switch_to_loop()
	:: atomic { is_free -> is_free = false };
		/* From here on the stack is another task's. */
		assert(!on_stack[1 - me]);
		nr_wakes = NR_WAITS + 1;
		break
	:: nr_wakes > NR_WAITS -> break
	od
}

active proctype waker()
{
	do
	:: atomic { linked -> linked = false };
		nr_wakes++;
		ready = true
	:: nr_wakes >= NR_WAITS -> break
	od
}

init {
	atomic {
		run worker(0);
		run worker(1)
	}
}
