/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * select: one of several cases, as soon as one can proceed
 *
 * A select locks all its channels at once, in order of address, so that two
 * selects cannot deadlock.  Whether it finds a case that can proceed, or finds
 * none and lists all, is one step to other threads.  No peer can claim the
 * select's call while it looks for a call to claim, so two calls never have to
 * be claimed in one step.
 *
 * The orders of locks and of turns are kept in the cases: nth_lock and nth_turn
 * of case n hold the index of the nth case.
 */
#include "sync/chan.h"

static uint32_t *select_lock(struct pl_chan_case *cases, size_t n)
{
	return &pl__chan_waiting(&cases[n])->nth_lock;
}

static uint32_t *select_turn(struct pl_chan_case *cases, size_t n)
{
	return &pl__chan_waiting(&cases[n])->nth_turn;
}

/* Shell sort; for few cases it is an insertion sort. */
static void order_locks(struct pl_chan_case *cases, size_t nr)
{
	uint32_t nth, prev;
	size_t gap, i, k;

	for (i = 0; i < nr; i++)
		*select_lock(cases, i) = (uint32_t)i;
	for (gap = nr / 2; gap; gap /= 2) {
		for (i = gap; i < nr; i++) {
			nth = *select_lock(cases, i);
			for (k = i; k >= gap; k -= gap) {
				prev = *select_lock(cases, k - gap);
				if ((uintptr_t)cases[prev].ch <=
				    (uintptr_t)cases[nth].ch)
					break;
				*select_lock(cases, k) = prev;
			}
			*select_lock(cases, k) = nth;
		}
	}
}

/*
 * The nth channel to lock; NULL: the case has none, or has that of the one
 * before.
 */
static struct pl_chan *nth_to_lock(struct pl_chan_case *cases, size_t n)
{
	struct pl_chan *ch = cases[*select_lock(cases, n)].ch;

	if (n && cases[*select_lock(cases, n - 1)].ch == ch)
		return NULL;
	return ch;
}

static void lock_all(struct pl_chan_case *cases, size_t nr)
{
	struct pl_chan *ch;
	size_t i;

	for (i = 0; i < nr; i++) {
		ch = nth_to_lock(cases, i);
		if (ch)
			pl__lock(&ch->lock);
	}
}

static void unlock_all(struct pl_chan_case *cases, size_t nr)
{
	struct pl_chan *ch;
	size_t i;

	for (i = 0; i < nr; i++) {
		ch = nth_to_lock(cases, i);
		if (ch)
			pl__unlock(&ch->lock);
	}
}

/* A random number, of a channel that is locked. */
static uint64_t select_next_random(struct pl_chan *ch)
{
	ch->rng ^= ch->rng << 13;
	ch->rng ^= ch->rng >> 7;
	ch->rng ^= ch->rng << 17;
	return ch->rng;
}

/*
 * Tries the cases in random order, shuffling as it goes; the index, or -EAGAIN.
 */
static int try_in_turn(struct pl_chan_case *cases, size_t nr,
		       struct pl_chan_case **peer)
{
	struct pl_chan *any = cases[*select_lock(cases, nr - 1)].ch;
	struct pl_chan_case *c;
	size_t i, k;

	for (i = 0; i < nr; i++)
		*select_turn(cases, i) = (uint32_t)i;
	for (i = 0; i < nr && any; i++) {
		k = i + select_next_random(any) % (nr - i);
		c = &cases[*select_turn(cases, k)];
		*select_turn(cases, k) = *select_turn(cases, i);
		if (!c->ch)
			continue;
		c->result = pl__chan_try(c, peer);
		if (c->result != -EAGAIN)
			return (int)(c - cases);
	}
	return -EAGAIN;
}

static void list_all(struct pl_chan_case *cases, size_t nr,
		     struct pl__chan_call *call)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (cases[i].ch)
			pl__chan_list(&cases[i], call);
}

/* Unlists all cases but those of channel @done, which may have been freed. */
static void unlist_all(struct pl_chan_case *cases, size_t nr,
		       struct pl_chan *done)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (cases[i].ch && cases[i].ch != done)
			pl__chan_unlist(&cases[i]);
}

static int try_all(struct pl_chan_case *cases, size_t nr,
		   struct pl__chan_call *call)
{
	struct pl_chan_case *peer = NULL;
	int ret = -EAGAIN;

	if (!nr)
		return ret;
	order_locks(cases, nr);
	lock_all(cases, nr);
	ret = try_in_turn(cases, nr, &peer);
	if (ret == -EAGAIN)
		list_all(cases, nr, call);
	unlock_all(cases, nr);
	if (peer)
		pl__chan_wake(peer);
	return ret;
}

static int check(const struct pl_chan_case *cases, size_t nr)
{
	size_t i;

	if ((nr && !cases) || nr > INT32_MAX)
		return -EINVAL;
	for (i = 0; i < nr; i++)
		if (cases[i].op > PL_CHAN_SEND)
			return -EINVAL;
	return pl__wait_pending();
}

int pl_chan_select(struct pl_chan_case *cases, size_t nr, uint64_t deadline_ns)
{
	struct pl__chan_call call = { .cases = cases, .nr = nr };
	int ret = check(cases, nr);

	if (ret)
		return ret;
	ret = try_all(cases, nr, &call);
	if (ret != -EAGAIN)
		return ret;
	ret = pl__chan_wait(&call, deadline_ns);
	unlist_all(cases, nr, ret ? NULL : call.chosen->ch);
	return ret ? ret : (int)(call.chosen - cases);
}
