/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: operations on descriptors and mappings, other than ioctls: open,
 * close, map, and writes to memory that the kernel reads meanwhile.
 */
#ifndef SELFTESTS_FUZZ_FDS_H
#define SELFTESTS_FUZZ_FDS_H

#include "fuzz.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/uio.h>

/* ---- descriptors ---- */

/* Any fdno but the home's. */
static inline uint32_t pick_other_fdno(struct dice *d)
{
	return 1 + pick(d, NR_FDS - 1);
}

static inline void put_at_fdno(struct player *p, int fd, uint32_t fdno,
			       int flags)
{
	dup_own(p->team, fd, fdno_fd(fdno), flags);
	close_own(p->team, fd);
}

static void do_open(struct player *p, struct dice *d)
{
	uint32_t fdno = pick_other_fdno(d), flags = pick(d, 8);
	bool is_set_up = !once_in(d, 4);
	struct parklot_setup s = {
		.nr_lots = 1 + pick(d, 8),
		.nr_workers = once_in(d, 2) ? NR_WORKERS : 0,
	};
	int fd = open(DEVICE, flags < 2 ? (int)flags : O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		foul(p, "error %d", errno);
		return;
	}
	if (is_set_up)
		dev_ioctl(fd, PARKLOT_IOC_SETUP, &s);
	put_at_fdno(p, fd, fdno, flags & 1 ? O_CLOEXEC : 0);
}

static void do_close(struct player *p, struct dice *d)
{
	close_own(p->team, fdno_fd(pick_other_fdno(d)));
}

/* A duplicate, often of the home: closing it leaves the home's sleepers. */
static void do_dup(struct player *p, struct dice *d)
{
	uint32_t from = pick_fdno(d), to = pick_other_fdno(d);

	if (from != to)
		dup_own(p->team, fdno_fd(from), fdno_fd(to), 0);
}

static void do_dup_and_close(struct player *p, struct dice *d)
{
	int fd = dup(fdno_fd(pick_fdno(d)));

	if (fd >= 0)
		close_own(p->team, fd);
}

/* From here on this thread has a table of descriptors of its own. */
static void do_unshare(struct player *p, struct dice *d)
{
	bool is_to_be = once_in(d, 4);

	(void)p;
	if (is_to_be)
		unshare(CLONE_FILES);
}

static inline void epoll_of(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	epoll_wait(epoll, &event, 1, 0);
	close(epoll);
}

/* Calls for plain files; the device supports none of them. */
static void do_file(struct player *p, struct dice *d)
{
	int fd = fdno_fd(pick_fdno(d));
	struct pollfd pollfd = { .fd = fd, .events = POLLIN | POLLOUT };
	uint32_t odd = odd32(d);
	char buf[64] = {};
	int ret = -1;

	switch (pick(d, 10)) {
	case 0:
		ret = read(fd, buf, sizeof(buf));
		break;
	case 1:
		ret = write(fd, buf, sizeof(buf));
		break;
	case 2:
		ret = pread(fd, buf, sizeof(buf), odd);
		break;
	case 3:
		ret = ftruncate(fd, odd);
		break;
	case 4:
		ret = fallocate(fd, 0, 0, odd);
		break;
	case 5:
		ret = splice(p->team->bell, NULL, fd, NULL, odd, 0);
		break;
	case 6:
		poll(&pollfd, 1, 0);
		break;
	case 7:
		epoll_of(fd);
		break;
	case 8:
		flock(fd, LOCK_EX | LOCK_NB);
		break;
	case 9:
		fcntl(fd, F_SETFL, odd & (O_NONBLOCK | O_APPEND));
		break;
	}
	if (ret > 0)
		foul(p, "%d bytes", ret);
}

static inline void read_whole(const char *path)
{
	char buf[512];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
}

/* The fdinfo of this process, or of any team. */
static void do_fdinfo(struct player *p, struct dice *d)
{
	uint32_t fdno = pick_fdno(d);
	bool is_own = once_in(d, 2);
	int pid = is_own ? getpid() : atomic_load(&world->team_pid);
	char path[64];

	(void)p;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fdno_fd(fdno));
	read_whole(path);
}

/* ---- what is shared with the kernel ---- */

/* Writes any value, at any time, to words that the kernel reads. */
static void do_scribble(struct player *p, struct dice *d)
{
	struct space *home = &p->team->home;
	uint32_t odd = odd32(d), lot = pick(d, nr_home_lots(p));
	uint32_t slot = pick(d, NR_WORKERS);
	uint32_t *seq = &home->words->lot[lot].seq;
	struct parklot_worker_words *worker = (void *)((char *)home->words +
		PARKLOT_WORKER_OFFSET(nr_home_lots(p), slot));

	switch (pick(d, 5)) {
	case 0:
		__atomic_add_fetch(seq, 2, __ATOMIC_SEQ_CST);
		break;
	case 1:
		__atomic_store_n(seq, odd, __ATOMIC_SEQ_CST);
		break;
	case 2:
		__atomic_store_n(&home->words->backlog, odd, __ATOMIC_SEQ_CST);
		break;
	case 3:
		__atomic_store_n(&worker->state, odd & 3, __ATOMIC_SEQ_CST);
		break;
	case 4:
		__atomic_store_n(&home->words->backlog, 0, __ATOMIC_SEQ_CST);
		break;
	}
}

/* The largest number of sleepers that a lot can have. */
static void do_look(struct player *p, struct dice *d)
{
	const struct parklot_counters *c = p->team->home.counters;
	uint32_t lot = pick(d, nr_home_lots(p)), nr;

	nr = __atomic_load_n(&c->lot[lot].nr_parked, __ATOMIC_SEQ_CST);
	if (nr > NR_PLAYERS * 64)
		foul(p, "%u are parked on lot %u", nr, lot);
	/* Less those that come and go meanwhile: never more. */
	nr = nr_running(&p->team->home);
	if ((int32_t)nr > 2 * NR_PLAYERS + 2)
		foul(p, "%u run", nr);
	if (c->lot[lot].reserved[0] || c->reserved[0])
		foul(p, "the counters have more than counts");
}

/* ---- mappings ---- */

static inline char *sheet_at(struct player *p, uint32_t sheet)
{
	return p->sheets + sheet * SHEET_SIZE;
}

struct map_try {
	size_t	size;
	int	prot, flags;
	off_t	offset;
};

static inline struct map_try map_try_of(struct player *p, struct dice *d)
{
	static const int prots[] = {
		PROT_READ, PROT_READ, PROT_READ | PROT_WRITE,
		PROT_READ | PROT_WRITE, PROT_NONE, PROT_WRITE,
		PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC,
	};
	const struct parklot_setup *s = &p->team->home.setup;
	uint32_t how = pick(d, 8), page = sysconf(_SC_PAGESIZE);
	bool is_words = once_in(d, 2), is_private = once_in(d, 8);
	uint32_t prot = pick(d, ARRAY_SIZE(prots)), odd = odd32(d);
	struct map_try t = {
		.size = is_words ? s->words_size : s->counters_size,
		.prot = prots[prot],
		.flags = is_private ? MAP_PRIVATE : MAP_SHARED,
		.offset = is_words ? PARKLOT_OFF_WORDS : PARKLOT_OFF_COUNTERS,
	};

	if (how == 0)
		t.size += page;
	if (how == 1)
		t.offset += page * (odd % 4);
	if (how == 2)
		t.offset = (off_t)odd * page;
	if (how == 3)
		t.flags |= MAP_POPULATE;
	return t;
}

/* Returns the kind of sheet if @p's home may be mapped so, else NO_SHEET. */
static inline enum sheet_kind map_kind(struct player *p,
				       const struct map_try *t)
{
	const struct parklot_setup *s = &p->team->home.setup;

	if ((t->flags & MAP_TYPE) != MAP_SHARED || t->prot & PROT_EXEC)
		return NO_SHEET;
	if (t->offset == PARKLOT_OFF_WORDS && t->size == s->words_size)
		return WORDS_SHEET;
	if (t->offset == PARKLOT_OFF_COUNTERS && t->size == s->counters_size &&
	    !(t->prot & PROT_WRITE))
		return COUNTERS_SHEET;
	return NO_SHEET;
}

static void do_map(struct player *p, struct dice *d)
{
	uint32_t fdno = pick_fdno(d), sheet = pick(d, NR_SHEETS);
	struct map_try t = map_try_of(p, d);
	enum sheet_kind kind = map_kind(p, &t);
	void *at;

	if (t.size > SHEET_SIZE)
		return;
	pthread_mutex_lock(&p->team->maps);
	at = mmap(sheet_at(p, sheet), t.size, t.prot, t.flags | MAP_FIXED,
		  fdno_fd(fdno), t.offset);
	count(MAPPINGS);
	if (!fdno && (at == MAP_FAILED) != (kind == NO_SHEET))
		foul(p, "mmap of %zu at %#lx, prot %d: error %d", t.size,
		     (long)t.offset, t.prot, at == MAP_FAILED ? errno : 0);
	if (at == MAP_FAILED || fdno) {
		/* A failed mmap() may have removed the old mapping. */
		kind = NO_SHEET;
		mmap(sheet_at(p, sheet), SHEET_SIZE, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	pthread_mutex_unlock(&p->team->maps);
	p->sheet[sheet] = kind;
	p->sheet_size[sheet] = t.size;
}

/* Refused if a mapping of the team is there, or if the request is not valid. */
static void do_remap(struct player *p, struct dice *d)
{
	uint32_t sheet = pick(d, NR_SHEETS), how = pick(d, 4);
	size_t size = p->sheet_size[sheet];
	char *at = sheet_at(p, sheet);
	bool is_bad = false;

	if (p->sheet[sheet] == NO_SHEET)
		return;
	switch (how) {
	case 0:
		is_bad = !mprotect(at, size, PROT_READ | PROT_WRITE) &&
			 p->sheet[sheet] == COUNTERS_SHEET;
		break;
	case 1:
		is_bad = !mprotect(at, size, PROT_READ | PROT_EXEC);
		break;
	case 2:
		is_bad = mremap(at, size, size * 2, MREMAP_MAYMOVE) !=
			 MAP_FAILED;
		break;
	case 3:
		mprotect(at, size, PROT_READ);
		break;
	}
	if (is_bad)
		foul(p, "sheet of kind %d is remapped, way %u",
		     p->sheet[sheet], how);
}

static void do_advise(struct player *p, struct dice *d)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_DOFORK, MADV_DONTFORK, MADV_REMOVE,
		MADV_WILLNEED, MADV_MERGEABLE, MADV_HUGEPAGE, MADV_FREE,
		MADV_COLD, MADV_PAGEOUT, MADV_DODUMP, MADV_POPULATE_READ,
	};
	uint32_t sheet = pick(d, NR_SHEETS);
	int advice = advices[pick(d, ARRAY_SIZE(advices))];

	if (p->sheet[sheet] != NO_SHEET)
		madvise(sheet_at(p, sheet), p->sheet_size[sheet], advice);
}

/* By /proc/self/mem, as a debugger writes: the counters stay read-only. */
static void do_poke(struct player *p, struct dice *d)
{
	uint32_t sheet = pick(d, NR_SHEETS), odd = odd32(d);
	bool is_counters = p->sheet[sheet] == COUNTERS_SHEET;
	char *at = sheet_at(p, sheet);
	struct iovec from = { &odd, sizeof(odd) }, to = { at, sizeof(odd) };
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	if (pwrite(fd, &odd, sizeof(odd), (off_t)(uintptr_t)at) > 0 &&
	    is_counters)
		foul(p, "the counters were written to");
	close(fd);
	if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) > 0 &&
	    is_counters)
		foul(p, "the counters were written to from outside");
	process_vm_readv(getpid(), &from, 1, &to, 1, 0);
}

#endif /* SELFTESTS_FUZZ_FDS_H */
