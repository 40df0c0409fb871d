/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "rt/config.h"
#include "queue/rt.h"
#include "base/sys.h"
#include "queue/place.h"

#include <signal.h>
#include <string.h>

#define SPIN_US		50
#define SPIN_US_MAX	65536
#define NR_OLD_SIGNALS	32
#define STALL_NS	(10 * 1000 * 1000ULL)

static const size_t default_stack[3] = {
	[PL_STACK_NORMAL]	= 256 << 10,
	[PL_STACK_SMALL]	= 32 << 10,
	[PL_STACK_LARGE]	= 8 << 20,
};

bool pl__opts_copy(void *to, size_t known, const void *from)
{
	size_t size = *(const size_t *)from, i;
	const char *p = from;

	/* Each ends with a whole word, and the first had more than one. */
	if (size <= sizeof(size) || size % sizeof(size) || size > 4096)
		return false;
	for (i = known; i < size; i++)
		if (p[i])
			return false;
	memset(to, 0, known);
	memcpy(to, from, size < known ? size : known);
	return true;
}

static int copy(const struct pl_config *cfg, struct pl_config *out)
{
	memset(out, 0, sizeof(*out));
	if (cfg && !pl__opts_copy(out, sizeof(*out), cfg))
		return -EINVAL;
	out->size = sizeof(*out);
	return 0;
}

static int env_number(const char *name, uint32_t min, uint32_t max,
		      uint32_t *out)
{
	const char *s = getenv(name);
	unsigned long v;
	char *end;

	if (!s || !*s)
		return 0;
	v = strtoul(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || v < min || v > max) {
		fprintf(stderr, "parklot: %s=%s: not a number from %u to %u\n",
			name, s, min, max);
		return -EINVAL;
	}
	*out = (uint32_t)v;
	return 0;
}

static bool is_set(const char *name)
{
	const char *s = getenv(name);

	return s && *s;
}

bool pl__config_backend_is_env(void)
{
	return is_set("PARKLOT_BACKEND");
}

/* Sets *@out to the index of @name's value in @names, which NULL ends. */
static int env_name(const char *name, const char *const *names, uint32_t *out)
{
	const char *s = getenv(name);
	uint32_t i;

	if (!s || !*s)
		return 0;
	for (i = 0; names[i]; i++) {
		if (!strcmp(s, names[i])) {
			*out = i;
			return 0;
		}
	}
	fprintf(stderr, "parklot: %s=%s: not %s", name, s, names[0]);
	for (i = 1; names[i]; i++)
		fprintf(stderr, "%s%s", names[i + 1] ? ", " : " or ", names[i]);
	fprintf(stderr, "\n");
	return -EINVAL;
}

static int env_backend(uint32_t *out)
{
	static const char *const names[] = {
		[PL_BACKEND_AUTO]	= "auto",
		[PL_BACKEND_MODULE]	= "module",
		[PL_BACKEND_FUTEX]	= "futex",
		NULL
	};

	return env_name("PARKLOT_BACKEND", names, out);
}

int pl__config_io(uint32_t *io)
{
	static const char *const names[] = {
		[PL_IO_NONE]	= "auto",
		[PL_IO_URING]	= "uring",
		[PL_IO_POLL]	= "poll",
		NULL
	};

	*io = PL_IO_NONE;
	return env_name("PARKLOT_IO", names, io);
}

int pl__config_wait(uint32_t *wait)
{
	static const char *const names[] = {
		[PL_WAIT_NONE]		= "auto",
		[PL_WAIT_EVENTFD]	= "eventfd",
		[PL_WAIT_FUTEX]		= "futex",
		[PL_WAIT_PARK]		= "park",
		NULL
	};

	*wait = PL_WAIT_NONE;
	return env_name("PARKLOT_WAIT", names, wait);
}

/*
 * False for faults: these come again when the handler returns; and for those
 * between the old ones and SIGRTMIN, which the C library keeps to itself.
 */
static bool may_be_caught(uint32_t sig)
{
	static const uint64_t not = 1ULL << SIGKILL | 1ULL << SIGSTOP |
		1ULL << SIGSEGV | 1ULL << SIGBUS | 1ULL << SIGFPE |
		1ULL << SIGILL | 1ULL << SIGTRAP | 1ULL << SIGABRT |
		1ULL << SIGSYS;

	if (sig >= NR_OLD_SIGNALS)
		return sig >= (uint32_t)SIGRTMIN && sig <= (uint32_t)SIGRTMAX;
	return !sig || !(not >> sig & 1);
}

/* A signal's number, or a name of one that programs leave to such uses. */
static int env_signal(uint32_t *out)
{
	static const struct {
		const char	*name;
		uint32_t	sig;
	} known[] = {
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "QUIT", SIGQUIT },
		{ "HUP", SIGHUP }, { "WINCH", SIGWINCH }, { "PWR", SIGPWR },
	};
	const char *s = getenv("PARKLOT_DUMP_SIGNAL");
	unsigned long v;
	char *end;
	size_t i;

	if (!s || !*s)
		return 0;
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(strncmp(s, "SIG", 3) ? s : s + 3, known[i].name)) {
			*out = known[i].sig;
			return 0;
		}
	}
	v = strtoul(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || v > UINT32_MAX ||
	    !may_be_caught((uint32_t)v)) {
		fprintf(stderr, "parklot: PARKLOT_DUMP_SIGNAL=%s: not a signal that can be caught, by its number or as USR2\n",
			s);
		return -EINVAL;
	}
	*out = (uint32_t)v;
	return 0;
}

/* Microseconds; 0: no worker counts as stalled. */
static int env_stall(uint64_t *ns)
{
	const char *s = getenv("PARKLOT_STALL_US");
	uint32_t us = 0;
	int ret = env_number("PARKLOT_STALL_US", 0, UINT32_MAX, &us);

	if (!ret && s && *s)
		*ns = us ? us * 1000ULL : PL_FOREVER;
	return ret;
}

static int env_elastic(uint32_t *fixed_workers)
{
	uint32_t yes = !*fixed_workers;
	int ret = env_number("PARKLOT_ELASTIC", 0, 1, &yes);

	if (!ret && is_set("PARKLOT_ELASTIC"))
		*fixed_workers = !yes;
	return ret;
}

static bool is_sane(const struct pl_config *c)
{
	return c->nr_workers <= PL_WORKERS_MAX &&
	       c->max_workers <= PL_WORKERS_MAX &&
	       c->nr_lots <= PL__LOTS_MAX &&
	       c->nr_timer_buckets <= PL__TIMER_BUCKETS_MAX &&
	       c->backend <= PL_BACKEND_FUTEX && !c->flags &&
	       may_be_caught(c->dump_signal) && c->pin_workers <= 1 &&
	       c->fixed_workers <= 1 && !c->reserved;
}

uint32_t pl__config_target(uint32_t max_workers)
{
	uint32_t nr = pl__cpus_usable();

	return nr < max_workers ? nr : max_workers;
}

static void set_defaults(struct pl_config *c)
{
	size_t i;

	if (!c->nr_workers)
		c->nr_workers = pl__config_target(c->max_workers ?
						  c->max_workers :
						  PL_WORKERS_MAX);
	if (!c->max_workers)
		c->max_workers = c->nr_workers + 256;
	if (c->max_workers > PL_WORKERS_MAX)
		c->max_workers = PL_WORKERS_MAX;
	if (!c->nr_lots)
		c->nr_lots = 4;
	if (!c->nr_timer_buckets)
		c->nr_timer_buckets = PL__NR_THREAD_BUCKETS +
			(c->max_workers < PL__NR_WORKER_BUCKETS ?
			 c->max_workers : PL__NR_WORKER_BUCKETS);
	if (!c->stall_ns)
		c->stall_ns = STALL_NS;
	if (!c->min_workers)
		c->min_workers = 1;
	for (i = 0; i < ARRAY_SIZE(default_stack); i++)
		if (!c->stack_size[i])
			c->stack_size[i] = default_stack[i];
}

/*
 * More workers are to run, or to be started, than there may be.  A line says so
 * if that is the environment's doing: the program does not know of it.
 */
static int refuse_workers(const struct pl_config *c)
{
	uint32_t least = c->nr_workers > c->min_workers ? c->nr_workers :
							  c->min_workers;

	if (is_set("PARKLOT_MAX_WORKERS"))
		fprintf(stderr, "parklot: PARKLOT_MAX_WORKERS=%u: fewer than the %u workers that are to run\n",
			c->max_workers, least);
	else if (is_set("PARKLOT_WORKERS"))
		fprintf(stderr, "parklot: PARKLOT_WORKERS=%u: more than the %u workers that there may be\n",
			c->nr_workers, c->max_workers);
	return -EINVAL;
}

int pl__config_resolve(const struct pl_config *cfg, struct pl_config *out)
{
	int ret = copy(cfg, out);

	if (!ret)
		ret = env_backend(&out->backend);
	if (!ret)
		ret = env_number("PARKLOT_WORKERS", 1, PL_WORKERS_MAX,
				 &out->nr_workers);
	if (!ret)
		ret = env_number("PARKLOT_MAX_WORKERS", 1, PL_WORKERS_MAX,
				 &out->max_workers);
	if (!ret)
		ret = env_number("PARKLOT_MAX_TASKS", 0, UINT32_MAX,
				 &out->max_tasks);
	if (!ret)
		ret = env_number("PARKLOT_PIN", 0, 1, &out->pin_workers);
	if (!ret)
		ret = env_elastic(&out->fixed_workers);
	if (!ret)
		ret = env_stall(&out->stall_ns);
	if (!ret)
		ret = env_signal(&out->dump_signal);
	if (ret)
		return ret;
	if (!is_sane(out))
		return -EINVAL;
	set_defaults(out);
	if (out->nr_workers > out->max_workers ||
	    out->min_workers > out->max_workers)
		return refuse_workers(out);
	return 0;
}

int pl__config_spin(uint32_t nr_cpus, uint32_t *ns)
{
	uint32_t us = nr_cpus > 1 ? SPIN_US : 0;
	int ret = env_number("PARKLOT_SPIN_US", 0, SPIN_US_MAX, &us);

	*ns = us * 1000;
	return ret;
}

int pl__config_sysmon(bool *has_sysmon)
{
	uint32_t yes = 1;
	int ret = env_number("PARKLOT_WATCH", 0, 1, &yes);

	*has_sysmon = yes;
	return ret;
}

const char *pl_version(void)
{
	return PARKLOT_VERSION;
}

#define CGROUP_ROOT	"/sys/fs/cgroup"

void pl__cpus_limit(struct pl__cpus *cpus, const char *cpu_max)
{
	unsigned long long quota_us, period_us;
	double nr;

	if (sscanf(cpu_max, "%llu %llu", &quota_us, &period_us) != 2 ||
	    !period_us)
		return;
	nr = (double)quota_us / (double)period_us;
	if (nr >= cpus->nr)
		return;
	cpus->nr = nr;
	cpus->period_ns = period_us * 1000;
}

uint32_t pl__cpus_at_a_time(const struct pl__cpus *cpus)
{
	uint32_t nr = (uint32_t)cpus->nr;

	nr += nr < cpus->nr;
	return nr ? nr : 1;
}

/* By one group of the unified hierarchy. */
static void limit_v2(struct pl__cpus *cpus, const char *group)
{
	char path[512], text[64];

	snprintf(path, sizeof(path), CGROUP_ROOT "%s/cpu.max", group);
	if (pl__read_file(path, text, sizeof(text)) > 0)
		pl__cpus_limit(cpus, text);
}

static void limit_v1(struct pl__cpus *cpus, const char *group)
{
	char path[512], quota[32], both[80], period[32];

	snprintf(path, sizeof(path), CGROUP_ROOT "/cpu%s/cpu.cfs_quota_us",
		 group);
	if (pl__read_file(path, quota, sizeof(quota)) <= 0 || *quota == '-')
		return;
	snprintf(path, sizeof(path), CGROUP_ROOT "/cpu%s/cpu.cfs_period_us",
		 group);
	if (pl__read_file(path, period, sizeof(period)) <= 0)
		return;
	snprintf(both, sizeof(both), "%s %s", quota, period);
	pl__cpus_limit(cpus, both);
}

/* By @group, and all groups above it. */
static void limit_up(struct pl__cpus *cpus, char *group,
		     void (*limit)(struct pl__cpus *cpus, const char *group))
{
	char *slash;

	for (;;) {
		limit(cpus, group);
		slash = strrchr(group, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* One line of /proc/self/cgroup: "ID:CONTROLLERS:GROUP". */
static void limit_by_line(struct pl__cpus *cpus, char *line)
{
	char *ctl = strchr(line, ':');
	char *group = ctl ? strchr(ctl + 1, ':') : NULL;

	if (!group || strlen(group) > 256)
		return;
	*group++ = '\0';
	ctl++;
	if (!*ctl)
		limit_up(cpus, group, limit_v2);
	else if (!strcmp(ctl, "cpu") || !strncmp(ctl, "cpu,", 4))
		limit_up(cpus, group, limit_v1);
}

/* The caller may be a worker that is pinned to one. */
static unsigned int nr_allowed(void)
{
	unsigned int nr = pl__pin_nr_cpus();
	struct pl__cpu_set set;

	if (!nr && !pl__affinity_get(&set))
		nr = pl__cpu_set_count(&set);
	return nr ? nr : 1;
}

void pl__cpus_read(struct pl__cpus *cpus)
{
	char text[4096], *line, *save = NULL;

	*cpus = (struct pl__cpus){ .nr = nr_allowed() };
	if (pl__read_file("/proc/self/cgroup", text, sizeof(text)) <= 0)
		return;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		limit_by_line(cpus, line);
}

uint32_t pl__cpus_usable(void)
{
	struct pl__cpus cpus;

	pl__cpus_read(&cpus);
	return pl__cpus_at_a_time(&cpus);
}
