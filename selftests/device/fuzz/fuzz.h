/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The terms of mod_fuzz. A seed makes rounds, a round teams, a team players, a
 * player operations. Each has dice (random numbers) of its own, which depend
 * only on the numbers of the levels above. So an operation and its values never
 * depend on the result of another, and a seed and a round repeat all of it. The
 * scheduler alone decides when.
 *
 * A team is a process, a player a thread of it. An fdno stands for a fixed
 * descriptor, which belongs to the device: a player may close or replace the
 * descriptor while others use it, and it is never another kind of file. Fdno 0,
 * the home, stays open, and its size is known; so the tests know which calls
 * the home must refuse and which it must not.
 *
 * Paper is memory of a player that ends at an unmapped page, glass a read-only
 * page, a sheet one of the player's mappings. Books are the counts of wakes on
 * both sides. A result that the manual rules out is foul.
 */
#ifndef SELFTESTS_FUZZ_H
#define SELFTESTS_FUZZ_H

#include "mod.h"

#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>

#define NR_PLAYERS	4		/* of a team */
#define NR_FDS	6
#define NR_SHEETS	2		/* mappings of a player */
#define FIRST_FD	100		/* as a descriptor */
#define CHILD_STACK	(64UL << 10)
#define NR_WORKERS	6		/* of the home's crew */
#define PAPER_SIZE	(32UL << 10)	/* more than any ioctl's struct */
#define SHEET_SIZE	(64UL << 10)

static struct __test_metadata *_metadata;

static inline void fuzz_begin(struct __test_metadata *test)
{
	_metadata = test;
}

/* ---- dice ---- */

struct dice {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static inline uint64_t roll(struct dice *d)
{
	d->state += 0x9e3779b97f4a7c15ULL;
	return mix(d->state);
}

/* The dice of part @nr of a whole that has @seed. */
static inline struct dice dice_of(uint64_t seed, uint64_t nr)
{
	struct dice d = { mix(seed + 0x9e3779b97f4a7c15ULL) ^ nr };

	d.state = roll(&d);
	return d;
}

/* A number below @nr. */
static inline uint32_t pick(struct dice *d, uint32_t nr)
{
	return (roll(d) >> 32) * nr >> 32;
}

static inline bool once_in(struct dice *d, uint32_t nr)
{
	return !pick(d, nr);
}

/* A value at which the interface or arithmetic changes; or any value. */
static inline uint32_t odd32(struct dice *d)
{
	static const uint32_t edges[] = {
		0, 1, 2, 3, 7, 8, 63, 64, 65, 1023, 1024, 1025, 4096, 65535,
		65536, 65537, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
	};
	uint32_t i = pick(d, ARRAY_SIZE(edges) * 4 / 3);
	uint32_t any = roll(d);

	return i < ARRAY_SIZE(edges) ? edges[i] : any;
}

/* Nearly always below @nr. */
static inline uint32_t around(struct dice *d, uint32_t nr)
{
	uint32_t how = pick(d, 16), in = pick(d, nr), odd = odd32(d);

	return how > 1 ? in : how ? nr : odd;
}

/* ---- rounds, teams, players ---- */

enum tally {
	CALLS, PARKS, WAKES, MAPPINGS, SIGNALS, PROCESSES, KILLED,
	PASSED, NR_TALLIES,
};

/* Shared by all processes of a round. */
struct world {
	uint64_t	seed;			/* of the round */
	uint32_t	round;
	atomic_long	tally[NR_TALLIES];
	atomic_ulong	digest;			/* of all operations */
	atomic_int	team_pid;		/* others read its fdinfo */
	atomic_int	nr_wild_ops;		/* of the present wild team */
	bool		is_ours;		/* no other machine load */
	atomic_int	is_late;		/* the round is about to end */
	atomic_int	has_fault;		/* any process found one */
};

static struct world *world;

struct player;

/* Closes of descriptors by the team's threads and by its children. */
struct closes {
	atomic_ulong	begun, ended;
};

struct team {
	bool		is_wild;		/* may be killed: no books */
	bool		is_failing;		/* allocations fail */
	struct space	home;			/* descriptor on fdno 0 */
	struct closes	*closes;
	int		bell;			/* an eventfd to poll */
	int		post;			/* socket to a stranger */
	pthread_barrier_t start;
	pthread_mutex_t	maps;			/* held over MAP_FIXED */
	atomic_int	nr_done;
	atomic_int	is_over;		/* no more wakes */
	atomic_long	said, seen;		/* wakes, by either side */
	struct player	*player;		/* NR_PLAYERS */
};

enum sheet_kind { NO_SHEET, COUNTERS_SHEET, WORDS_SHEET };

struct player {
	struct team	*team;
	uint32_t	nr;
	uint64_t	seed;
	uint32_t	nr_op;			/* the present one */
	const char	*op;
	pthread_t	thread;
	atomic_int	is_done;
	int		own_slot;		/* joined at home, or -1 */
	char		*paper;			/* then an unmapped page */
	const char	*glass;			/* a read-only page */
	char		*sheets;		/* reserved for mappings */
	char		*stack;			/* for a child */
	enum sheet_kind	sheet[NR_SHEETS];
	size_t		sheet_size[NR_SHEETS];
	int		fail_fd;		/* see fail.h, or -1 */
	bool		is_failing;		/* its allocations may fail */
};

static inline void count(enum tally what)
{
	atomic_fetch_add_explicit(&world->tally[what], 1, memory_order_relaxed);
}

/*
 * The harness of a kernel counts failures for each process. So a check in any
 * process notes them for the test's own, in the block that follows the check.
 */
static inline void note_fault(void)
{
	atomic_store(&world->has_fault, 1);
}

/* Reports a result that is ruled out; also in a child of a team. */
static void __attribute__((format(printf, 2, 3)))
foul(const struct player *p, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	if (p->is_failing)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	EXPECT_TRUE(false) {
		note_fault();
		TH_LOG("round %u, %s player %u, operation %u (%s): %s",
		       world->round, p->team->is_wild ? "wild" : "tame", p->nr,
		       p->nr_op, p->op, text);
	}
}

/*
 * The errors that the manual lists. EIO is for other processes, or a descriptor
 * that was passed on.
 */
static inline bool is_documented(int err)
{
	switch (err) {
	case 0:
	case -E2BIG:
	case -EBADF:
	case -EBUSY:
	case -EFAULT:
	case -EINTR:
	case -EINVAL:
	case -ENOENT:
	case -ENOMEM:
	case -ENOTTY:
	case -ENXIO:
	case -EOPNOTSUPP:
		return true;
	}
	return false;
}

static inline bool is_reason(uint32_t reason)
{
	return reason >= PARKLOT_WOKEN && reason <= PARKLOT_CALLED;
}

static inline int fdno_fd(uint32_t fdno)
{
	return FIRST_FD + fdno;
}

/* The home in half of the cases. */
static inline uint32_t pick_fdno(struct dice *d)
{
	uint32_t fdno = pick(d, 2 * NR_FDS);

	return fdno < NR_FDS ? fdno : 0;
}

/* ---- closes ---- */

static inline void close_begins(struct team *team)
{
	if (team->closes)
		atomic_fetch_add(&team->closes->begun, 1);
}

static inline void close_ends(struct team *team)
{
	if (team->closes)
		atomic_fetch_add(&team->closes->ended, 1);
}

static inline unsigned long closes_ended(struct team *team)
{
	return atomic_load(&team->closes->ended);
}

/* Returns true if no close was under way since @ended closes had ended. */
static inline bool is_without_close(struct team *team, unsigned long ended)
{
	return atomic_load(&team->closes->begun) == ended;
}

static inline void close_own(struct team *team, int fd)
{
	close_begins(team);
	close(fd);
	close_ends(team);
}

/* Maps over an existing mapping. */
static inline int dup_own(struct team *team, int from, int to, int flags)
{
	int fd;

	close_begins(team);
	fd = dup3(from, to, flags);
	close_ends(team);
	return fd;
}

static inline uint32_t nr_home_lots(const struct player *p)
{
	return p->team->home.setup.nr_lots;
}

/* The largest number of lots. */
static inline uint32_t nr_lots_of(const struct player *p, uint32_t fdno)
{
	return fdno ? PARKLOT_MAX_LOTS : nr_home_lots(p);
}

static inline void *map_memory(size_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	return p;
}

/* Paper ends at an unmapped page. */
static inline void player_init(struct player *p, struct team *team, uint32_t nr,
			       uint64_t seed)
{
	size_t page = sysconf(_SC_PAGESIZE);

	p->team = team;
	p->nr = nr;
	p->seed = dice_of(seed, nr).state;
	p->op = "none";
	p->own_slot = -1;
	p->fail_fd = -1;
	p->paper = map_memory(PAPER_SIZE + page, PROT_READ | PROT_WRITE);
	ASSERT_EQ(0, mprotect(p->paper + PAPER_SIZE, page, PROT_NONE));
	p->glass = map_memory(page, PROT_READ);
	p->sheets = map_memory(NR_SHEETS * SHEET_SIZE, PROT_NONE);
	p->stack = map_memory(CHILD_STACK, PROT_READ | PROT_WRITE);
}

#endif /* SELFTESTS_FUZZ_H */
