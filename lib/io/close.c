/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * close: ends requests on a descriptor that is closed
 *
 * The kernel keeps the file open while a request on it is in flight, and ends
 * no request when the descriptor is closed.  So the closer sends a close
 * message to the owner of each ring with such requests; it waits for none, as
 * an owner may be blocked.
 *
 *	owner				closer
 *	count it in its bucket	[close-a]	close the descriptor
 *	have the kernel look	[close-a]	full barrier	[close-b]
 *		for its file			if (bucket has some)
 *						message the owner
 *
 * Invariant: no request stays in flight on a closed descriptor.  The kernel's
 * look is a full barrier, as it takes a reference to the file and looks again.
 * So either the kernel finds the descriptor closed, or the closer finds the
 * request; otherwise the task waits for ever.
 *
 * When the owner reads the message, the number may be another file's.  A
 * request that was added before the close began was not for that file; a
 * request that was added later may have been, and is made again, which finds
 * out.
 */
#include "io/io.h"
#include "base/inject.h"
#include "ring/ring.h"
#include "run/run.h"
#include "base/sys.h"

#include "parklot.h"

/* The rings that get a message. */
struct close_messages {
	int			fd;
	struct pl__link		*first;
};

static struct pl__ring_closed *message_of(struct pl__link *l)
{
	return container_of(l, struct pl__ring_closed, link);
}

static bool has_message_for(struct close_messages *t, const struct pl__ring *r)
{
	struct pl__link *l;

	for (l = t->first; l; l = l->next)
		if (message_of(l)->ring == r)
			return true;
	return false;
}

/*
 * A close can neither fail nor stay half done: retries until there is memory.
 */
static struct pl__ring_closed *new_message(void)
{
	struct pl__ring_closed *m;

	while (!(m = pl__alloc(sizeof(*m))))
		pl_yield();
	return m;
}

static void close_add_message(struct close_messages *t, struct pl__ring *r,
			      uint64_t before)
{
	struct pl__ring_closed *m = new_message();

	m->ring = r;
	m->fd = t->fd;
	m->before = before;
	m->link.next = t->first;
	t->first = &m->link;
}

static void close_collect(struct close_messages *t, bool is_closed)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	struct pl__ring *r;

	for (i = 0; i < nr; i++) {
		r = load_acquire(&pl__rt.workers[i]->ring_seen);
		if (!r || !pl__ring_may_have(r, t->fd) || has_message_for(t, r))
			continue;
		close_add_message(t, r, is_closed ? 0 : pl__ring_nr_added(r));
	}
}

static void send_all(struct close_messages *t)
{
	struct pl__link *l = t->first, *next;

	for (; l; l = next) {
		next = l->next;
		pl__ring_tell(message_of(l));
	}
}

static void drop_all(struct close_messages *t)
{
	struct pl__link *l = t->first, *next;

	for (; l; l = next) {
		next = l->next;
		pl__free(message_of(l));
	}
}

static int close_and_tell(int fd)
{
	struct close_messages t = { .fd = fd };
	int ret;

	close_collect(&t, false);
	PL_INJECT("close-b");
	ret = pl__close(fd);
	if (ret == -EBADF) {
		drop_all(&t);
		return ret;
	}
	/* [close-b] pairs with [close-a] in ring_list_req(). */
	pl__full_barrier();
	PL_INJECT("close-b");
	close_collect(&t, true);
	send_all(&t);
	return ret;
}

int pl_close(int fd)
{
	bool outside = !pl__self();
	int ret;

	/* The peer reads that it has ended. */
	pl__io_order_release();
	/* Without a runtime no task waits. */
	if (outside && !pl__rt_enter())
		return pl__close(fd);
	ret = close_and_tell(fd);
	if (outside)
		pl__rt_exit();
	return ret;
}
