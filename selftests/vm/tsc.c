// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints how fast this machine's time stamp counter is, in kHz, which is the
 * guest's too, since QEMU passes it on; nothing where it has none. The span is
 * held against a clock that is read before and after the counter, as often as
 * it takes for that to be short.
 */
#include <stdio.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>

#define SPAN_NS		200000000ULL
#define NR_TRIES	100

struct reading {
	unsigned long long ns, ticks;
};

static unsigned long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* The best of many: the reading without preemption in between. */
static struct reading read_both(void)
{
	unsigned long long before, ticks, after, best = ~0ULL;
	struct reading r = { 0, 0 };
	int i;

	for (i = 0; i < NR_TRIES; i++) {
		before = now_ns();
		ticks = __rdtsc();
		after = now_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		r = (struct reading){ before + best / 2, ticks };
	}
	return r;
}

int main(void)
{
	struct timespec span = { .tv_nsec = SPAN_NS };
	struct reading first = read_both(), last;

	nanosleep(&span, NULL);
	last = read_both();
	printf("%llu\n", (last.ticks - first.ticks) * 1000000 /
			 (last.ns - first.ns));
	return 0;
}
#else
int main(void)
{
	return 0;
}
#endif
