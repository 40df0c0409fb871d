/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sim/device_impl.h"
#include "sim/io.h"
#include "sim/state.h"
#include "sim/uring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/parklot.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct pl__sim_space pl__sim_spaces[PL__SIM_SPACES];

static bool has_device;

void pl__sim_device_begin(void)
{
	const char *setting = getenv("SIM_DEVICE");

	has_device = setting && strcmp(setting, "0");
}

bool pl__sim_has_device(void)
{
	return has_device;
}

/* ---- spaces ---- */

static struct pl__sim_space *free_space(void)
{
	struct pl__sim_space *s;

	for (s = pl__sim_spaces; s < pl__sim_spaces + PL__SIM_SPACES; s++)
		if (!s->is_open && !s->nr_threads)
			return s;
	pl__sim_fail("more than %d descriptors of the device", PL__SIM_SPACES);
}

int pl__sim_device_open(int flags)
{
	struct pl__sim_space *s = free_space();
	struct stat st;
	int fd = memfd_create("parklot", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

	if (fd < 0 || fstat(fd, &st))
		return -1;
	*s = (struct pl__sim_space){
		.is_open = true, .dev = st.st_dev, .ino = st.st_ino,
		.call_ns = PL__SIM_FOREVER,
	};
	return fd;
}

/* errno stays as it is. */
static bool is_of(int fd, const struct pl__sim_space *s)
{
	int now = errno;
	struct stat st;
	bool is;

	is = !fstat(fd, &st) && st.st_dev == s->dev && st.st_ino == s->ino;
	errno = now;
	return is;
}

struct pl__sim_space *pl__sim_device_at(int fd)
{
	struct pl__sim_space *s;

	pl__sim_for_each_space(s)
		if (is_of(fd, s))
			return s;
	return NULL;
}

/* Its memory stays where the program has mapped it. */
void pl__sim_space_free(struct pl__sim_space *s)
{
	if (s->is_open || s->nr_threads || !s->counters)
		return;
	munmap(s->counters, s->counters_size);
	munmap(s->words, s->words_size);
	free(s->workers);
	s->counters = NULL;
}

static void *map_area(int fd, size_t size, off_t at)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);

	return p == MAP_FAILED ? NULL : p;
}

static int setup(struct pl__sim_space *s, int fd, struct parklot_setup *p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!p->nr_lots || p->nr_lots > PARKLOT_MAX_LOTS ||
	    p->nr_workers > PARKLOT_MAX_WORKERS || p->flags || p->reserved)
		return -EINVAL;
	if (s->nr_lots)
		return -EBUSY;
	s->counters_size = (PARKLOT_CPU_OFFSET(p->nr_lots, PL__SIM_CPUS_MAX) +
			    page - 1) / page * page;
	s->words_size = (PARKLOT_WORKER_OFFSET(p->nr_lots, p->nr_workers) +
			 page - 1) / page * page;
	if (ftruncate(fd, (off_t)(PARKLOT_OFF_WORDS + s->words_size)))
		return -ENOMEM;
	s->counters = map_area(fd, s->counters_size, PARKLOT_OFF_COUNTERS);
	s->words = map_area(fd, s->words_size, PARKLOT_OFF_WORDS);
	s->workers = calloc(p->nr_workers + 1, sizeof(struct pl__sim_thread *));
	if (!s->counters || !s->words || !s->workers)
		return -ENOMEM;
	s->nr_lots = p->nr_lots;
	s->nr_workers = p->nr_workers;
	p->counters_size = (uint32_t)s->counters_size;
	p->words_size = (uint32_t)s->words_size;
	return 0;
}

/* ---- sleepers ---- */

static void parked_add(struct pl__sim_space *s, uint32_t lot, uint32_t nr)
{
	__atomic_fetch_add(&s->counters->lot[lot].nr_parked, nr,
			   __ATOMIC_SEQ_CST);
}

static void list(struct pl__sim_space *s, struct pl__sim_parked *me)
{
	me->next = s->first;
	s->first = me;
	me->nth = s->nr_parks++;
	parked_add(s, me->lot, 1);
	if (pl__sim_is_member(s, me))
		pl__sim_crew_stops(s, PL__SIM_CREW_PARKED);
}

struct pl__sim_parked *pl__sim_parked_take(struct pl__sim_space *s,
					   struct pl__sim_parked **at,
					   uint32_t reason)
{
	struct pl__sim_parked *taken = *at;

	*at = taken->next;
	taken->reason = reason;
	parked_add(s, taken->lot, UINT32_MAX);
	if (pl__sim_is_member(s, taken))
		pl__sim_crew_goes_on(s, PL__SIM_CREW_PARKED);
	return taken;
}

static void leave(struct pl__sim_space *s, struct pl__sim_parked *me,
		  uint32_t reason)
{
	struct pl__sim_parked **at = &s->first;

	while (*at != me)
		at = &(*at)->next;
	pl__sim_parked_take(s, at, reason);
}

static bool is_readable(struct pl__sim_parked *me)
{
	struct pollfd look = me->poll;

	if (me->poll.fd < 0)
		return false;
	pl__sim_uring_run();
	if (me->seen == pl__sim_io_nr_changes())
		return false;
	me->seen = pl__sim_io_nr_changes();
	pl__sim_uring_show();
	/* The kernel keeps a file that is closed meanwhile. */
	return PL__SIM_REAL(poll)(&look, 1, 0) > 0 &&
	       !(look.revents & POLLNVAL);
}

static bool park_is_over(void *arg)
{
	struct pl__sim_parked *me = arg;

	return me->reason || is_readable(me);
}

/* Why it returns before it sleeps, or 0. */
static uint32_t reason_now(struct pl__sim_space *s, struct pl__sim_parked *me,
			   const struct parklot_park *p)
{
	uint32_t *seq = &s->words->lot[me->lot].seq;

	if (!s->is_open)
		return PARKLOT_INTERRUPTED;
	if (__atomic_load_n(seq, __ATOMIC_SEQ_CST) != p->expected_seq)
		return PARKLOT_CHANGED;
	if (is_readable(me))
		return PARKLOT_POLLED;
	return p->deadline_ns <= pl__sim.now_ns ? PARKLOT_TIMEDOUT : 0;
}

static void sleep_in(struct pl__sim_space *s, struct pl__sim_parked *me,
		     uint64_t deadline_ns)
{
	bool has_file = me->poll.fd >= 0, in_time;

	do {
		in_time = pl__sim_sleep("park", me, has_file ? park_is_over :
				NULL, me, deadline_ns);
		if (!me->reason && in_time && has_file)
			leave(s, me, PARKLOT_POLLED);
		else if (!me->reason && !in_time)
			leave(s, me, PARKLOT_TIMEDOUT);
	} while (!me->reason);
}

/* Once it is listed: until there is a reason to return. */
static void wait_in(struct pl__sim_space *s, struct pl__sim_parked *me,
		    const struct parklot_park *p)
{
	uint32_t now;

	pl__sim_point("parked");
	if (me->reason)
		return;
	now = reason_now(s, me, p);
	/* A signal that does not restart the call. */
	if (!now && pl__sim_one_in(pl__sim.spurious_in))
		now = PARKLOT_INTERRUPTED;
	if (now) {
		leave(s, me, now);
		return;
	}
	if (pl__sim_is_member(s, me))
		pl__sim_crew_check(s);
	sleep_in(s, me, p->deadline_ns);
}

static int check_park(struct pl__sim_space *s, const struct parklot_park *p)
{
	if (p->lot >= s->nr_lots || p->flags || p->poll_events > UINT16_MAX ||
	    (p->pollfd == -1 && p->poll_events))
		return -EINVAL;
	return p->pollfd != -1 && fcntl(p->pollfd, F_GETFD) < 0 ? -EBADF : 0;
}

static int park(struct pl__sim_space *s, struct parklot_park *p)
{
	struct pl__sim_parked me = {
		.thread = pl__sim_me,
		.lot = p->lot,
		.poll = { p->pollfd, (short)p->poll_events, 0 },
		.seen = UINT64_MAX,
	};
	int ret = check_park(s, p);

	if (ret)
		return ret;
	pl__sim_me->is_parking = true;
	list(s, &me);
	wait_in(s, &me, p);
	pl__sim_me->is_parking = false;
	if (me.reason == PARKLOT_INTERRUPTED && s->is_open)
		return -EINTR;
	p->reason = me.reason;
	return 0;
}

/* Unlists up to @nr of a lot, then wakes them; returns how many. */
static uint32_t wake_lot(struct pl__sim_space *s, uint32_t lot, uint32_t nr)
{
	struct pl__sim_parked **at = &s->first, *taken = NULL, **end = &taken;
	struct pl__sim_parked *next;
	uint32_t woken = 0;

	while (*at && woken < nr) {
		if ((*at)->lot != lot) {
			at = &(*at)->next;
			continue;
		}
		*end = pl__sim_parked_take(s, at, PARKLOT_WOKEN);
		end = &(*end)->next;
		*end = NULL;
		woken++;
	}
	/* They stay on their stacks until they run, after this. */
	for (; taken; taken = next) {
		next = taken->next;
		pl__sim_wake(taken, 1);
	}
	return woken;
}

static int wake(struct pl__sim_space *s, struct parklot_wake *p)
{
	struct parklot_wake_entry *e =
		(struct parklot_wake_entry *)(uintptr_t)p->entries;
	uint32_t i;

	if (p->nr_entries > PARKLOT_MAX_BATCH || p->flags)
		return -EINVAL;
	for (i = 0; i < p->nr_entries; i++)
		if (e[i].lot >= s->nr_lots || e[i].reserved)
			return -EINVAL;
	p->woken = 0;
	for (i = 0; i < p->nr_entries; i++) {
		e[i].woken = wake_lot(s, e[i].lot,
				      e[i].nr < p->limit - p->woken ?
				      e[i].nr : p->limit - p->woken);
		p->woken += e[i].woken;
		pl__sim_point("device_woken");
	}
	return 0;
}

/* ---- calls ---- */

static int query(struct parklot_query *p)
{
	*p = (struct parklot_query){
		.abi_version = PARKLOT_ABI_VERSION,
		.max_lots = PARKLOT_MAX_LOTS,
		.max_workers = PARKLOT_MAX_WORKERS,
		.max_batch = PARKLOT_MAX_BATCH,
		.features = PARKLOT_FEAT_CREW | PARKLOT_FEAT_POLLFD,
	};
	return 0;
}

static int wake_park(struct pl__sim_space *s, struct parklot_wake_park *p)
{
	int ret = check_park(s, &p->park);

	if (!ret && p->wake.flags & PARKLOT_WAKE_HANDOFF)
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = wake(s, &p->wake);
	if (!ret)
		ret = park(s, &p->park);
	if (ret != -EINTR)
		return ret;
	p->park.reason = PARKLOT_INTERRUPTED;
	return 0;
}

static int call_of_space(struct pl__sim_space *s, unsigned long cmd, void *arg)
{
	struct parklot_worker *w = arg;

	switch (cmd) {
	case PARKLOT_IOC_PARK:
		return park(s, arg);
	case PARKLOT_IOC_WAKE:
		return wake(s, arg);
	case PARKLOT_IOC_WAKE_PARK:
		return wake_park(s, arg);
	case PARKLOT_IOC_CREW:
		return pl__sim_crew_set(s, arg);
	case PARKLOT_IOC_WORKER_JOIN:
		return pl__sim_crew_join(s, w);
	case PARKLOT_IOC_WORKER_LEAVE:
		return w->flags ? -EINVAL : pl__sim_crew_leave(s, w->slot);
	}
	return -ENOTTY;
}

int pl__sim_device_call(struct pl__sim_space *s, int fd, unsigned long cmd,
			void *arg)
{
	int ret;

	if (cmd == PARKLOT_IOC_QUERY)
		return query(arg);
	if (cmd == PARKLOT_IOC_SETUP)
		return setup(s, fd, arg);
	if (!s->nr_lots)
		return -ENXIO;
	/* It keeps the space, though the last descriptor is closed. */
	s->nr_threads++;
	ret = call_of_space(s, cmd, arg);
	s->nr_threads--;
	pl__sim_space_free(s);
	return ret;
}

/* ---- the last descriptor ---- */

static bool is_left(struct pl__sim_space *s)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	bool is = !dir;

	while (!is && (entry = readdir(dir)))
		is = is_of(atoi(entry->d_name), s);
	if (dir)
		closedir(dir);
	return is;
}

void pl__sim_device_closed(struct pl__sim_space *s)
{
	uint32_t i;

	if (is_left(s))
		return;
	s->is_open = false;
	while (s->first)
		pl__sim_wake(pl__sim_parked_take(s, &s->first,
						 PARKLOT_INTERRUPTED), 1);
	for (i = 0; i < s->nr_workers; i++) {
		if (!s->workers[i])
			continue;
		s->workers[i]->space = NULL;
		s->nr_threads--;
	}
	pl__sim_space_free(s);
}
