/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The runtime: what it starts with, which threads it starts, and that nothing
 * is left when it has stopped.
 */
#include "kselftest_harness.h"

#include "rt.h"
#include "count.h"

#include <sched.h>
#include <sys/syscall.h>

RT_FIXTURE(runtime)

#define DEVICE	"/dev/parklot"

static bool has_device(void)
{
	return !access(DEVICE, R_OK | W_OK);
}

static void clear_env(void)
{
	unsetenv("PARKLOT_BACKEND");
	unsetenv("PARKLOT_IO");
	unsetenv("PARKLOT_WAIT");
	unsetenv("PARKLOT_WORKERS");
	unsetenv("PARKLOT_MAX_WORKERS");
	unsetenv("PARKLOT_SPIN_US");
}

/* ---- configuration ---- */

TEST_F(runtime, second_start_is_ealready)
{
	EXPECT_EQ(0, pl_runtime_start(NULL));
	EXPECT_EQ(-EALREADY, pl_runtime_start(NULL));
	EXPECT_EQ(0, pl_runtime_stop());
	EXPECT_EQ(-EALREADY, pl_runtime_stop());
	EXPECT_EQ(0, pl_runtime_start(NULL));
}

TEST_F(runtime, stop_without_a_start_is_ealready)
{
	EXPECT_EQ(-EALREADY, pl_runtime_stop());
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
}

#define REFUSED(field, value) do { \
	struct pl_config cfg = PL_CONFIG_INIT; \
	cfg.field = value; \
	EXPECT_EQ(-EINVAL, pl_runtime_start(&cfg)) { \
		TH_LOG("%s = %s was accepted", #field, #value); \
		pl_runtime_stop(); \
	} \
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend()); \
} while (0)

TEST_F(runtime, bad_fields_are_refused)
{
	clear_env();
	REFUSED(size, 0);
	REFUSED(size, sizeof(size_t));
	REFUSED(size, sizeof(struct pl_config) - 1);
	REFUSED(size, SIZE_MAX);
	REFUSED(nr_workers, UINT32_MAX);
	REFUSED(max_workers, UINT32_MAX);
	REFUSED(nr_lots, 1025);
	REFUSED(nr_timer_buckets, 1025);
	REFUSED(backend, 3);
	REFUSED(flags, 1);
	REFUSED(flags, 0x80000000);
	REFUSED(dump_signal, 65);
	REFUSED(dump_signal, 32);
	REFUSED(dump_signal, SIGRTMIN - 1);
	REFUSED(dump_signal, SIGKILL);
	REFUSED(dump_signal, SIGSEGV);
	REFUSED(stack_size[PL_STACK_NORMAL], 1);
	REFUSED(stack_size[PL_STACK_SMALL], 4096);
	REFUSED(stack_size[PL_STACK_LARGE], SIZE_MAX);
	REFUSED(min_workers, UINT32_MAX);
	REFUSED(fixed_workers, 2);
	REFUSED(pin_workers, 2);
	REFUSED(reserved, 1);
	EXPECT_EQ(0, nr_threads_named("pl-"));
	EXPECT_EQ(0, pl_runtime_start(NULL));
}

TEST_F(runtime, contradicting_fields_are_refused)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	clear_env();
	cfg.nr_workers = 4;
	cfg.max_workers = 3;
	EXPECT_EQ(-EINVAL, pl_runtime_start(&cfg));
	cfg.max_workers = 4;
	cfg.min_workers = 5;
	EXPECT_EQ(-EINVAL, pl_runtime_start(&cfg));
	cfg.min_workers = 4;
	EXPECT_EQ(0, pl_runtime_start(&cfg));
	EXPECT_EQ(4, rt_stat().workers);
}

/* Fewer than there are CPUs, on a machine with more than one. */
TEST_F(runtime, default_target_is_within_the_maximum)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	clear_env();
	cfg.max_workers = 1;
	EXPECT_EQ(0, pl_runtime_start(&cfg));
	EXPECT_EQ(0, pl_runtime_set_workers(0));
	run_in_task(count, NULL);
	EXPECT_EQ(1, nr_ran);
	EXPECT_EQ(0, pl_runtime_stop());
	setenv("PARKLOT_MAX_WORKERS", "1", 1);
	EXPECT_EQ(0, pl_runtime_start(NULL));
}

TEST_F(runtime, larger_configuration_is_accepted)
{
	struct {
		struct pl_config	cfg;
		uint64_t		later[8];
	} big = { .cfg.size = sizeof(big) };

	EXPECT_EQ(0, pl_runtime_start(&big.cfg));
	EXPECT_EQ(0, pl_runtime_stop());
	/* What we do not know cannot be done, and must not be ignored. */
	big.later[7] = 1;
	EXPECT_EQ(-EINVAL, pl_runtime_start(&big.cfg));
}

TEST_F(runtime, extreme_values_are_accepted)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	clear_env();
	cfg.nr_workers = cfg.max_workers = 1;
	cfg.nr_lots = cfg.nr_timer_buckets = 1;
	EXPECT_EQ(0, pl_runtime_start(&cfg));
	run_in_task(count, NULL);
	EXPECT_EQ(0, pl_runtime_stop());
	cfg.nr_workers = 64;
	cfg.max_workers = 65536;
	cfg.nr_lots = cfg.nr_timer_buckets = 1024;
	EXPECT_EQ(0, pl_runtime_start(&cfg));
	run_in_task(count, NULL);
	EXPECT_EQ(2, nr_ran);
}

TEST_F(runtime, environment_overrides_the_configuration)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	clear_env();
	cfg.nr_workers = 70000;
	cfg.max_workers = 2;
	setenv("PARKLOT_WORKERS", "3", 1);
	setenv("PARKLOT_MAX_WORKERS", "5", 1);
	cfg.min_workers = 5;
	EXPECT_EQ(0, pl_runtime_start(&cfg));
	EXPECT_EQ(5, rt_stat().workers);
	EXPECT_EQ(0, pl_runtime_stop());
	setenv("PARKLOT_MAX_WORKERS", "4", 1);
	EXPECT_EQ(-EINVAL, pl_runtime_start(&cfg));
	setenv("PARKLOT_MAX_WORKERS", "2", 1);
	EXPECT_EQ(-EINVAL, pl_runtime_start(NULL));
}

/* Points stderr at a file for a call; what it said, in @text. */
static int start_and_hear(const struct pl_config *cfg, char *text, size_t size)
{
	int ret, fd = memfd_create("stderr", 0), old = dup(STDERR_FILENO);
	ssize_t n;

	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	ret = pl_runtime_start(cfg);
	fflush(stderr);
	dup2(old, STDERR_FILENO);
	n = pread(fd, text, size - 1, 0);
	text[n < 0 ? 0 : n] = '\0';
	close(old);
	close(fd);
	return ret;
}

TEST_F(runtime, bad_values_in_the_environment_are_refused)
{
	static const char *const names[] = {
		"PARKLOT_WORKERS", "PARKLOT_MAX_WORKERS", "PARKLOT_BACKEND",
		"PARKLOT_SPIN_US", "PARKLOT_WATCH", "PARKLOT_IO",
		"PARKLOT_WAIT",
	};
	static const char *const bad[] = {
		"x", "-1", "0", "1x", " 1", "99999999999999999999", "65537",
		"Module", "futexx",
	};
	char text[1024];
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		for (k = 0; k < ARRAY_SIZE(bad); k++) {
			/* Not to spin, or to watch, makes sense. */
			if (!strcmp(bad[k], "0") && i >= 3)
				continue;
			clear_env();
			setenv(names[i], bad[k], 1);
			EXPECT_EQ(-EINVAL, start_and_hear(NULL, text,
							  sizeof(text)));
			EXPECT_NE(NULL, strstr(text, names[i]));
		}
		EXPECT_EQ(-EINVAL, pl_spawn(NULL, count, NULL, NULL));
		setenv(names[i], "", 1);
		EXPECT_EQ(0, pl_runtime_start(NULL));
		EXPECT_EQ(0, pl_runtime_stop());
	}
	EXPECT_EQ(0, nr_ran);
}

/* PARKLOT_@name=@value does not go with @cfg, of which it says @said. */
static void expect_misfit(const struct pl_config *cfg, const char *name,
			  const char *value, const char *said)
{
	char text[1024];

	clear_env();
	setenv(name, value, 1);
	EXPECT_EQ(-EINVAL, start_and_hear(cfg, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, name));
	EXPECT_NE(NULL, strstr(text, said));
	EXPECT_NE(NULL, strchr(text, '\n'));
}

TEST_F(runtime, environment_that_does_not_fit_the_configuration_says_why)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	char text[1024];

	cfg.nr_workers = 4;
	expect_misfit(&cfg, "PARKLOT_MAX_WORKERS", "3", "4 workers");
	cfg.nr_workers = 1;
	cfg.min_workers = 6;
	expect_misfit(&cfg, "PARKLOT_MAX_WORKERS", "5", "6 workers");
	cfg.min_workers = 0;
	cfg.max_workers = 2;
	expect_misfit(&cfg, "PARKLOT_WORKERS", "3", "2 workers");
	/* What the program itself says it learns from the error. */
	clear_env();
	cfg.nr_workers = 3;
	EXPECT_EQ(-EINVAL, start_and_hear(&cfg, text, sizeof(text)));
	EXPECT_STREQ("", text);
}

static void expect_no_such_wait(const char *way)
{
	char text[1024];

	setenv("PARKLOT_WAIT", way, 1);
	EXPECT_EQ(-EOPNOTSUPP, start_and_hear(NULL, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, "PARKLOT_WAIT="));
	EXPECT_NE(NULL, strstr(text, way));
}

TEST_F(runtime, unavailable_wait_mode_is_refused)
{
	clear_env();
	setenv("PARKLOT_BACKEND", "futex", 1);
	expect_no_such_wait("park");
	clear_env();
	setenv("PARKLOT_IO", "poll", 1);
	expect_no_such_wait("futex");
	setenv("PARKLOT_WAIT", "eventfd", 1);
	EXPECT_EQ(0, pl_runtime_start(NULL));
}

/* ---- back ends ---- */

static void check_backend(const struct pl_config *cfg, enum pl_backend expected)
{
	char text[1024];

	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());
	EXPECT_EQ(0, start_and_hear(cfg, text, sizeof(text)));
	EXPECT_STREQ("", text);
	EXPECT_EQ(expected, pl_runtime_backend());
	EXPECT_EQ(expected, rt_stat().backend);
	run_in_task(count, NULL);
	EXPECT_EQ(0, pl_runtime_stop());
}

TEST_F(runtime, requested_back_end_is_used)
{
	enum pl_backend best = has_device() ? PL_BACKEND_MODULE :
					      PL_BACKEND_FUTEX;
	struct pl_config cfg = PL_CONFIG_INIT;

	clear_env();
	check_backend(NULL, best);
	check_backend(&cfg, best);
	cfg.backend = PL_BACKEND_FUTEX;
	check_backend(&cfg, PL_BACKEND_FUTEX);
	setenv("PARKLOT_BACKEND", "auto", 1);
	check_backend(&cfg, best);
	cfg.backend = PL_BACKEND_AUTO;
	setenv("PARKLOT_BACKEND", "futex", 1);
	check_backend(&cfg, PL_BACKEND_FUTEX);
	cfg.backend = PL_BACKEND_MODULE;
	check_backend(&cfg, PL_BACKEND_FUTEX);
	check_backend(NULL, PL_BACKEND_FUTEX);
}

TEST_F(runtime, requested_module_is_used)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	if (!has_device())
		SKIP(return, "no " DEVICE);
	clear_env();
	cfg.backend = PL_BACKEND_MODULE;
	check_backend(&cfg, PL_BACKEND_MODULE);
	cfg.backend = PL_BACKEND_FUTEX;
	setenv("PARKLOT_BACKEND", "module", 1);
	check_backend(&cfg, PL_BACKEND_MODULE);
	check_backend(NULL, PL_BACKEND_MODULE);
}

TEST_F(runtime, requested_module_that_is_missing_is_an_error)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	char text[1024];

	if (has_device())
		SKIP(return, "there is a " DEVICE);
	clear_env();
	cfg.backend = PL_BACKEND_MODULE;
	EXPECT_EQ(-ENODEV, pl_runtime_start(&cfg));
	EXPECT_EQ(PL_BACKEND_AUTO, pl_runtime_backend());

	cfg.backend = PL_BACKEND_FUTEX;
	setenv("PARKLOT_BACKEND", "module", 1);
	EXPECT_EQ(-ENODEV, start_and_hear(&cfg, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, "PARKLOT_BACKEND=module"));
	EXPECT_NE(NULL, strstr(text, DEVICE));
	EXPECT_EQ(text + strlen(text) - 1, strchr(text, '\n'));
	EXPECT_EQ(-ENODEV, pl_spawn(NULL, count, NULL, NULL));
	EXPECT_EQ(0, nr_threads_named("pl-"));
	EXPECT_EQ(0, nr_ran);
}

/* ---- workers ---- */

static atomic_int nr_at_once, most_at_once, may_go;

static void stay_busy(void *arg)
{
	int nr = atomic_fetch_add(&nr_at_once, 1) + 1, most;

	most = atomic_load(&most_at_once);
	while (most < nr &&
	       !atomic_compare_exchange_weak(&most_at_once, &most, nr))
		;
	EXPECT_TRUE(UNTIL_BUSY(may_go || nr_at_once >= (int)(uintptr_t)arg));
	may_go = 1;
	sched_yield();
	atomic_fetch_sub(&nr_at_once, 1);
	atomic_fetch_add(&nr_ran, 1);
}

TEST_F(runtime, workers_start_on_demand_up_to_the_target)
{
	int i;

	start_with(4, 0);
	EXPECT_EQ(1, rt_stat().workers);
	run_in_task(count, NULL);
	/* Each is held until four run at a time. */
	for (i = 0; i < 200; i++)
		spawn(stay_busy, (void *)4);
	EXPECT_TRUE(UNTIL(nr_ran == 201));
	expect_workers(4);
	EXPECT_LE(4, most_at_once);
	if (!rt_stat().blocks && !rt_stat().stalls && !rt_stat().spares)
		EXPECT_EQ(4, most_at_once);
}

TEST_TIMED(busy_worker_is_enough_for_one_task,
	   "counts what the scheduler did meanwhile")
TEST_F(runtime, busy_worker_is_enough_for_one_task)
{
	int i;

	start_with(16, 0);
	ASSERT_TRUE(UNTIL(rt_stat().parks));
	for (i = 0; i < 100; i++) {
		run_in_task(count, NULL);
		ASSERT_TRUE(UNTIL(is_all_parked()));
	}
	/*
	 * It may be seen on its way to sleep, and another is started; now and
	 * then, or often if it is delayed there, but not each time.
	 */
	EXPECT_GE(RT_INJECT ? 16 : 4, rt_stat().workers);
}

TEST_F(runtime, min_workers_are_started_at_once)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	clear_env();
	cfg.nr_workers = cfg.min_workers = 3;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	EXPECT_EQ(3, rt_stat().workers);
	EXPECT_TRUE(UNTIL(nr_threads_named("pl-") ==
			  3 + 1 + rt_has_sysmon()));
}

static void spin_until_two(void *arg)
{
	atomic_fetch_add(&nr_at_once, 1);
	ASSERT_TRUE(UNTIL_BUSY(nr_at_once == 2));
}

static void run_two(void)
{
	pl_task_t t[2];

	nr_at_once = 0;
	t[0] = spawn(spin_until_two, NULL);
	t[1] = spawn(spin_until_two, NULL);
	ASSERT_EQ(0, pl_join(t[0]));
	ASSERT_EQ(0, pl_join(t[1]));
}

TEST_TIMED(target_is_the_number_of_allowed_cpus,
	   "needs two processors")
TEST_F(runtime, target_is_the_number_of_allowed_cpus)
{
	clear_env();
	NEEDS_CPUS();
	run_two();
	if (!rt_stat().blocks && !rt_stat().stalls)
		EXPECT_GE(pl__cpus_usable(), rt_stat().workers);
}

TEST_F(runtime, target_is_one_on_one_cpu)
{
	int i;

	clear_env();
	bind_to_cpu(sched_getcpu());
	for (i = 0; i < 100; i++)
		spawn(stay_busy, (void *)1);
	EXPECT_TRUE(UNTIL(nr_ran == 100));
	expect_workers(1);
	if (!rt_stat().blocks && !rt_stat().stalls)
		EXPECT_EQ(1, most_at_once);
}

/* ---- threads ---- */

static __thread bool is_hooked;
static atomic_int nr_hooks;

static void __attribute__((noinline)) hook(void *arg)
{
	EXPECT_EQ(&nr_hooks, arg);
	EXPECT_FALSE(is_hooked);
	is_hooked = true;
	atomic_fetch_add(&nr_hooks, 1);
}

static bool __attribute__((noinline)) was_hooked(void)
{
	__asm__ volatile("" ::: "memory");
	return is_hooked;
}

static void check_hooked(void *arg)
{
	EXPECT_TRUE(was_hooked());
	atomic_fetch_add(&nr_ran, 1);
}

TEST_F(runtime, worker_start_is_called_first_in_each_thread)
{
	struct pl_config cfg = PL_CONFIG_INIT;
	int i, nr_workers;

	clear_env();
	cfg.nr_workers = 4;
	cfg.worker_start = hook;
	cfg.worker_start_arg = &nr_hooks;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	ASSERT_EQ(0, pl_timer_add(NULL, 0, check_hooked, NULL));
	for (i = 0; i < 100; i++) {
		spawn(stay_busy, (void *)4);
		spawn(check_hooked, NULL);
		spawn_as(PL_STACK_WORKER, check_hooked, NULL);
	}
	EXPECT_TRUE(UNTIL(nr_ran == 301));
	expect_workers(4);
	nr_workers = (int)rt_stat().workers;
	EXPECT_EQ(0, pl_runtime_stop());
	/* Another may have been started meanwhile. */
	EXPECT_LE(nr_workers + 1, nr_hooks);
	EXPECT_FALSE(was_hooked());
}

TEST_F(runtime, threads_have_names)
{
	struct pl_config cfg = PL_CONFIG_INIT;

	clear_env();
	cfg.nr_workers = cfg.min_workers = 3;
	ASSERT_EQ(0, pl_runtime_start(&cfg));
	EXPECT_TRUE(UNTIL(nr_threads_named("pl-worker/") == 3));
	EXPECT_TRUE(UNTIL(nr_threads_named("pl-worker/2\n") == 1));
	EXPECT_TRUE(UNTIL(nr_threads_named("pl-timer") == 1));
	EXPECT_TRUE(UNTIL(nr_threads_named("pl-sysmon") == rt_has_sysmon()));
}

static atomic_int nr_signals;

static void on_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&nr_signals, 1);
}

/* Sent while only we block them, they must stay pending. */
TEST_F(runtime, threads_block_signals)
{
	static const int sigs[] = { SIGUSR1, SIGALRM, SIGTERM, SIGIO };
	sigset_t set;
	size_t i;

	start_with(2, 0);
	run_two();
	sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(sigs); i++) {
		sigaddset(&set, sigs[i]);
		signal(sigs[i], on_signal);
	}
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < ARRAY_SIZE(sigs); i++)
		kill(getpid(), sigs[i]);

	/* A thread that does not block them takes them as it runs. */
	run_two();
	ASSERT_EQ(0, pl_timer_add(NULL, 0, count, NULL));
	EXPECT_TRUE(UNTIL(nr_ran == 1));
	EXPECT_EQ(0, nr_signals);
	sigpending(&set);
	for (i = 0; i < ARRAY_SIZE(sigs); i++)
		EXPECT_EQ(1, sigismember(&set, sigs[i]));
}

TEST_HARNESS_MAIN
