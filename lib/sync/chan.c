/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sync/chan.h"
#include "base/inject.h"
#include "base/sys.h"

/* ---- waiting cases; L ---- */

static void chan_append(struct pl__chan_queue *q, struct pl_chan_case *c)
{
	pl__chan_waiting(c)->next = NULL;
	pl__chan_waiting(c)->prev = q->last;
	if (q->last)
		pl__chan_waiting(q->last)->next = c;
	else
		q->first = c;
	q->last = c;
	pl__chan_waiting(c)->is_listed = true;
}

static void chan_dequeue(struct pl_chan_case *c)
{
	struct pl__chan_queue *q = &c->ch->waiting[c->op];
	struct pl_chan_case *next = pl__chan_waiting(c)->next;
	struct pl_chan_case *prev = pl__chan_waiting(c)->prev;

	if (!pl__chan_waiting(c)->is_listed)
		return;
	if (prev)
		pl__chan_waiting(prev)->next = next;
	else
		q->first = next;
	if (next)
		pl__chan_waiting(next)->prev = prev;
	else
		q->last = prev;
	pl__chan_waiting(c)->is_listed = false;
}

void pl__chan_list(struct pl_chan_case *c, struct pl__chan_call *call)
{
	pl__chan_waiting(c)->call = call;
	chan_append(&c->ch->waiting[c->op], c);
}

/* The last caller that leaves a channel which was destroyed frees it. */
void pl__chan_unlist(struct pl_chan_case *c)
{
	struct pl_chan *ch = c->ch;
	bool is_last;

	pl__lock(&ch->lock);
	if (!pl__chan_waiting(c)->is_listed)
		ch->nr_leaving--;
	chan_dequeue(c);
	is_last = ch->is_destroyed && !ch->nr_leaving;
	pl__unlock(&ch->lock);
	if (is_last)
		pl__free(ch);
}

static bool chan_move(struct pl__chan_call *call, uint32_t to)
{
	uint32_t waiting = PL__CHAN_WAITING;

	return atomic_compare_exchange_strong(&call->state, &waiting, to);
}

/* Claims the longest waiting case that can be claimed; NULL: none. */
static struct pl_chan_case *claim(struct pl_chan *ch, enum pl_chan_op op)
{
	struct pl__chan_call *call;
	struct pl_chan_case *c;
	size_t i;

	while ((c = ch->waiting[op].first)) {
		call = pl__chan_waiting(c)->call;
		chan_dequeue(c);
		/* [chan-a] pairs with [chan-a] in pl__chan_wait(). */
		if (!chan_move(call, PL__CHAN_CLAIMED)) {
			ch->nr_leaving++;
			continue;
		}
		PL_INJECT("chan-a");
		call->chosen = c;
		for (i = 0; i < call->nr; i++)
			if (call->cases[i].ch == ch)
				chan_dequeue(&call->cases[i]);
		return c;
	}
	return NULL;
}

void pl__chan_wake(struct pl_chan_case *peer)
{
	struct pl__chan_call *call = pl__chan_waiting(peer)->call;

	PL_INJECT("claimed");
	/* [chan-b] pairs with [chan-b] in pl__chan_wait(). */
	store_release(&call->state, PL__CHAN_DONE);
	PL_INJECT("chan-b");
	pl__wake(&call->state, 1);
}

int pl__chan_wait(struct pl__chan_call *call, uint64_t deadline_ns)
{
	int ret;

	do {
		ret = pl__wait(&call->state, PL__CHAN_WAITING, deadline_ns,
			      PL__FOR_CHAN);
	} while (!ret && load_relaxed(&call->state) == PL__CHAN_WAITING);

	if (ret && ret != -EAGAIN) {
		PL_INJECT("chan-a");
		/* [chan-a] pairs with [chan-a] in claim(). */
		if (chan_move(call, PL__CHAN_GONE))
			return ret;
		pl__interrupt_restore(ret);
	}
	/* [chan-b] pairs with [chan-b] in pl__chan_wake(). */
	while (load_acquire(&call->state) != PL__CHAN_DONE)
		if (pl__wait(&call->state, PL__CHAN_CLAIMED, PL_FOREVER,
			     PL__WAIT_UNINTERRUPTIBLE |
			     PL__FOR_CHAN) == -ENOMEM)
			pl_yield();
	return 0;
}

/* ---- items; L ---- */

static void put(struct pl_chan *ch, void *item)
{
	size_t room = ch->capacity - ch->first;

	ch->items[ch->nr < room ? ch->first + ch->nr : ch->nr - room] = item;
	ch->nr++;
}

static void *get(struct pl_chan *ch)
{
	void *item = ch->items[ch->first];

	if (++ch->first == ch->capacity)
		ch->first = 0;
	ch->nr--;
	return item;
}

static int try_send(struct pl_chan *ch, void *item, struct pl_chan_case **peer)
{
	if (ch->is_closed)
		return -EPIPE;
	*peer = claim(ch, PL_CHAN_RECV);
	if (*peer) {
		(*peer)->item = item;
		(*peer)->result = 0;
		return 0;
	}
	if (ch->nr == ch->capacity)
		return -EAGAIN;
	put(ch, item);
	return 0;
}

/* The room goes to the longest waiting sender. */
static int try_recv(struct pl_chan *ch, void **item, struct pl_chan_case **peer)
{
	bool had_item = ch->nr;

	if (had_item)
		*item = get(ch);
	*peer = claim(ch, PL_CHAN_SEND);
	if (*peer) {
		(*peer)->result = 0;
		if (had_item)
			put(ch, (*peer)->item);
		else
			*item = (*peer)->item;
		return 0;
	}
	if (had_item)
		return 0;
	if (!ch->is_closed)
		return -EAGAIN;
	*item = NULL;
	return -EPIPE;
}

int pl__chan_try(struct pl_chan_case *c, struct pl_chan_case **peer)
{
	return c->op == PL_CHAN_SEND ? try_send(c->ch, c->item, peer) :
				       try_recv(c->ch, &c->item, peer);
}

/* ---- one case ---- */

static int try_one(struct pl_chan_case *c, struct pl__chan_call *call)
{
	struct pl_chan_case *peer = NULL;
	int ret;

	pl__lock(&c->ch->lock);
	ret = pl__chan_try(c, &peer);
	if (ret == -EAGAIN && call)
		pl__chan_list(c, call);
	pl__unlock(&c->ch->lock);
	if (peer)
		pl__chan_wake(peer);
	return ret;
}

static int do_one(struct pl_chan_case *c, uint64_t deadline_ns)
{
	struct pl__chan_call call = { .cases = c, .nr = 1 };
	int ret = c->ch ? pl__wait_pending() : -EINVAL;

	if (ret)
		return ret;
	ret = try_one(c, &call);
	if (ret != -EAGAIN)
		return ret;
	ret = pl__chan_wait(&call, deadline_ns);
	if (ret)
		pl__chan_unlist(c);
	return ret ? ret : c->result;
}

int pl_chan_send_until(struct pl_chan *ch, void *item, uint64_t deadline_ns)
{
	struct pl_chan_case c = PL_CHAN_CASE_SEND(ch, item);

	return do_one(&c, deadline_ns);
}

int pl_chan_send(struct pl_chan *ch, void *item)
{
	return pl_chan_send_until(ch, item, PL_FOREVER);
}

int pl_chan_trysend(struct pl_chan *ch, void *item)
{
	struct pl_chan_case c = PL_CHAN_CASE_SEND(ch, item);

	return ch ? try_one(&c, NULL) : -EINVAL;
}

static int received(const struct pl_chan_case *c, int ret, void **item)
{
	if (item && (!ret || ret == -EPIPE))
		*item = c->item;
	return ret;
}

int pl_chan_recv_until(struct pl_chan *ch, void **item, uint64_t deadline_ns)
{
	struct pl_chan_case c = PL_CHAN_CASE_RECV(ch);

	return received(&c, do_one(&c, deadline_ns), item);
}

int pl_chan_recv(struct pl_chan *ch, void **item)
{
	return pl_chan_recv_until(ch, item, PL_FOREVER);
}

int pl_chan_tryrecv(struct pl_chan *ch, void **item)
{
	struct pl_chan_case c = PL_CHAN_CASE_RECV(ch);

	return ch ? received(&c, try_one(&c, NULL), item) : -EINVAL;
}

/* ---- the channel ---- */

int pl_chan_create(struct pl_chan **out, size_t capacity)
{
	struct pl_chan *ch;

	if (!out || capacity > SIZE_MAX / 2 / sizeof(ch->items[0]))
		return -EINVAL;
	ch = pl__alloc(sizeof(*ch) + capacity * sizeof(ch->items[0]));
	if (!ch)
		return -ENOMEM;
	ch->capacity = capacity;
	ch->rng = PL_NUMBER_OF(ch);
	*out = ch;
	return 0;
}

int pl_chan_destroy(struct pl_chan *ch)
{
	bool is_used, is_left;

	if (!ch)
		return -EINVAL;
	pl__lock(&ch->lock);
	is_used = ch->waiting[PL_CHAN_RECV].first ||
		  ch->waiting[PL_CHAN_SEND].first;
	is_left = ch->nr_leaving;
	ch->is_destroyed = !is_used;
	pl__unlock(&ch->lock);
	if (is_used)
		return -EBUSY;
	if (!is_left)
		pl__free(ch);
	return 0;
}

/* Claims all waiting cases; returns them as a chain; L. */
static struct pl_chan_case *claim_all(struct pl_chan *ch)
{
	struct pl_chan_case *all = NULL, *c;

	while ((c = claim(ch, PL_CHAN_SEND)) || (c = claim(ch, PL_CHAN_RECV))) {
		c->result = -EPIPE;
		if (c->op == PL_CHAN_RECV)
			c->item = NULL;
		pl__chan_waiting(c)->next = all;
		all = c;
	}
	return all;
}

int pl_chan_close(struct pl_chan *ch)
{
	struct pl_chan_case *all, *next;
	bool was_closed;

	if (!ch)
		return -EINVAL;
	pl__lock(&ch->lock);
	was_closed = ch->is_closed;
	ch->is_closed = true;
	all = claim_all(ch);
	pl__unlock(&ch->lock);

	for (; all; all = next) {
		next = pl__chan_waiting(all)->next;
		pl__chan_wake(all);
	}
	return was_closed ? -EPIPE : 0;
}

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
