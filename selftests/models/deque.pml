/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * deque: each element is taken once, the last one too (lib/ds/deque.[ch]).
 *
 * The owner pushes four elements and pops any number of times in between; two
 * thieves steal. The array has two slots at first and grows; the owner that
 * sees the queue empty may go back to the small one, and then the contents of
 * the large one are gone. The owner's plain and release stores reach memory in
 * order but late, from a buffer; a seq_cst store waits until all before it are
 * there, as do pages that are given back.
 *
 * MUTANT 1: pop's store of bottom [deque-a] is not seq_cst
 * MUTANT 2: the thief reads bottom before it reads top [deque-b]
 * MUTANT 3: the owner takes the last element without moving top
 * MUTANT 4: push moves bottom before the element is in its slot [deque-d]
 * MUTANT 5: the thief looks into the slot once it has moved top [deque-e]
 * MUTANT 6: the new array is published before it is filled [deque-c]
 * MUTANT 7: the thief moves top without comparing it
 * MUTANT 8: the owner takes the only element without moving top
 * MUTANT 9: the owner gives the large array back with an element in it
 * MUTANT 10: with the small array indices begin anew
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NR		4
#define NR_THIEVES	2

/* Two arrays: slots 0 and 1 of the small one, 0 to 3 of the large one at 2. */
#define slot_of(a, i)	((a) -> 2 + (i) % 4 : (i) % 2)

/* What is stored where: slots, then bottom and array. */
#define BOTTOM	6
#define ARRAY	7

byte memory[8];
byte top;
bool taken[NR + 1];
byte nr_taken;
bool is_over;

chan late = [4] of { byte, byte };

#define store(where, what)	late ! where, what
#define drain()			empty(late)

inline take(p)
{
	d_step {
		assert(p > 0 && !taken[p]);
		taken[p] = true;
		nr_taken++
	}
}

/* The owner alone writes bottom and array: it knows them. */
inline push(p)
{
	if
	:: !array && bottom - top == 2 ->
#if MUTANT == 6
		array = true;
		store(ARRAY, 1);
#endif
		i = top;
		do
		:: i < bottom -> store(slot_of(true, i), own[i % 2]); i++
		:: else -> i = 0; break
		od;
#if MUTANT != 6
		array = true;
		store(ARRAY, 1)
#endif
	:: else
	fi;
#if MUTANT == 4
	store(BOTTOM, bottom + 1);
#endif
	own[bottom % 2] = p;
	store(slot_of(array, bottom), p);
#if MUTANT != 4
	store(BOTTOM, bottom + 1);
#endif
	bottom++
}

/* What the owner finds in slot n: its own store, or an older one of its own. */
inline pop()
{
	t = top;
	if
	:: t >= bottom
	:: t == bottom - 1 ->			/* the only one: bottom stays */
#if MUTANT == 8
		take(element[t])
#else
		if
		:: atomic { top == t -> top++ };
			take(element[t])
		:: else
		fi
#endif
	:: else ->
		bottom--;
		store(BOTTOM, bottom);		/* [deque-a] */
#if MUTANT != 1
		drain();
#endif
		t = top;			/* [deque-a] */
		if
		:: t < bottom -> take(element[bottom])
		:: t >= bottom ->
#if MUTANT == 3
			if
			:: t == bottom -> take(element[bottom])
			:: else
			fi;
#else
			if
			:: atomic { t == bottom && top == t -> top++ };
				take(element[bottom])
			:: else
			fi;
#endif
			bottom++;
			store(BOTTOM, bottom)
		fi
	fi
}

/* Back to the small array; the pages of the large one are gone at once. */
inline shrink()
{
	array = false;
	store(ARRAY, 0);
	drain();
#if MUTANT == 10
	top = 0;
	bottom = 0;
	store(BOTTOM, 0);
	drain();
#endif
	d_step {
		memory[slot_of(true, 0)] = 0;
		memory[slot_of(true, 1)] = 0;
		memory[slot_of(true, 2)] = 0;
		memory[slot_of(true, 3)] = 0
	}
}

active proctype owner()
{
	byte bottom, i, t, p = 1;
	byte own[2];
	byte element[NR + 1];		/* by index: the value pushed */
	bool array;

	do
	:: p <= NR -> element[bottom] = p; push(p); p++
	:: bottom > 0 -> pop()
#if MUTANT == 9
	:: array -> shrink()
#else
	:: array && top >= bottom -> shrink()
#endif
	:: p > NR -> break
	od;
	drain();
	(top == bottom);
	assert(nr_taken <= NR);
	is_over = true
}

active [NR_THIEVES] proctype thief()
{
	byte t, b, p, a;

	do
	:: is_over -> break
	:: else ->
#if MUTANT == 2
		b = memory[BOTTOM];
		t = top;
#else
		t = top;			/* [deque-b] */
		b = memory[BOTTOM];
#endif
		if
		:: t < b ->
			a = memory[ARRAY];
#if MUTANT != 5
			p = memory[slot_of(a, t)];
#endif
			if
#if MUTANT == 7
			:: atomic { true -> top = t + 1 };
#else
			:: atomic { top == t -> top++ };
#endif
#if MUTANT == 5
				p = memory[slot_of(a, t)];
#endif
				take(p)
#if MUTANT != 7
			:: else
#endif
			fi
		:: else
		fi;
		t = 0; b = 0; p = 0; a = 0
	od
}

active proctype buffer()
{
	byte where, what;

end:	do
	:: atomic { late ? where, what -> memory[where] = what;
		    where = 0; what = 0 }
	od
}
