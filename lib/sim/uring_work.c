/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* What the kernel does for rings, and they themselves; see uring.c. */
#include "sim/io.h"
#include "sim/state.h"
#include "sim/uring.h"
#include "sim/uring_op.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FD_FLOOR	3584	/* out of the way of the program's */
#define TICK_NS		4000000	/* a thread is in the kernel for its clock */
#define MAX_WAITING	16384	/* requests, in all rings */

static uint64_t changes_seen, nr_ready;
/* The thread that is in io_uring_enter(), and not asleep. */
static struct pl__sim_thread *in_kernel;

/* ---- the kernel's work ---- */

/* Its clock interrupts it now and then, if it does not come by itself. */
static bool is_in_kernel(const struct pl__sim_thread *t)
{
	return t == in_kernel || t->state == PL__SIM_BLOCKED ||
	       (t->has_work && t->work_due_ns <= pl__sim.now_ns);
}

static void set_ready(struct pl__sim_op *op)
{
	op->is_ready = true;
	op->ready_nr = nr_ready++;
}

static void find_ready(void)
{
	static struct pollfd fds[MAX_WAITING];
	static struct pl__sim_op *of[MAX_WAITING];
	struct pl__sim_ring *r;
	struct pl__sim_op *op;
	nfds_t nr = 0, i;
	int ret;

	for (r = pl__sim_rings; r; r = r->next)
		for (op = r->waiting.first; op; op = op->next) {
			if (op->is_ready || op->due_ns != PL__SIM_FOREVER ||
			    op->sqe.opcode == PL__SIM_FUTEX_WAIT)
				continue;
			if (nr == MAX_WAITING)
				pl__sim_fail("more than %d requests wait",
					     MAX_WAITING);
			if (op->sqe.opcode == IORING_OP_OPENAT) {
				set_ready(op);
				continue;
			}
			of[nr] = op;
			fds[nr].fd = op->fd;
			fds[nr++].events = pl__sim_op_events(&op->sqe);
		}
	ret = PL__SIM_REAL(poll)(fds, nr, 0);
	/* It needs as many descriptors as may be open: then each is tried. */
	for (i = 0; i < nr; i++)
		if (ret < 0 || fds[i].revents)
			set_ready(of[i]);
}

static bool can_go_on(const struct pl__sim_op *op)
{
	return op->due_ns <= pl__sim.now_ns ||
	       (op->is_ready && is_in_kernel(op->submitter));
}

/* The first that became ready, of one thread or of any. */
static struct pl__sim_op *op_first(const struct pl__sim_thread *submitter)
{
	struct pl__sim_op *op, *first = NULL;
	struct pl__sim_ring *r;

	for (r = pl__sim_rings; r; r = r->next)
		for (op = r->waiting.first; op; op = op->next)
			if ((!submitter || op->submitter == submitter) &&
			    can_go_on(op) &&
			    (!first || op->ready_nr < first->ready_nr))
				first = op;
	return first;
}

/* The seed decides of which thread. */
static struct pl__sim_op *op_next(void)
{
	struct pl__sim_op *first = op_first(NULL), *other = NULL;
	struct pl__sim_thread *t;

	if (!first || pl__sim_is_machine() || !pl__sim_one_in(2))
		return first;
	pl__sim_for_each(t)
		if (t != first->submitter && !other)
			other = op_first(t);
	return other ? other : first;
}

static uint64_t next_tick(void)
{
	return pl__sim.now_ns + 1 +
	       (pl__sim_is_machine() ? TICK_NS : pl__sim_random() % TICK_NS);
}

/* The descriptor of a ring is readable while it has completions. */
static void ring_show(struct pl__sim_ring *r)
{
	bool has = pl__sim_has_completions(r);
	uint64_t one = 1;

	if (has == r->is_readable)
		return;
	r->is_readable = has;
	if ((has ? PL__SIM_REAL(write)(r->uring->ring_fd, &one, sizeof(one)) :
		   PL__SIM_REAL(read)(r->uring->ring_fd, &one,
				      sizeof(one))) != sizeof(one))
		pl__sim_fail("the descriptor of a ring is not its own");
}

static void note_work(struct pl__sim_thread *t)
{
	if (!t->has_work) {
		t->has_work = true;
		t->work_due_ns = next_tick();
	}
	if (t->work_due_ns < pl__sim_first_due_ns)
		pl__sim_first_due_ns = t->work_due_ns;
}

static void note_rest(void)
{
	struct pl__sim_thread *t;
	struct pl__sim_ring *r;
	struct pl__sim_op *op;

	pl__sim_for_each(t)
		if (t->work_due_ns <= pl__sim.now_ns)
			t->has_work = false;
	pl__sim_first_due_ns = PL__SIM_FOREVER;
	for (r = pl__sim_rings; r; r = r->next) {
		r->sq_flags &= ~IORING_SQ_TASKRUN;
		for (op = r->waiting.first; op; op = op->next) {
			if (op->due_ns < pl__sim_first_due_ns)
				pl__sim_first_due_ns = op->due_ns;
			if (!op->is_ready)
				continue;
			note_work(op->submitter);
			if (r->uring->flags & IORING_SETUP_TASKRUN_FLAG)
				r->sq_flags |= IORING_SQ_TASKRUN;
		}
		ring_show(r);
	}
}

static void work(void)
{
	struct pl__sim_op *op;

	do {
		changes_seen = pl__sim_io_nr_changes();
		find_ready();
		while ((op = op_next()))
			pl__sim_op_try(op);
	} while (changes_seen != pl__sim_io_nr_changes());
	note_rest();
}

static void work_of_caller(void)
{
	in_kernel = pl__sim_me;
	in_kernel->has_work = false;
	work();
	in_kernel = NULL;
}

void pl__sim_uring_run(void)
{
	if (pl__sim_rings && (changes_seen != pl__sim_io_nr_changes() ||
		      pl__sim.now_ns >= pl__sim_first_due_ns))
		work();
}

uint64_t pl__sim_uring_deadline(void)
{
	return pl__sim_first_due_ns;
}

void pl__sim_uring_show(void)
{
	struct pl__sim_ring *r;

	for (r = pl__sim_rings; r; r = r->next)
		ring_show(r);
}

/* The number becomes another file's; none is left: that of the program. */
static void keep_file(struct pl__sim_op *op)
{
	int fd = fcntl(op->fd, F_DUPFD_CLOEXEC, FD_FLOOR);

	if (fd < 0)
		fd = fcntl(op->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		pl__sim_fail("no descriptor for the file of a request");
	op->fd = fd;
	op->is_fd_own = true;
}

void pl__sim_uring_closes(int fd)
{
	struct pl__sim_ring *r;
	struct pl__sim_op *op;

	for (r = pl__sim_rings; r; r = r->next)
		for (op = r->waiting.first; op; op = op->next)
			if (op->fd == fd && !op->is_fd_own &&
			    pl__sim_op_has_file(&op->sqe))
				keep_file(op);
}

int pl__sim_uring_wake(const void *word, int nr)
{
	struct pl__sim_ring *r;
	struct pl__sim_op *op;
	int woken = 0;

	for (r = pl__sim_rings; r; r = r->next)
		for (op = r->waiting.first; op && woken < nr; op = op->next)
			if (op->sqe.opcode == PL__SIM_FUTEX_WAIT &&
			    pl__sim_ptr(op->sqe.addr) == word && !op->is_over) {
				op->res = 0;
				op->is_over = true;
				set_ready(op);
				woken++;
			}
	if (woken)
		pl__sim_io_changed();
	return woken;
}

void pl__sim_uring_thread_ends(void)
{
	struct pl__sim_ring *r;
	struct pl__sim_op *op;

	for (r = pl__sim_rings; r; r = r->next)
		for (op = r->waiting.first; op; op = op->next)
			if (op->submitter == pl__sim_me)
				pl__sim_op_end_at(op, -ECANCELED,
						  pl__sim.now_ns);
	pl__sim_uring_run();
}

/* ---- rings ---- */

struct pl__sim_ring *pl__sim_ring_of(const struct io_uring *uring)
{
	struct pl__sim_ring *r = pl__sim_rings;

	while (r && r->uring != uring)
		r = r->next;
	return r;
}

struct pl__sim_ring *pl__sim_ring_of_fd(int fd)
{
	struct pl__sim_ring *r = pl__sim_rings;

	while (r && r->uring->ring_fd != fd)
		r = r->next;
	return r;
}

int pl__sim_ring_enter(struct pl__sim_ring *r, unsigned int most)
{
	int nr = pl__sim_submit(r, most);

	pl__sim_post_overflown(r);
	work_of_caller();
	return nr;
}

void pl__sim_uring_pass(void)
{
	if (pl__sim_me->has_work)
		work_of_caller();
}

static bool ring_is_ready(void *arg)
{
	struct pl__sim_ring *r = arg;

	pl__sim_uring_run();
	return pl__sim_has_completions(r);
}

bool pl__sim_ring_wait(struct pl__sim_ring *r, uint64_t until_ns)
{
	return pl__sim_has_completions(r) ||
	       pl__sim_sleep("io_uring_enter", NULL, ring_is_ready, r,
			     until_ns);
}

int pl__sim_uring_fdinfo(int fd)
{
	struct pl__sim_ring *r = pl__sim_ring_of_fd(fd);
	struct pl__sim_op *op;
	char *text;
	size_t size;
	FILE *f;

	if (!r)
		return -1;
	f = open_memstream(&text, &size);
	if (!f)
		return -1;
	fprintf(f, "CqOverflowList:\n");
	for (op = r->overflown.first; op; op = op->next)
		fprintf(f, "  user_data=%llu, res=%d, flags=0\n",
			(unsigned long long)op->sqe.user_data, op->res);
	fclose(f);
	fd = pl__sim_io_text(text);
	free(text);
	return fd;
}

int pl__sim_ring_cancel(struct pl__sim_ring *r, uint64_t data)
{
	struct pl__sim_op *op = pl__sim_op_of(r, data);

	if (!op)
		return -ENOENT;
	pl__sim_op_end_at(op, -ECANCELED, pl__sim.now_ns);
	pl__sim_uring_run();
	return 0;
}

/* That of an eventfd, or of a pipe if a filter forbids those. */
static int open_shown(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), fds[2];
	char path[40];

	if (fd >= 0 || pipe2(fds, O_CLOEXEC))
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	fd = PL__SIM_REAL(open)(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	PL__SIM_REAL(close)(fds[0]);
	PL__SIM_REAL(close)(fds[1]);
	return fd;
}

int pl__sim_ring_open(struct io_uring *uring, unsigned int entries,
		      unsigned int flags)
{
	unsigned int cq_entries = 2 * entries;
	struct pl__sim_ring *r;

	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	memset(uring, 0, sizeof(*uring));
	uring->sq.sqes = calloc(entries, sizeof(*uring->sq.sqes));
	uring->cq.cqes = calloc(cq_entries, sizeof(*uring->cq.cqes));
	uring->ring_fd = open_shown();
	if (!uring->sq.sqes || !uring->cq.cqes || uring->ring_fd < 0)
		goto err;
	uring->enter_ring_fd = uring->ring_fd;
	uring->flags = flags;
	uring->features = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;
	r->sq_mask = entries - 1;
	r->sq_entries = entries;
	r->cq_mask = cq_entries - 1;
	r->cq_entries = cq_entries;
	r->uring = uring;
	pl__sim_ops_init(&r->waiting);
	pl__sim_ops_init(&r->overflown);
	uring->sq.khead = &r->sq_head;
	uring->sq.ktail = &uring->sq.sqe_tail;
	uring->sq.kflags = &r->sq_flags;
	uring->sq.kring_mask = &r->sq_mask;
	uring->sq.kring_entries = &r->sq_entries;
	uring->sq.ring_mask = r->sq_mask;
	uring->sq.ring_entries = entries;
	uring->cq.khead = &r->cq_head;
	uring->cq.ktail = &r->cq_tail;
	uring->cq.kring_mask = &r->cq_mask;
	uring->cq.kring_entries = &r->cq_entries;
	uring->cq.ring_mask = r->cq_mask;
	uring->cq.ring_entries = cq_entries;
	r->next = pl__sim_rings;
	pl__sim_rings = r;
	return 0;

err:
	if (uring->ring_fd >= 0)
		PL__SIM_REAL(close)(uring->ring_fd);
	free(uring->sq.sqes);
	free(uring->cq.cqes);
	free(r);
	return uring->ring_fd < 0 ? -EMFILE : -ENOMEM;
}

static void ops_drop(struct pl__sim_op *op)
{
	struct pl__sim_op *next;

	for (; op; op = next) {
		next = op->next;
		ops_drop(op->linked);
		pl__sim_op_free(op);
	}
}

void pl__sim_ring_close(struct pl__sim_ring *r)
{
	struct pl__sim_ring **at = &pl__sim_rings;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	ops_drop(r->waiting.first);
	ops_drop(r->overflown.first);
	PL__SIM_REAL(close)(r->uring->ring_fd);
	free(r->uring->sq.sqes);
	free(r->uring->cq.cqes);
	free(r);
	pl__sim_io_changed();
}
