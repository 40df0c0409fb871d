/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chains of linked requests, and what they receive from and send to. rt.h is
 * included before.
 */
#ifndef SELFTESTS_LINKED_H
#define SELFTESTS_LINKED_H

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "io.h"

/* A chain, as a test prepares it. */
struct chain {
	struct io_uring_sqe	sqe[PL_IO_LINKED_MAX + 1];
	int			res[PL_IO_LINKED_MAX + 1];
	unsigned int		nr;
	uint64_t		deadline_ns;
	int			ret;
	char			buf[16];
};

static inline void init(struct chain *c)
{
	memset(c, 0, sizeof(*c));
	c->deadline_ns = PL_FOREVER;
}

/* The next entry, to be prepared. */
static inline struct io_uring_sqe *add(struct chain *c)
{
	pl_io_sqe_init(&c->sqe[c->nr]);
	c->res[c->nr] = 12345;
	return &c->sqe[c->nr++];
}

static inline struct io_uring_sqe *add_nop(struct chain *c)
{
	struct io_uring_sqe *sqe = add(c);

	io_uring_prep_nop(sqe);
	return sqe;
}

static inline struct io_uring_sqe *add_recv(struct chain *c, int fd)
{
	struct io_uring_sqe *sqe = add(c);

	io_uring_prep_recv(sqe, fd, c->buf, 1, 0);
	return sqe;
}

static inline struct io_uring_sqe *add_send(struct chain *c, int fd)
{
	struct io_uring_sqe *sqe = add(c);

	io_uring_prep_send(sqe, fd, c->buf, 1, 0);
	return sqe;
}

static inline void run(void *arg)
{
	struct chain *c = arg;

	c->ret = pl_io_wait_linked(c->sqe, c->res, c->nr, c->deadline_ns);
}

static inline pl_task_t start(struct chain *c)
{
	pl_task_t t = spawn(run, c);

	EXPECT_TRUE(UNTIL(is_waiting(t)));
	return t;
}

static inline void expect_results(const struct chain *c, const int *want)
{
	unsigned int i;

	for (i = 0; i < c->nr; i++)
		EXPECT_EQ(want[i], c->res[i]);
}

#define EXPECT_RESULTS(c, ...) \
	expect_results(c, (const int[PL_IO_LINKED_MAX]){ __VA_ARGS__ })

static inline bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Two socket pairs: a chain receives from in[0], and sends to out[0]. */
static int __attribute__((unused)) in[2], out[2];

static inline void open_pairs(void)
{
	make_pair(in);
	make_pair(out);
}

static inline void close_pairs(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
}

static inline void give_byte(char c)
{
	EXPECT_EQ(1, write(in[1], &c, 1));
}

static inline void take_byte(char want)
{
	char c = 0;

	EXPECT_EQ(1, read(out[1], &c, 1));
	EXPECT_EQ(want, c);
}

static inline int open_file(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = memfd_create("linked", MFD_CLOEXEC);
	ASSERT_LE(0, fd);
	return fd;
}

static inline void use_without_uring(void *arg)
{
	struct chain c;

	init(&c);
	add_nop(&c);
	add_nop(&c);
	run(&c);
	EXPECT_EQ(-EOPNOTSUPP, c.ret);
	EXPECT_RESULTS(&c, -ECANCELED, -ECANCELED);
}

#endif /* SELFTESTS_LINKED_H */
