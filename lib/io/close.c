/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * close: who waits on a descriptor is told that it is closed
 *
 * The kernel keeps the file open while a request is in flight on it, and ends
 * none when its descriptor is closed.  So the owners of the rings are told, by
 * a message: none is waited for, as it may be blocked.
 *
 *	owner				closer
 *	count it in its bucket	[close-a]	close the descriptor
 *	have the kernel look	[close-a]	full barrier	[close-b]
 *		for its file			if (bucket has some)
 *						tell the owner
 *
 * The kernel's look is a full barrier, as it takes hold of the file and looks
 * again.  So either it finds the descriptor closed, or the closer finds the
 * request.
 *
 * By the time that an owner hears of it the number may be another file's.  What
 * was added before the close began was not for that; what was added later may
 * have been, and is made again, which tells.
 */
#include "base/inject.h"
#include "ring/ring.h"
#include "sched/sched.h"
#include "base/sys.h"

#include "parklot.h"

/* A message for each ring that is to be told. */
struct told {
	int			fd;
	struct pl__link		*first;
};

static struct pl__ring_closed *message_of(struct pl__link *l)
{
	return container_of(l, struct pl__ring_closed, link);
}

static bool is_told(struct told *t, const struct pl__ring *r)
{
	struct pl__link *l;

	for (l = t->first; l; l = l->next)
		if (message_of(l)->ring == r)
			return true;
	return false;
}

/* The close cannot be refused, nor left half done: it goes on till there is. */
static struct pl__ring_closed *new_message(void)
{
	struct pl__ring_closed *m;

	while (!(m = pl__alloc(sizeof(*m))))
		pl_yield();
	return m;
}

static void close_add_message(struct told *t, struct pl__ring *r,
			      uint64_t before)
{
	struct pl__ring_closed *m = new_message();

	m->ring = r;
	m->fd = t->fd;
	m->before = before;
	m->link.next = t->first;
	t->first = &m->link;
}

static void close_collect(struct told *t, bool is_closed)
{
	uint32_t nr = load_acquire(&pl__rt.nr_started), i;
	struct pl__ring *r;

	for (i = 0; i < nr; i++) {
		r = load_acquire(&pl__rt.workers[i]->ring_seen);
		if (!r || !pl__ring_may_have(r, t->fd) || is_told(t, r))
			continue;
		close_add_message(t, r, is_closed ? 0 : pl__ring_nr_added(r));
	}
}

static void send_all(struct told *t)
{
	struct pl__link *l = t->first, *next;

	for (; l; l = next) {
		next = l->next;
		pl__ring_tell(message_of(l));
	}
}

static void drop_all(struct told *t)
{
	struct pl__link *l = t->first, *next;

	for (; l; l = next) {
		next = l->next;
		pl__free(message_of(l));
	}
}

static int close_and_tell(int fd)
{
	struct told t = { .fd = fd };
	int ret;

	close_collect(&t, false);
	PL_INJECT("close-b");
	ret = pl__close(fd);
	if (ret == -EBADF) {
		drop_all(&t);
		return ret;
	}
	/* [close-b] pairs with [close-a] in pl__ring_add(). */
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

	/* Without a runtime nobody waits. */
	if (outside && !pl__rt_enter())
		return pl__close(fd);
	ret = close_and_tell(fd);
	if (outside)
		pl__rt_exit();
	return ret;
}
