/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: a ring of io_uring, by its system calls: a library would refuse
 * flags that it does not know, and would not end a ring with its memory mapped.
 *
 * The ring of player N has a descriptor with a fixed number. So other players
 * of the team can close and enter it at any time.
 */
#ifndef SELFTESTS_FUZZ_RING_H
#define SELFTESTS_FUZZ_RING_H

#include "fuzz.h"

/* Later than the installed header. */
#define SETUP_NO_SQARRAY	(1U << 16)
#define NR_KNOWN_SETUP_FLAGS	14	/* named by the header */

#define NR_PLAIN		16	/* entries of a plain ring */

static inline int ring_setup(uint32_t nr, struct io_uring_params *params)
{
	return syscall(SYS_io_uring_setup, nr, params);
}

static inline int ring_register(int fd, uint32_t op, const void *arg,
				uint32_t nr)
{
	return syscall(SYS_io_uring_register, fd, op, arg, nr);
}

static inline uint32_t *ring_word(const struct ring *r, uint32_t offset)
{
	return (uint32_t *)(r->rings + offset);
}

static inline uint32_t word_read(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* ---- set-up ---- */

/* Where and when completions are processed. */
static inline uint32_t taskrun_flags(struct dice *d)
{
	static const uint32_t flags[] = {
		0, 0, IORING_SETUP_COOP_TASKRUN,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
		IORING_SETUP_SINGLE_ISSUER,
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	};

	return flags[pick(d, ARRAY_SIZE(flags))];
}

/* Each flag by itself: some exclude each other. */
static inline uint32_t odd_setup_flags(struct dice *d)
{
	static const struct { uint32_t flag, once_in; } flags[] = {
		{ IORING_SETUP_IOPOLL, 32 }, { IORING_SETUP_SQPOLL, 8 },
		{ IORING_SETUP_SQ_AFF, 32 }, { IORING_SETUP_CQSIZE, 3 },
		{ IORING_SETUP_CLAMP, 8 }, { IORING_SETUP_ATTACH_WQ, 6 },
		{ IORING_SETUP_R_DISABLED, 8 }, { IORING_SETUP_SUBMIT_ALL, 2 },
		{ IORING_SETUP_SQE128, 6 }, { IORING_SETUP_CQE32, 6 },
		{ SETUP_NO_SQARRAY, 6 },
	};
	uint32_t sum = taskrun_flags(d);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		if (once_in(d, flags[i].once_in))
			sum |= flags[i].flag;
	/* With most other flags the kernel refuses a thread of its own. */
	if (sum & IORING_SETUP_SQPOLL && once_in(d, 2))
		sum &= IORING_SETUP_SQPOLL | IORING_SETUP_CQSIZE |
		       IORING_SETUP_ATTACH_WQ | IORING_SETUP_R_DISABLED |
		       IORING_SETUP_SQE128;
	return sum;
}

static inline struct io_uring_params params_of(struct player *p, struct dice *d)
{
	uint32_t few = pick(d, 4), other = pick(d, NR_PLAYERS);
	struct io_uring_params params = {
		.flags = odd_setup_flags(d),
		.sq_entries = 1U << pick(d, 7),
		.sq_thread_cpu = pick(d, 3), .sq_thread_idle = 1,
		.wq_fd = ring_fd(p->team, other),
	};

	/* So few that they overflow. */
	params.cq_entries = params.sq_entries << (few == 1);
	if (p->ring.is_plain) {
		params.flags = taskrun_flags(d);
		params.sq_entries = NR_PLAIN;
	}
	return params;
}

/* Sets any flags that a later kernel may have; the ring is not used. */
static inline void ring_try(struct dice *d)
{
	uint32_t more = 1U << (NR_KNOWN_SETUP_FLAGS +
			       pick(d, 32 - NR_KNOWN_SETUP_FLAGS));
	struct io_uring_params params = {
		.flags = odd_setup_flags(d) | more, .cq_entries = 8,
		.sq_thread_idle = 1,
	};
	int fd = ring_setup(1 + pick(d, 8), &params);

	/* Otherwise the number is of a table of the thread's own. */
	if (fd > 2)
		close(fd);
}

static inline void *ring_mmap(int fd, size_t size, off_t offset)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

static inline void ring_unmap(struct ring *r)
{
	if (r->rings != MAP_FAILED)
		munmap(r->rings, r->rings_size);
	if (r->sqes != MAP_FAILED)
		munmap(r->sqes, r->sqes_size);
}

/* Both rings are in one area, the entries in another. */
static inline bool ring_map(struct player *p, int fd)
{
	struct ring *r = &p->ring;
	const struct io_uring_params *s = &r->params;
	uint32_t wide = s->flags & IORING_SETUP_CQE32 ? 2 : 1;
	uint32_t big = s->flags & IORING_SETUP_SQE128 ? 2 : 1;
	size_t size = s->sq_off.array + s->sq_entries * sizeof(uint32_t);

	r->rings_size = s->cq_off.cqes + s->cq_entries * wide *
			sizeof(struct io_uring_cqe);
	r->sqes_size = s->sq_entries * big * sizeof(struct io_uring_sqe);
	if (!(s->flags & SETUP_NO_SQARRAY) && size > r->rings_size)
		r->rings_size = size;
	pthread_mutex_lock(&p->team->maps);
	r->rings = ring_mmap(fd, r->rings_size, IORING_OFF_SQ_RING);
	r->sqes = ring_mmap(fd, r->sqes_size, IORING_OFF_SQES);
	pthread_mutex_unlock(&p->team->maps);
	if (r->rings != MAP_FAILED && r->sqes != MAP_FAILED)
		return true;
	ring_unmap(r);
	return false;
}

/* A ring as the dice decide, or a plain one if the kernel refuses that. */
static inline int ring_create(struct player *p, struct dice *d,
			      struct io_uring_params *params)
{
	struct io_uring_params wanted = params_of(p, d);
	int fd;

	*params = wanted;
	fd = ring_setup(wanted.sq_entries, params);
	if (fd >= 0)
		return fd;
	*params = (struct io_uring_params){};
	return ring_setup(wanted.sq_entries, params);
}

/*
 * Where io_uring's memory is limited, or its allocation fails, there is no
 * ring.
 */
static inline void ring_open(struct player *p, struct dice *d)
{
	struct ring *r = &p->ring;
	int fd = ring_create(p, d, &r->params);

	if (once_in(d, 8))
		ring_try(d);
	if (fd < 0)
		return;
	r->is_open = ring_map(p, fd);
	r->is_enabled = !(r->params.flags & IORING_SETUP_R_DISABLED);
	r->is_drained = r->is_linked = r->ends_in_link = false;
	r->link_head = NULL;
	r->tail = 0;
	if (r->is_open)
		dup3(fd, ring_fd(p->team, p->nr), O_CLOEXEC);
	close(fd);
}

/* ---- submission and completion ---- */

/* Returns the next entry, zeroed; or NULL. */
static inline struct io_uring_sqe *ring_sqe(struct ring *r)
{
	const struct io_uring_params *s = &r->params;
	uint32_t at = r->tail & (s->sq_entries - 1);
	uint32_t head = word_read(ring_word(r, s->sq_off.head));
	size_t size = sizeof(struct io_uring_sqe);
	char *sqe;

	if (s->flags & IORING_SETUP_SQE128)
		size *= 2;
	if (r->tail - head >= s->sq_entries)
		return NULL;
	if (!(s->flags & SETUP_NO_SQARRAY))
		ring_word(r, s->sq_off.array)[at] = at;
	r->tail++;
	sqe = r->sqes + at * size;
	return memset(sqe, 0, size);
}

/* Submits the entries of @r and waits for @nr completions, for @ns at most. */
static inline int ring_enter(struct player *p, uint32_t nr, uint32_t ns)
{
	struct ring *r = &p->ring;
	const struct io_uring_params *s = &r->params;
	struct __kernel_timespec ts = { .tv_nsec = ns };
	struct io_uring_getevents_arg arg = { .ts = (uintptr_t)&ts };
	uint32_t flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
	uint32_t *tail = ring_word(r, s->sq_off.tail);
	uint32_t head = word_read(ring_word(r, s->sq_off.head));
	int ret;

	__atomic_store_n(tail, r->tail, __ATOMIC_SEQ_CST);
	if (s->flags & IORING_SETUP_SQPOLL &&
	    word_read(ring_word(r, s->sq_off.flags)) & IORING_SQ_NEED_WAKEUP)
		flags |= IORING_ENTER_SQ_WAKEUP;
	ret = syscall(SYS_io_uring_enter, ring_fd(p->team, p->nr),
		      r->tail - head, nr, flags, &arg, sizeof(arg));
	return ret < 0 ? -errno : ret;
}

/* Copies the next completion; returns false if there is none. */
static inline bool ring_cqe(struct ring *r, struct io_uring_cqe *cqe)
{
	const struct io_uring_params *s = &r->params;
	uint32_t *head = ring_word(r, s->cq_off.head);
	uint32_t at = *head & (s->cq_entries - 1);
	size_t size = sizeof(*cqe);

	if (s->flags & IORING_SETUP_CQE32)
		size *= 2;
	if (*head == word_read(ring_word(r, s->cq_off.tail)))
		return false;
	memcpy(cqe, r->rings + s->cq_off.cqes + at * size, sizeof(*cqe));
	__atomic_store_n(head, *head + 1, __ATOMIC_SEQ_CST);
	return true;
}

/* ---- the end ---- */

/*
 * The ring ends with its last descriptor and mapping: here, or in another
 * player that closes the relay or replaces it meanwhile.
 */
static inline void ring_end(struct player *p, uint32_t how)
{
	int fd = ring_fd(p->team, p->nr);

	if (how == 1)
		close(fd);
	if (how == 2)
		dup3(fd, relay_fd(), O_CLOEXEC);
	ring_unmap(&p->ring);
	if (how == 3)
		dup3(p->team->bell, fd, O_CLOEXEC);
	close(fd);
	p->ring.is_open = false;
}

static void do_relay(struct player *p, struct dice *d)
{
	(void)p;
	(void)d;
	close(relay_fd());
}

#endif /* SELFTESTS_FUZZ_RING_H */
