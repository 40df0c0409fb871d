/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * close: pl_close() while requests begin, wait and end on the descriptor
 * (lib/io/close.c; pl__ring_add_for(), pl__ring_next_closed() in ring.c;
 * io_wait_task() in io.c).
 *
 * One ring. Request OLD may be made at any time, NEW once the number is open
 * again, as another file. Nothing ever comes from the first file, so that a
 * request which the kernel holds on it ends by a message or never; from the
 * second, data comes at some time. The owner may be blocked until the closer
 * is done. Its store to the bucket's count may be late, until the kernel looks
 * for the file, which is a full barrier.
 *
 * OLD ends with a true result; NEW ends with data, and never as closed.
 *
 * MUTANT 1: the kernel looks for the file before the request is counted
 * MUTANT 2: the closer does not look again once the number is closed
 * MUTANT 3: the second look takes the number of requests at that time
 * MUTANT 4: the closer waits until the owner has taken the message
 * MUTANT 5: the owner ends only the first request that it finds
 * MUTANT 6: a request that may be on another file ends as if closed
 * MUTANT 7: the next request counts as one of those before the close
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR_OLD		2	/* 0 and 1 */
#define NR		(NR_OLD + 1)
#define NEW		NR_OLD

mtype = { NONE, LISTED, HELD, OVER };	/* a request */
mtype = { DATA, BADF };

/* By the number: no file, the first or the second. */
byte file = 1;
bool is_closed;			/* the closer is through */

/* The owner's: */
mtype state[NR] = NONE;
byte held[NR];			/* which file the kernel holds for it */
byte nr_of[NR];			/* requests added before it */
byte nr_added;
byte bucket, late;		/* its count, and the part not in memory yet */

bool message;			/* in the inbox, and its field */
byte before;
byte nr_over;

/* remember(); then the kernel may hold its file at any time. */
inline add(i)
{
	d_step { nr_of[i] = nr_added; state[i] = LISTED; late++ };
	nr_added++
}

inline end(i, res)
{
	d_step {
		assert(i != NEW || res == DATA);
		state[i] = OVER;
		held[i] = 0;
		bucket = bucket + late - 1;
		late = 0;
		nr_over++
	}
}

/* io_wait_task(): once more. */
inline restart(i)
{
	d_step {
		state[i] = NONE;
		held[i] = 0;
		bucket = bucket + late - 1;
		late = 0
	}
}

/* The request is submitted: a full barrier, and a look. */
inline submit(i)
{
#if MUTANT == 1
	held[i] = file;
	bucket = bucket + late;
	late = 0;
#else
	d_step { bucket = bucket + late; late = 0 };
	held[i] = file;				/* [close-a] */
#endif
	if
	:: held[i] == 0 -> end(i, BADF)
	:: else -> state[i] = HELD
	fi
}

inline cancel(i)
{
	if
	:: state[i] == LISTED -> submit(i)
	:: else
	fi;
	if
	:: state[i] == HELD && nr_of[i] < before -> end(i, BADF)
#if MUTANT == 6
	:: state[i] == HELD && nr_of[i] >= before -> end(i, BADF)
#else
	:: state[i] == HELD && nr_of[i] >= before -> restart(i)
#endif
	:: else
	fi
}

inline take_message()
{
	k = 0;
	do
	:: k < NR && (state[k] == LISTED || state[k] == HELD) ->
		cancel(k);
#if MUTANT == 5
		k = NR
#else
		k++
#endif
	:: k < NR && (state[k] == NONE || state[k] == OVER) -> k++
	:: k == NR -> break
	od;
	atomic { k = 0; message = false; before = 0 }
}

/* What is to be done, in any order; but it takes its time. */
active proctype owner()
{
	byte k;

	if
	:: true
	:: is_closed			/* blocked by a call of its task's */
	fi;
	do
	:: nr_over < NR && message -> take_message()
	:: state[0] == NONE -> add(0)
	:: state[1] == NONE -> add(1)
	:: state[NEW] == NONE && file == 2 -> add(NEW)
	:: state[0] == LISTED -> submit(0)
	:: state[1] == LISTED -> submit(1)
	:: state[NEW] == LISTED -> submit(NEW)
	:: held[0] == 2 && state[0] == HELD -> end(0, DATA)
	:: held[1] == 2 && state[1] == HELD -> end(1, DATA)
	:: held[NEW] == 2 && state[NEW] == HELD -> end(NEW, DATA)
	:: nr_over == NR -> break
	od;
	assert(bucket == 0 && late == 0)
}

/* close_and_tell() */
active proctype closer()
{
	byte n;
	bool is_found;

	if
#if MUTANT == 7
	:: bucket > 0 -> n = nr_added + 1; is_found = true
#else
	:: bucket > 0 -> n = nr_added; is_found = true
#endif
	:: else
	fi;
	file = 0;
#if MUTANT != 2
	/* [close-b] */
	if
	:: bucket > 0 && !is_found ->
		is_found = true;
#if MUTANT == 3
		n = nr_added
#else
		n = 0
#endif
	:: else
	fi;
#endif
	if
	:: is_found -> d_step { before = n; message = true }
	:: else
	fi;
#if MUTANT == 4
	!message;
#endif
	is_closed = true
}

/* The next file that is opened gets the number. */
active proctype opener()
{
	file == 0;
	file = 2
}
