/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Channels: tasks and threads pass pointers to others, in order.
 */
#ifndef PARKLOT_CHAN_H
#define PARKLOT_CHAN_H

#include "base.h"

PL_BEGIN_DECLS

/** struct pl_chan - a channel; made by pl_chan_create() */
struct pl_chan;

/**
 * pl_chan_create() - a channel that holds up to @capacity pointers
 * @out:      where to put it
 * @capacity: 0: a rendezvous, where a send returns only when a receiver has
 *            taken the item
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
PL_API int pl_chan_create(struct pl_chan **out, size_t capacity);

/**
 * pl_chan_destroy() - free a channel that is no longer in use
 *
 * A call that was completed by the send, receive or close of another task no
 * longer touches the channel, nor does that other call.  So a receiver of an
 * item that it knows to be the last may destroy the channel.  Items that are
 * left in it belong to the caller.
 *
 * Return: 0; -EBUSY, and nothing is done, if there are waiters; -EINVAL for
 * NULL.
 */
PL_API int pl_chan_destroy(struct pl_chan *ch);

/**
 * pl_chan_close() - refuse to send from now on
 *
 * All waiters, senders and receivers, return -EPIPE.  The items that the
 * channel holds may still be received.  Not a point of cancellation.
 *
 * Return: 0; -EPIPE if it was closed before; -EINVAL for NULL.
 */
PL_API int pl_chan_close(struct pl_chan *ch);

/**
 * pl_chan_send() - send @item, which may be NULL; waits while there is no room
 *
 * Waiting senders are served in the order in which they arrived, and so are
 * waiting receivers.  On failure the item was not sent.
 *
 * Return: 0; -EPIPE if the channel is closed, before or during the wait;
 * -EINTR, -ECANCELED, -ENOMEM; -EINVAL for no channel.
 */
PL_API int pl_chan_send(struct pl_chan *ch, void *item);

/** pl_chan_send_until() - as pl_chan_send(); -ETIMEDOUT after @deadline_ns */
PL_API int pl_chan_send_until(struct pl_chan *ch, void *item,
			      uint64_t deadline_ns);

/** pl_chan_trysend() - 0; -EAGAIN if there is no room; -EPIPE, -EINVAL */
PL_API int pl_chan_trysend(struct pl_chan *ch, void *item);

/**
 * pl_chan_recv() - receive an item; waits while there is none
 * @ch:   the channel
 * @item: where to put it, or NULL; NULL is put there on -EPIPE
 *
 * On failure no item was taken.
 *
 * Return: 0; -EPIPE if the channel is closed and empty; -EINTR, -ECANCELED,
 * -ENOMEM; -EINVAL for no channel.
 */
PL_API int pl_chan_recv(struct pl_chan *ch, void **item);

/** pl_chan_recv_until() - as pl_chan_recv(); -ETIMEDOUT after @deadline_ns */
PL_API int pl_chan_recv_until(struct pl_chan *ch, void **item,
			      uint64_t deadline_ns);

/** pl_chan_tryrecv() - 0; -EAGAIN if there is no item; -EPIPE, -EINVAL */
PL_API int pl_chan_tryrecv(struct pl_chan *ch, void **item);

/** enum pl_chan_op - what a case of pl_chan_select() would do */
enum pl_chan_op {
	PL_CHAN_RECV,
	PL_CHAN_SEND,
};

/**
 * struct pl_chan_case - a send or receive that pl_chan_select() may choose
 * @ch:       the channel; NULL: never ready
 * @item:     to be sent; or received: set if this case is chosen
 * @op:       enum pl_chan_op
 * @result:   set if this case is chosen: 0, or -EPIPE
 * @reserved: the library's
 */
struct pl_chan_case {
	struct pl_chan		*ch;
	void			*item;
	uint32_t		op;
	int32_t			result;
	uint64_t		reserved[5];
};

#define PL_CHAN_CASE_RECV(ch) \
	{ (ch), NULL, PL_CHAN_RECV, 0, { 0 } }
#define PL_CHAN_CASE_SEND(ch, item) \
	{ (ch), (item), PL_CHAN_SEND, 0, { 0 } }

/**
 * pl_chan_select() - wait for the first of several cases, and carry it out
 * @cases:       the cases; several of them may name one channel, for both
 *               operations; left alone until this returns
 * @nr:          how many; 0: none will ever be ready
 * @deadline_ns: as everywhere; one in the past polls
 *
 * If several are ready, one is chosen at random, each with the same chance.
 * A case with a closed channel is ready; its result is -EPIPE.
 * Allocates nothing.
 *
 * Return: the index of the chosen case, with its result and item set; or
 * -ETIMEDOUT, -EINTR, -ECANCELED, -ENOMEM, and -EINVAL for an unknown
 * operation, if nothing was sent or received.
 */
PL_API int pl_chan_select(struct pl_chan_case *cases, size_t nr,
			  uint64_t deadline_ns);

PL_END_DECLS

#endif /* PARKLOT_CHAN_H */
