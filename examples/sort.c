// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A parallel sort: each half by a task of its own, until it is not worth one
 *
 * Fork and join: what is spawned is joined by the same function, so that its
 * arguments may stand on the stack.  Idle workers steal the oldest, and thus
 * largest, of what waits.
 *
 *	$ sort 1000000
 *	sorted 1000000 numbers
 */
#include "usage.h"

#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So few are sorted before another worker would have begun. */
#define FEW 4096

struct part {
	uint32_t	*numbers;
	uint32_t	*scratch;	/* as many */
	size_t		nr;
};

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The first @half numbers of @p are sorted, and so are the others. */
static void merge(const struct part *p, size_t half)
{
	const uint32_t *a = p->numbers, *b = p->numbers + half;
	const uint32_t *const end_a = b, *const end_b = p->numbers + p->nr;
	uint32_t *out = p->scratch;

	while (a < end_a && b < end_b)
		*out++ = *b < *a ? *b++ : *a++;
	memcpy(out, a, (size_t)(end_a - a) * sizeof(*a));
	out += end_a - a;
	memcpy(out, b, (size_t)(end_b - b) * sizeof(*b));
	memcpy(p->numbers, p->scratch, p->nr * sizeof(*p->numbers));
}

static void sort(void *arg)
{
	const struct part *p = arg;
	const size_t half = p->nr / 2;
	struct part left = { p->numbers, p->scratch, half };
	struct part right = { p->numbers + half, p->scratch + half,
			      p->nr - half };
	pl_task_t task;

	if (p->nr <= FEW) {
		qsort(p->numbers, p->nr, sizeof(*p->numbers), compare);
		return;
	}
	/* Without a task it is done here: later, but as well. */
	if (pl_spawn(&task, sort, &left, NULL)) {
		task = 0;
		sort(&left);
	}
	sort(&right);
	/* Until it has ended, whatever interrupts us: it uses our stack. */
	while (task && pl_join(task))
		pl_yield();
	merge(p, half);
}

static void fill(uint32_t *numbers, size_t nr)
{
	uint32_t x = 2463534242;

	for (; nr; nr--) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		*numbers++ = x;
	}
}

static bool is_sorted(const uint32_t *numbers, size_t nr)
{
	size_t i;

	for (i = 1; i < nr; i++)
		if (numbers[i - 1] > numbers[i])
			return false;
	return true;
}

int main(int argc, char **argv)
{
	char *number = *usage_arguments(argc, argv, 1, "sort [NUMBER]");
	const size_t nr = number ? usage_number("sort", number, 0, UINT32_MAX) :
				   1000000;
	struct part all = { .nr = nr };
	pl_task_t task;

	all.numbers = calloc(nr + 1, sizeof(*all.numbers));
	all.scratch = calloc(nr + 1, sizeof(*all.scratch));
	if (!all.numbers || !all.scratch)
		return 1;
	fill(all.numbers, nr);
	if (pl_spawn(&task, sort, &all, NULL) || pl_join(task))
		return 1;
	if (!is_sorted(all.numbers, nr))
		return 1;
	printf("sorted %zu numbers\n", nr);
	free(all.numbers);
	free(all.scratch);
	return pl_runtime_stop() ? 1 : 0;
}
