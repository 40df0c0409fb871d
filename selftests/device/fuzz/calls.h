/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mod_fuzz: the ioctls. Each struct is made correct, then one word of it is
 * perhaps made wrong; *_is_right(), which states the manual in C, tells from
 * the struct itself which it is. A wrong call must have no effect, and at home
 * a right call must succeed.
 */
#ifndef SELFTESTS_FUZZ_CALLS_H
#define SELFTESTS_FUZZ_CALLS_H

#include "fuzz.h"

/* ---- where a struct lies ---- */

/* A command and its struct, as passed to the kernel. */
struct letter {
	unsigned long	cmd;
	char		*at;
	bool		is_fit;		/* readable, writable, right size */
};

/* Half on paper, or read-only, or unmapped. */
static inline char *bad_place(struct player *p, uint32_t which, size_t size)
{
	switch (which) {
	case 0:
		return p->paper + PAPER_SIZE - size / 2 / 8 * 8;
	case 1:
		return (char *)p->glass;
	case 2:
		return NULL;
	default:
		return (char *)(~0UL << 12);
	}
}

static inline size_t odd_size(struct dice *d, unsigned long cmd, bool *is_fit,
			      bool *is_dirty)
{
	size_t known = _IOC_SIZE(cmd), more = 8 * (1 + pick(d, 64));
	uint32_t how = pick(d, 32);

	if (how > 2)
		return known;
	*is_dirty = how == 1;
	if (how == 0 || _IOC_NR(cmd) == _IOC_NR(PARKLOT_IOC_WAKE_PARK) ||
	    (*is_dirty && _IOC_NR(cmd) != _IOC_NR(PARKLOT_IOC_QUERY)))
		*is_fit = false;
	return how ? known + more : known - 8;
}

/* Puts @what on paper, of which other players use the last third. */
static inline struct letter letter_of(struct player *p, struct dice *d,
				      unsigned long cmd, const void *what)
{
	struct letter l = { .is_fit = true };
	bool is_dirty = false;
	size_t size = odd_size(d, cmd, &l.is_fit, &is_dirty);
	size_t known = _IOC_SIZE(cmd);
	uint32_t where = pick(d, 32);
	/* Only zeros are readable there: is the struct all zeros? */
	bool is_bad = where < 4 && (where != 1 || _IOC_DIR(cmd) & _IOC_READ);

	l.cmd = (cmd & ~IOCSIZE_MASK) | size << _IOC_SIZESHIFT;
	l.at = p->paper + (where == 4 ? 1 : 0);
	if (is_bad) {
		l.at = bad_place(p, where, size);
		l.is_fit = false;
		if (!where)
			memcpy(l.at, what, size < known ? size / 2 / 8 * 8 :
							  known / 2 / 8 * 8);
		return l;
	}
	memset(l.at, 0, size);
	memcpy(l.at, what, size < known ? size : known);
	if (is_dirty)
		l.at[size - 1] = 1;
	return l;
}

static inline int send_letter(struct player *p, uint32_t fdno,
			      const struct letter *l)
{
	int ret = dev_ioctl(fdno_fd(fdno), l->cmd, l->at);

	count(CALLS);
	if (!is_documented(ret))
		foul(p, "command %#lx: error %d", l->cmd, -ret);
	return ret;
}

static inline void judge(struct player *p, uint32_t fdno, int ret,
			 bool is_right)
{
	if (!ret && !is_right)
		foul(p, "fdno %u: done, though it is not right", fdno);
}

/* Sets one word of @what, after the first @from bytes, to any value. */
static inline void mutate(struct dice *d, void *what, size_t from, size_t size)
{
	bool is_to_be = once_in(d, 4);
	uint32_t at = from + 4 * pick(d, (size - from) / 4), odd = odd32(d);

	if (is_to_be)
		memcpy((char *)what + at, &odd, sizeof(odd));
}

/* ---- QUERY and SETUP ---- */

static void do_query(struct player *p, struct dice *d)
{
	struct parklot_query query = { .abi_version = ~0U, .features = ~0ULL };
	uint32_t fdno = pick_fdno(d);
	struct letter l = letter_of(p, d, PARKLOT_IOC_QUERY, &query);
	int ret = send_letter(p, fdno, &l);

	judge(p, fdno, ret, l.is_fit);
	if (!fdno && l.is_fit && ret)
		foul(p, "error %d", -ret);
	if (ret)
		return;
	memcpy(&query, l.at, sizeof(query));
	if (query.abi_version != PARKLOT_ABI_VERSION ||
	    query.max_lots != PARKLOT_MAX_LOTS ||
	    query.max_workers != PARKLOT_MAX_WORKERS ||
	    query.max_batch != PARKLOT_MAX_BATCH || query.features >> 3)
		foul(p, "QUERY says something else");
}

static inline bool setup_is_right(const struct parklot_setup *s)
{
	return s->nr_lots && s->nr_lots <= PARKLOT_MAX_LOTS &&
	       s->nr_workers <= PARKLOT_MAX_WORKERS && !s->flags &&
	       !s->reserved;
}

static inline uint32_t area_size(uint32_t nr_lines)
{
	uint32_t page = sysconf(_SC_PAGESIZE);

	return (nr_lines * PARKLOT_LINE + page - 1) / page * page;
}

static void do_setup(struct player *p, struct dice *d)
{
	struct parklot_setup s = {
		.nr_lots = 1 + around(d, 8),
		.nr_workers = once_in(d, 2) ? around(d, NR_WORKERS) : 0,
	};
	uint32_t fdno = pick_fdno(d);
	struct letter l;
	int ret;

	mutate(d, &s, 0, sizeof(s));
	l = letter_of(p, d, PARKLOT_IOC_SETUP, &s);
	ret = send_letter(p, fdno, &l);
	judge(p, fdno, ret, fdno && l.is_fit && setup_is_right(&s));
	if (ret)
		return;
	memcpy(&s, l.at, sizeof(s));
	/* A crew has a line for each processor besides. */
	if (s.counters_size < area_size(1 + s.nr_lots + !!s.nr_workers) ||
	    (!s.nr_workers && s.counters_size != area_size(1 + s.nr_lots)) ||
	    s.words_size != area_size(1 + s.nr_lots + s.nr_workers))
		foul(p, "areas of %u and %u bytes", s.counters_size,
		     s.words_size);
}

/* ---- PARK ---- */

static inline bool park_is_right(const struct parklot_park *park,
				 uint32_t nr_lots)
{
	return park->lot < nr_lots && !park->flags &&
	       (park->pollfd == -1 ? !park->poll_events :
		park->poll_events <= 0xffff);
}

static inline uint64_t odd_deadline(struct dice *d)
{
	uint32_t how = pick(d, 16), ns = pick(d, 300000);
	uint64_t odd = (uint64_t)odd32(d) << 32 | odd32(d);

	if (how < 3)
		return PARKLOT_FOREVER;
	if (how < 5)
		return how;
	return how == 5 ? odd : now_ns() + ns;
}

static inline int odd_pollfd(struct player *p, struct dice *d)
{
	uint32_t how = pick(d, 24), fdno = pick(d, NR_FDS), odd = odd32(d);

	switch (how) {
	case 0:
		return fdno_fd(fdno);
	case 1:
		return odd;
	case 2:
		return p->team->post;
	case 3 ... 6:
		return p->team->bell;
	default:
		return -1;
	}
}

/* The value of the word is not drawn, but a thread that parks on it waits. */
static inline struct parklot_park park_of(struct player *p, struct dice *d)
{
	uint32_t lot = around(d, nr_home_lots(p)), seq = odd32(d);
	struct parklot_park park = {
		.lot = lot, .deadline_ns = odd_deadline(d),
		.pollfd = odd_pollfd(p, d), .reason = odd32(d),
	};
	uint32_t events = odd32(d);
	bool is_odd_seq = once_in(d, 8);

	park.poll_events = park.pollfd == -1 ? 0 : events & 0x201f;
	park.expected_seq = is_odd_seq || lot >= nr_home_lots(p) ? seq :
			    seq_read(&p->team->home, lot);
	mutate(d, &park, 0, sizeof(park));
	return park;
}

/*
 * A sleep ends by the last close in the sleeper's table of descriptors, so
 * never at home. @ended is the number of closes before the sleep began. A close
 * in the table of a child does not count, even if the child shares memory.
 */
static inline void check_interrupt(struct player *p, uint32_t fdno,
				   unsigned long ended)
{
	if (!fdno || is_without_close(p->team, ended))
		foul(p, "fdno %u: interrupted, and no last close", fdno);
}

static inline void check_reason(struct player *p, uint32_t reason,
				const struct parklot_park *park)
{
	uint64_t now = now_ns();

	count(PARKS);
	if (!is_reason(reason))
		foul(p, "reason %u", reason);
	if (reason == PARKLOT_WOKEN)
		atomic_fetch_add(&p->team->seen, 1);
	if (reason == PARKLOT_POLLED && park->pollfd == -1)
		foul(p, "polled, but for nothing");
	if (reason == PARKLOT_TIMEDOUT && park->deadline_ns > now)
		foul(p, "timed out %llu ns before the time",
		     (unsigned long long)(park->deadline_ns - now));
}

static void do_park(struct player *p, struct dice *d)
{
	uint32_t fdno = pick_fdno(d);
	struct parklot_park park = park_of(p, d), after;
	struct letter l = letter_of(p, d, PARKLOT_IOC_PARK, &park);
	bool is_right = l.is_fit && park_is_right(&park, nr_lots_of(p, fdno));
	unsigned long ended = closes_ended(p->team);
	int ret = send_letter(p, fdno, &l);

	judge(p, fdno, ret, is_right);
	if (!fdno && is_right && park.pollfd == -1 && ret && ret != -EINTR)
		foul(p, "error %d", -ret);
	if (ret)
		return;
	memcpy(&after, l.at, sizeof(after));
	check_reason(p, after.reason, &park);
	if (after.reason == PARKLOT_INTERRUPTED)
		check_interrupt(p, fdno, ended);
}

/* ---- WAKE ---- */

#define NR_ENTRIES	(PARKLOT_MAX_BATCH + 1)

static inline struct parklot_wake_entry *entries_of(struct player *p)
{
	return (void *)(p->paper + PAPER_SIZE / 2);
}

static inline void write_entries(struct player *p, struct dice *d, uint32_t nr)
{
	struct parklot_wake_entry *entry = entries_of(p);
	uint32_t i;

	for (i = 0; i < nr && i < NR_ENTRIES; i++) {
		entry[i] = (struct parklot_wake_entry){
			.lot = around(d, nr_home_lots(p)), .nr = around(d, 4),
			.woken = ~0U,
		};
		if (once_in(d, 64))
			entry[i].reserved = odd32(d);
	}
}

static inline struct parklot_wake wake_of(struct player *p, struct dice *d,
					  bool *is_fit)
{
	uint32_t how = pick(d, 32), few = pick(d, 4), odd = odd32(d);
	struct parklot_wake wake = {
		.nr_entries = how < 4 ? odd : how < 8 ? odd % 65 : few,
		.limit = once_in(d, 2) ? ~0U : around(d, 8), .woken = ~0U,
	};
	uint32_t where = pick(d, 32);

	mutate(d, &wake, offsetof(struct parklot_wake, nr_entries),
	       sizeof(wake));
	write_entries(p, d, wake.nr_entries);
	*is_fit = where > 3 || !wake.nr_entries;
	wake.entries = (uintptr_t)(where > 3 ? (char *)entries_of(p) :
		bad_place(p, where, 16));
	return wake;
}

static inline bool wake_is_right(struct player *p, uint32_t nr_lots,
				 const struct parklot_wake *wake,
				 uint32_t flags)
{
	const struct parklot_wake_entry *entry = entries_of(p);
	uint32_t i;

	if (wake->flags & ~flags || wake->nr_entries > PARKLOT_MAX_BATCH)
		return false;
	for (i = 0; i < wake->nr_entries; i++)
		if (entry[i].lot >= nr_lots || entry[i].reserved)
			return false;
	return true;
}

static inline void check_woken(struct player *p,
			       const struct parklot_wake *wake)
{
	const struct parklot_wake_entry *entry = entries_of(p);
	uint64_t sum = 0;
	uint32_t i;

	count(WAKES);
	for (i = 0; i < wake->nr_entries; i++) {
		sum += entry[i].woken;
		if (entry[i].woken > entry[i].nr)
			foul(p, "%u woken of %u", entry[i].woken, entry[i].nr);
	}
	if (sum != wake->woken || sum > wake->limit)
		foul(p, "%llu woken, says %u, limit %u",
		     (unsigned long long)sum, wake->woken, wake->limit);
	atomic_fetch_add(&p->team->said, wake->woken);
}

static void do_wake(struct player *p, struct dice *d)
{
	bool is_fit, is_right;
	uint32_t fdno = pick_fdno(d);
	struct parklot_wake wake = wake_of(p, d, &is_fit);
	struct letter l = letter_of(p, d, PARKLOT_IOC_WAKE, &wake);
	int ret;

	is_right = is_fit && l.is_fit &&
		   wake_is_right(p, nr_lots_of(p, fdno), &wake, 0);
	ret = send_letter(p, fdno, &l);
	judge(p, fdno, ret, is_right);
	if (!fdno && is_right && ret)
		foul(p, "error %d", -ret);
	if (ret)
		return;
	memcpy(&wake, l.at, sizeof(wake));
	check_woken(p, &wake);
}

static void do_wake_park(struct player *p, struct dice *d)
{
	bool is_fit, is_right;
	uint32_t fdno = pick_fdno(d), nr_lots = nr_lots_of(p, fdno);
	struct parklot_wake_park both, after;
	struct letter l;
	int ret;

	both.wake = wake_of(p, d, &is_fit);
	both.park = park_of(p, d);
	if (once_in(d, 4))
		both.wake.flags = PARKLOT_WAKE_HANDOFF;
	l = letter_of(p, d, PARKLOT_IOC_WAKE_PARK, &both);
	is_right = is_fit && l.is_fit && park_is_right(&both.park, nr_lots) &&
		   wake_is_right(p, nr_lots, &both.wake, PARKLOT_WAKE_HANDOFF);
	ret = send_letter(p, fdno, &l);
	judge(p, fdno, ret, is_right);
	if (!fdno && is_right && !both.wake.flags && both.park.pollfd == -1 &&
	    ret)
		foul(p, "error %d", -ret);
	if (ret)
		return;
	memcpy(&after, l.at, sizeof(after));
	check_woken(p, &after.wake);
	check_reason(p, after.park.reason, &both.park);
}

/* ---- the crew ---- */

static void do_crew(struct player *p, struct dice *d)
{
	struct parklot_crew crew = {
		.target = around(d, NR_WORKERS), .stall_ns = pick(d, 100000),
	};
	uint32_t fdno = pick_fdno(d), more = pick(d, 4);
	struct letter l;

	crew.max = crew.target + more;
	mutate(d, &crew, 0, sizeof(crew));
	l = letter_of(p, d, PARKLOT_IOC_CREW, &crew);
	judge(p, fdno, send_letter(p, fdno, &l),
	      l.is_fit && !crew.flags && crew.target <= crew.max);
}

static inline bool worker_is_right(const struct parklot_worker *w,
				   uint32_t fdno)
{
	return !w->flags &&
	       w->slot < (fdno ? PARKLOT_MAX_WORKERS : NR_WORKERS);
}

static void do_join(struct player *p, struct dice *d)
{
	struct parklot_worker w = { .slot = around(d, NR_WORKERS) };
	uint32_t fdno = pick_fdno(d);
	struct letter l;
	int ret;

	mutate(d, &w, 0, sizeof(w));
	l = letter_of(p, d, PARKLOT_IOC_WORKER_JOIN, &w);
	ret = send_letter(p, fdno, &l);
	judge(p, fdno, ret, l.is_fit && worker_is_right(&w, fdno));
	if (ret)
		return;
	if (p->own_slot >= 0)
		foul(p, "joined twice, slots %d and %u", p->own_slot,
		     w.slot);
	if (!fdno)
		p->own_slot = w.slot;
}

static void do_leave(struct player *p, struct dice *d)
{
	uint32_t slot = around(d, NR_WORKERS);
	bool is_own = !once_in(d, 4);
	struct parklot_worker w = { .slot = slot };
	uint32_t fdno = pick_fdno(d);
	struct letter l;
	int ret;

	if (is_own && p->own_slot >= 0)
		w.slot = p->own_slot;
	mutate(d, &w, 0, sizeof(w));
	l = letter_of(p, d, PARKLOT_IOC_WORKER_LEAVE, &w);
	ret = send_letter(p, fdno, &l);
	judge(p, fdno, ret, l.is_fit && worker_is_right(&w, fdno));
	if (!ret)
		p->own_slot = -1;
}

/* ---- what is no command ---- */

static inline uint32_t direction_of(uint32_t nr)
{
	if (nr == _IOC_NR(PARKLOT_IOC_QUERY))
		return _IOC_READ;
	return nr >= _IOC_NR(PARKLOT_IOC_CREW) ? _IOC_WRITE :
						 _IOC_READ | _IOC_WRITE;
}

/* Our magic, with another number or another direction, of any size. */
static void do_unknown(struct player *p, struct dice *d)
{
	uint32_t first = _IOC_NR(PARKLOT_IOC_QUERY);
	uint32_t last = _IOC_NR(PARKLOT_IOC_WORKER_LEAVE);
	bool is_near = once_in(d, 2);
	uint32_t nr = is_near ? first - 1 + pick(d, 10) : pick(d, 256);
	uint32_t fdno = pick_fdno(d), dir = pick(d, 4);
	unsigned long size = pick(d, 1 << _IOC_SIZEBITS);
	struct letter l = {
		.cmd = _IOC(dir, PARKLOT_IOC_MAGIC, nr, size), .at = p->paper,
	};
	int ret;

	if (nr >= first && nr <= last && dir == direction_of(nr))
		l.cmd ^= 1UL << (_IOC_NRSHIFT + 7);
	ret = send_letter(p, fdno, &l);
	if (ret != -ENOTTY && ret != -EBADF)
		foul(p, "command %#lx: error %d", l.cmd, -ret);
}

#endif /* SELFTESTS_FUZZ_CALLS_H */
