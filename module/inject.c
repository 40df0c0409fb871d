// SPDX-License-Identifier: GPL-2.0-only
/* Delays between the steps of a race: debug builds only. */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/jhash.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "inject.h"

/* The longest delay, above which inject_us is cut: a spin occupies a CPU. */
#define PARKLOT_INJECT_MAX_US	2000U

static unsigned int inject_seed = 1;
module_param(inject_seed, uint, 0644);
MODULE_PARM_DESC(inject_seed, "which sequence of delays (debug build)");

static unsigned int inject_us = 20;
module_param(inject_us, uint, 0644);
MODULE_PARM_DESC(inject_us, "longest delay, 0 for none (debug build)");

#define PARKLOT_INJECT_ALL	"all"

static char inject_at[16] = PARKLOT_INJECT_ALL;
module_param_string(inject_at, inject_at, sizeof(inject_at), 0644);
MODULE_PARM_DESC(inject_at, "one point only, or all (debug build)");

static atomic_t parklot_injected = ATOMIC_INIT(0);

/* Delays half of the passages: races need the luck of both sides. */
void parklot_inject(const char *point)
{
	unsigned int us = min(READ_ONCE(inject_us), PARKLOT_INJECT_MAX_US);
	u32 nr = atomic_inc_return(&parklot_injected);
	u32 hash = jhash(point, strlen(point), READ_ONCE(inject_seed) ^ nr);

	if (strcmp(inject_at, PARKLOT_INJECT_ALL) && strcmp(inject_at, point))
		return;
	if (us && hash & 1)
		udelay((hash >> 1) % us + 1);
}
