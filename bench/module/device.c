// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * /dev/parklot: parking threads, waking them, and standing in for one that
 * blocks.  Needs the module, and the right to SCHED_FIFO.
 */
#include <fcntl.h>
#include <linux/parklot.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "../lib/parking.h"

#define NR_WORKERS	2

static int fd;
static struct parklot_wake_entry entry[PARKING_LOTS];

static void call(const char *what, unsigned long cmd, void *arg)
{
	if (ioctl(fd, cmd, arg))
		die("%s: %s", what, strerror(errno));
}

static void map_words(size_t size, uint32_t nr_lots)
{
	struct parklot_words *words;
	uint32_t i;

	words = (struct parklot_words *)mmap(NULL, size, PROT_READ | PROT_WRITE,
					     MAP_SHARED, fd, PARKLOT_OFF_WORDS);
	if (words == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	parking_backlog = (_Atomic uint32_t *)&words->backlog;
	for (i = 0; i < nr_lots; i++) {
		parking_word[i] = (_Atomic uint32_t *)&words->lot[i].seq;
		entry[i].lot = i;
		entry[i].nr = 1;
	}
}

static void lots_open(bool has_crew)
{
	struct parklot_setup setup = {
		.nr_lots = PARKING_LOTS,
		.nr_workers = has_crew ? NR_WORKERS : 0,
	};
	struct parklot_crew crew = { .target = 1, .max = NR_WORKERS };

	fd = open("/dev/parklot", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("/dev/parklot: %s", strerror(errno));
	call("SETUP", PARKLOT_IOC_SETUP, &setup);
	map_words(setup.words_size, PARKING_LOTS);
	if (has_crew)
		call("CREW", PARKLOT_IOC_CREW, &crew);
}

static void join(unsigned int slot)
{
	struct parklot_worker worker = { .slot = slot };

	call("WORKER_JOIN", PARKLOT_IOC_WORKER_JOIN, &worker);
}

static struct parklot_park park_in(unsigned int lot, uint32_t seq)
{
	struct parklot_park park = {
		.lot = lot,
		.expected_seq = seq,
		.deadline_ns = PARKLOT_FOREVER,
		.pollfd = -1,
	};

	return park;
}

static void park(unsigned int lot, uint32_t seq)
{
	struct parklot_park p = park_in(lot, seq);

	call("PARK", PARKLOT_IOC_PARK, &p);
}

/* One call for all of them. */
static unsigned int wake(unsigned int nr)
{
	struct parklot_wake w = {
		.entries = (uintptr_t)entry,
		.nr_entries = nr,
		.limit = nr,
	};

	call("WAKE", PARKLOT_IOC_WAKE, &w);
	return w.woken;
}

static void wake_park_by(unsigned int other, unsigned int own, uint32_t seq,
			 uint32_t flags)
{
	struct parklot_wake_park both = {
		.wake = {
			.entries = (uintptr_t)&entry[other],
			.nr_entries = 1,
			.flags = flags,
			.limit = 1,
		},
		.park = park_in(own, seq),
	};

	call("WAKE_PARK", PARKLOT_IOC_WAKE_PARK, &both);
}

static void wake_park(unsigned int other, unsigned int own, uint32_t seq)
{
	wake_park_by(other, own, seq, 0);
}

static void wake_park_here(unsigned int other, unsigned int own, uint32_t seq)
{
	wake_park_by(other, own, seq, PARKLOT_WAKE_HANDOFF);
}

/* The crew sees it. */
static void say_nothing(void)
{
}

static void empty(void)
{
	ioctl(fd, _IO(PARKLOT_IOC_MAGIC, 0));
}

static const struct parking by_device = {
	.open		= lots_open,
	.join		= join,
	.park		= park,
	.wake		= wake,
	.wake_park	= wake_park,
	.before_block	= say_nothing,
	.empty		= empty,
};

static const struct parking by_device_here = {
	.open		= lots_open,
	.park		= park,
	.wake		= wake,
	.wake_park	= wake_park_here,
};

static void wakes(void)
{
	parking_wakes(&by_device);
}

static void round_trips(void)
{
	parking_round_trips(&by_device, "wake_park");
}

static void floor_of_round_trips(void)
{
	parking_floor(&by_device, "wake_park.floor");
}

static void handoffs(void)
{
	struct parklot_query query;

	lots_open(false);
	call("QUERY", PARKLOT_IOC_QUERY, &query);
	close(fd);
	if (query.features & PARKLOT_FEAT_HANDOFF)
		parking_round_trips(&by_device_here, "wake_park.handoff");
}

static void blocks(void)
{
	parking_blocks(&by_device);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "wakes", wakes },
		{ "round_trips", round_trips },
		{ "floor", floor_of_round_trips },
		{ "handoffs", handoffs },
		{ "blocks", blocks },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "device", cases);
}
