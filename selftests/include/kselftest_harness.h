/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A test harness with the source interface of the kernel's header of the same
 * name, printing KTAP. In a kernel tree the tests of the device include the
 * kernel's in its place.
 *
 * Each test runs in a process of its own, leader of a process group that the
 * runner kills when the test is over or its time is up. The results are in
 * memory shared with the runner, so that threads, tasks on other stacks and
 * forked children may all use EXPECT_*() and ASSERT_*(); outside a test's body
 * these need its _metadata as an argument.
 *
 * A failed ASSERT_*() ends its process at once, from any thread or stack;
 * FIXTURE_TEARDOWN does not run then. A test that returns without a check or a
 * skip, or that ends by exit(), has failed. A passing test ends by exit(0), so
 * that a sanitizer's report at exit counts as well.
 *
 * Environment: TEST_TIMEOUT_FACTOR=N multiplies each time limit, which are for
 * hangs; kselftest_choice.h has what chooses tests.
 */
#ifndef SELFTESTS_KSELFTEST_HARNESS_H
#define SELFTESTS_KSELFTEST_HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef PL_TEST_COVERAGE
#include "coverage.h"
#endif

/* A check is a for statement, and gcc warns of several on a line. */
#pragma GCC diagnostic ignored "-Wempty-body"
#pragma GCC diagnostic ignored "-Wmisleading-indentation"

#define TEST_TIMEOUT_DEFAULT	30	/* seconds */

/* Results from the processes of a test: shared memory, atomics only. */
struct __test_state {
	int	checked;	/* a check was made */
	int	failed;
	int	skipped;
	pid_t	returned;	/* the process that returned from the body */
	char	reason[256];	/* of a skip */
};

struct __test_variant {
	const char		*name;		/* "" if the fixture has none */
	const void		*data;
	struct __test_variant	*next;
};

struct __test_fixture {
	const char		*name;
	struct __test_variant	*variants;
};

struct __test_metadata {
	const struct __test_fixture *fixture;	/* or NULL */
	const char		*name;
	void			(*fn)(struct __test_metadata *_metadata);
	int			termsig;	/* expected end, or 0 */
	int			timeout;	/* seconds */
	struct __test_state	*state;		/* while it runs */
	const struct __test_variant *variant;	/* while it runs */
	char			title[256];	/* with fixture and variant */
	struct __test_metadata	*next;
};

static struct __test_metadata *__tests, **__tests_tail = &__tests;

static inline void __test_register(struct __test_metadata *t)
{
	*__tests_tail = t;
	__tests_tail = &t->next;
}

static inline void __test_register_variant(struct __test_fixture *f,
					   struct __test_variant *v)
{
	struct __test_variant **tail = &f->variants;

	while (*tail)
		tail = &(*tail)->next;
	*tail = v;
}

static inline const struct __test_variant *
__test_variants(const struct __test_metadata *t)
{
	static const struct __test_variant none = { .name = "" };

	return t->fixture && t->fixture->variants ? t->fixture->variants :
						    &none;
}

/* Each test once for each variant of its fixture. */
#define __for_each_run(t, v) \
	for (t = __tests; t; t = t->next) \
		for (v = __test_variants(t); v; v = v->next)

/* Sets fixture.variant.name; a missing part has no dot. */
static inline void __test_set_variant(struct __test_metadata *t,
				      const struct __test_variant *v)
{
	t->variant = v;
	snprintf(t->title, sizeof(t->title), "%s%s%s%s%s",
		 t->fixture ? t->fixture->name : "", t->fixture ? "." : "",
		 v->name, *v->name ? "." : "", t->name);
}

#define __test_get(field)	__atomic_load_n(&(field), __ATOMIC_SEQ_CST)
#define __test_set(field, v)	__atomic_store_n(&(field), v, __ATOMIC_SEQ_CST)

static inline bool __test_passed(const struct __test_metadata *t)
{
	return !__test_get(t->state->failed);
}

/* Writes each line in one call, so that lines of several threads stay whole. */
static inline void __attribute__((format(printf, 1, 2)))
__test_print(const char *fmt, ...)
{
	char line[1024];
	ssize_t done;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (len > (int)sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	do {
		done = write(STDOUT_FILENO, line, len);
	} while (done < 0 && errno == EINTR);
}

#define TH_LOG(fmt, ...) \
	__test_print("# %s:%d:%s:" fmt, __FILE__, __LINE__, _metadata->name, \
		     ##__VA_ARGS__)

#define SKIP(statement, fmt, ...) do { \
	snprintf(_metadata->state->reason, sizeof(_metadata->state->reason), \
		 fmt, ##__VA_ARGS__); \
	__test_set(_metadata->state->skipped, 1); \
	statement; \
} while (0)

/*
 * Ends the optional block of a failed check; for ASSERT_*(), the process too.
 */
static inline int __test_bail(bool is_assert)
{
	if (is_assert)
		_exit(1);
	return 0;
}

/*
 * Reads the flag first: in the loops of a race a write would cost a cache line.
 */
static inline void __test_checked(struct __test_metadata *t)
{
	if (!__atomic_load_n(&t->state->checked, __ATOMIC_RELAXED))
		__test_set(t->state->checked, 1);
}

static inline const char *
__test_value(char *buf, bool is_signed, unsigned long long value)
{
	snprintf(buf, 32, is_signed ? "%lld" : "%llu", value);
	return buf;
}

/* A value, not an object: without qualifiers, _Atomic and bit fields. */
#define __test_value_of(x)	((void)0, (x))
#define __test_is_signed(var) \
	(!!(((__typeof__(var))(-1)) < (__typeof__(var))1))
#define __test_bits(var)	((unsigned long long)(uintptr_t)(var))

/* Compares as C does; the kernel's callers do not expect -Wsign-compare. */
#define __test_compare(exp, op, seen) __extension__ ({ \
	_Pragma("GCC diagnostic push") \
	_Pragma("GCC diagnostic ignored \"-Wsign-compare\"") \
	bool __ok = (exp) op (seen); \
	_Pragma("GCC diagnostic pop") \
	__ok; \
})

/* One statement; a block may follow, which runs on failure. */
#define __EXPECT(_expected, _expected_str, _seen, _seen_str, _op, _assert) \
	for (int __bad = __extension__ ({ \
		__typeof__(__test_value_of(_expected)) __exp = (_expected); \
		__typeof__(__test_value_of(_seen)) __seen = (_seen); \
		bool __good = __test_compare(__exp, _op, __seen); \
		char __buf[2][32]; \
		__test_checked(_metadata); \
		if (!__good) { \
			__test_set(_metadata->state->failed, 1); \
			TH_LOG("Expected %s (%s) %s %s (%s)", _expected_str, \
			       __test_value(__buf[0], __test_is_signed(__exp), \
					    __test_bits(__exp)), #_op, \
			       _seen_str, \
			       __test_value(__buf[1], \
					    __test_is_signed(__seen), \
					    __test_bits(__seen))); \
		} \
		!__good; \
	}); __bad; __bad = __test_bail(_assert))

#define __EXPECT_STR(_expected, _seen, _op, _assert) \
	for (int __bad = __extension__ ({ \
		const char *__exp = (_expected); \
		const char *__seen = (_seen); \
		bool __good = strcmp(__exp, __seen) _op 0; \
		__test_checked(_metadata); \
		if (!__good) { \
			__test_set(_metadata->state->failed, 1); \
			TH_LOG("Expected '%s' %s '%s'.", __exp, #_op, __seen); \
		} \
		!__good; \
	}); __bad; __bad = __test_bail(_assert))

#define EXPECT_EQ(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, ==, 0)
#define EXPECT_NE(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, !=, 0)
#define EXPECT_LT(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, <, 0)
#define EXPECT_LE(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, <=, 0)
#define EXPECT_GT(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, >, 0)
#define EXPECT_GE(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, >=, 0)
#define EXPECT_NULL(seen)	__EXPECT(NULL, "NULL", seen, #seen, ==, 0)
#define EXPECT_TRUE(seen)	__EXPECT(0, "0", seen, #seen, !=, 0)
#define EXPECT_FALSE(seen)	__EXPECT(0, "0", seen, #seen, ==, 0)
#define EXPECT_STREQ(expected, seen)	__EXPECT_STR(expected, seen, ==, 0)
#define EXPECT_STRNE(expected, seen)	__EXPECT_STR(expected, seen, !=, 0)

#define ASSERT_EQ(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, ==, 1)
#define ASSERT_NE(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, !=, 1)
#define ASSERT_LT(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, <, 1)
#define ASSERT_LE(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, <=, 1)
#define ASSERT_GT(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, >, 1)
#define ASSERT_GE(expected, seen) \
	__EXPECT(expected, #expected, seen, #seen, >=, 1)
#define ASSERT_NULL(seen)	__EXPECT(NULL, "NULL", seen, #seen, ==, 1)
#define ASSERT_TRUE(seen)	__EXPECT(0, "0", seen, #seen, !=, 1)
#define ASSERT_FALSE(seen)	__EXPECT(0, "0", seen, #seen, ==, 1)
#define ASSERT_STREQ(expected, seen)	__EXPECT_STR(expected, seen, ==, 1)
#define ASSERT_STRNE(expected, seen)	__EXPECT_STR(expected, seen, !=, 1)

/* The body follows each of these macros. */
#define __TEST(_fixture, _name, _id, _call, _sig, _timeout) \
	static void __run_##_id(struct __test_metadata *_metadata) \
	{ \
		_call; \
	} \
	static struct __test_metadata __meta_##_id = { \
		.fixture = _fixture, .name = #_name, .fn = __run_##_id, \
		.termsig = _sig, .timeout = _timeout, \
	}; \
	static void __attribute__((constructor)) __register_##_id(void) \
	{ \
		__test_register(&__meta_##_id); \
	}

#define TEST(name)		TEST_SIGNAL(name, 0)
#define TEST_SIGNAL(name, sig) \
	static void name(struct __test_metadata *_metadata); \
	__TEST(NULL, name, name, name(_metadata), sig, TEST_TIMEOUT_DEFAULT) \
	static void name(struct __test_metadata __attribute__((unused)) \
			 *_metadata)

#define FIXTURE_DATA(fixture)	struct __fixture_##fixture
#define FIXTURE(fixture) \
	FIXTURE_VARIANT(fixture); \
	static struct __test_fixture __attribute__((unused)) \
	__of_##fixture = { .name = #fixture }; \
	FIXTURE_DATA(fixture)
#define FIXTURE_VARIANT(fixture) struct __variant_##fixture
#define FIXTURE_VARIANT_ADD(fixture, variant) \
	static const FIXTURE_VARIANT(fixture) __data_##fixture##_##variant; \
	static struct __test_variant __variant_##fixture##_##variant = { \
		.name = #variant, .data = &__data_##fixture##_##variant, \
	}; \
	static void __attribute__((constructor)) \
	__register_variant_##fixture##_##variant(void) \
	{ \
		__test_register_variant(&__of_##fixture, \
					&__variant_##fixture##_##variant); \
	} \
	static const FIXTURE_VARIANT(fixture) __data_##fixture##_##variant =
#define __FIXTURE_ARGS(fixture) \
	(struct __test_metadata __attribute__((unused)) *_metadata, \
	 FIXTURE_DATA(fixture) __attribute__((unused)) *self, \
	 const FIXTURE_VARIANT(fixture) __attribute__((unused)) *variant)
#define FIXTURE_SETUP(fixture) \
	static void fixture##_setup __FIXTURE_ARGS(fixture)
#define FIXTURE_TEARDOWN(fixture) \
	static void fixture##_teardown __FIXTURE_ARGS(fixture)

#define TEST_F(fixture, name) \
	__TEST_F(fixture, name, 0, TEST_TIMEOUT_DEFAULT)
#define TEST_F_SIGNAL(fixture, name, sig) \
	__TEST_F(fixture, name, sig, TEST_TIMEOUT_DEFAULT)
#define TEST_F_TIMEOUT(fixture, name, seconds) \
	__TEST_F(fixture, name, 0, seconds)
#define __TEST_F(fixture, name, sig, seconds) \
	static void fixture##_##name __FIXTURE_ARGS(fixture); \
	static void __body_##fixture##_##name(struct __test_metadata *t) \
	{ \
		const FIXTURE_VARIANT(fixture) *variant = \
			(const FIXTURE_VARIANT(fixture) *)t->variant->data; \
		FIXTURE_DATA(fixture) self; \
		memset(&self, 0, sizeof(self)); \
		fixture##_setup(t, &self, variant); \
		if (__test_get(t->state->failed) || \
		    __test_get(t->state->skipped)) \
			return; \
		fixture##_##name(t, &self, variant); \
		fixture##_teardown(t, &self, variant); \
	} \
	__TEST(&__of_##fixture, name, fixture##_##name, \
	       __body_##fixture##_##name(_metadata), sig, seconds) \
	static void fixture##_##name __FIXTURE_ARGS(fixture)

static inline int __test_timeout(const struct __test_metadata *t)
{
	const char *factor = getenv("TEST_TIMEOUT_FACTOR");

	return factor && atoi(factor) > 0 ? t->timeout * atoi(factor) :
					    t->timeout;
}

static inline void __test_begin(void);

static inline void __attribute__((noreturn))
__test_child(struct __test_metadata *t, const sigset_t *mask, pid_t runner)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != runner)
		_exit(1);
	sigprocmask(SIG_SETMASK, mask, NULL);
	__test_begin();
	t->fn(t);
	__test_set(t->state->returned, getpid());
	exit(0);
}

/* Returns true if the child ended within its time; the child is not reaped. */
static inline bool
__test_wait(const struct __test_metadata *t, pid_t pid, const sigset_t *chld)
{
	struct timespec now, left = { .tv_sec = 0 };
	siginfo_t info;
	time_t end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + __test_timeout(t);
	for (;;) {
		info.si_pid = 0;
		if (!waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
		    info.si_pid == pid)
			return true;
		clock_gettime(CLOCK_MONOTONIC, &now);
		left.tv_sec = end - now.tv_sec;
		if (left.tv_sec <= 0)
			return false;
		sigtimedwait(chld, NULL, &left);
	}
}

/* Returns the reason why the test failed, or NULL. */
static inline const char *
__test_verdict(const struct __test_metadata *t, pid_t pid, int status,
	       bool in_time, char *buf, size_t size)
{
	if (!in_time)
		snprintf(buf, size, "killed, still running after %d s",
			 __test_timeout(t));
	else if (t->termsig && WIFSIGNALED(status) &&
		 WTERMSIG(status) == t->termsig)
		return __test_get(t->state->failed) ? "failed" : NULL;
	else if (WIFSIGNALED(status))
		snprintf(buf, size, "died of signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (__test_get(t->state->failed))
		return "failed";
	else if (WEXITSTATUS(status))
		snprintf(buf, size, "exit status %d", WEXITSTATUS(status));
	else if (__test_get(t->state->skipped))
		return NULL;
	else if (__test_get(t->state->returned) != pid)
		return "left by exit()";
	else if (t->termsig)
		snprintf(buf, size, "did not die of signal %d", t->termsig);
	else if (!__test_get(t->state->checked))
		return "checked nothing";
	else
		return NULL;
	return buf;
}

/* Runs it in a process of its own; returns why it failed, or NULL. */
static inline const char *__test_once(struct __test_metadata *t, char *buf,
				      size_t size)
{
	pid_t pid, runner = getpid();
	sigset_t chld, mask;
	int status = 0;
	bool in_time;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &mask);
	fflush(NULL);
	pid = fork();
	if (!pid)
		__test_child(t, &mask, runner);
	if (pid < 0)
		return "cannot fork";
	setpgid(pid, pid);
	in_time = __test_wait(t, pid, &chld);
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return __test_verdict(t, pid, status, in_time, buf, size);
}

#ifdef PL_SIM
# include "kselftest_sim.h"
#else
static inline void __test_begin(void)
{
}

# define __test_all(t, buf, size) __test_once(t, buf, size)
#endif

/* Returns 0: passed, 1: failed, 4: skipped. */
static inline int __test_run(struct __test_metadata *t, int nr)
{
	const char *verdict;
	char buf[128];

	verdict = __test_all(t, buf, sizeof(buf));
	if (verdict) {
		__test_print("# %s: %s", t->title, verdict);
		__test_print("not ok %d %s", nr, t->title);
		return 1;
	}
	if (__test_get(t->state->skipped)) {
		__test_print("ok %d %s # SKIP %s", nr, t->title,
			     t->state->reason);
		return 4;
	}
	__test_print("ok %d %s", nr, t->title);
	return 0;
}

#include "kselftest_choice.h"

static inline int test_harness_run(int argc, char **argv)
{
	int status, planned = 0, nr = 0, pass = 0, fail = 0, skip = 0;
	const struct __test_variant *v;
	struct __test_state *state;
	struct __test_metadata *t;

	if (!__test_notes_are_sound(argv[0]))
		return 1;
	status = __test_options(argc, argv);
	if (status >= 0)
		return status;
	__for_each_run(t, v)
		planned += __test_wanted(t, v, argc, argv);
	/*
	 * One state for each test: a killed group may still write during the
	 * next test.
	 */
	state = (struct __test_state *)
		mmap(NULL, (planned + 1) * sizeof(*state),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (state == MAP_FAILED)
		return 1;

	__test_print("TAP version 13");
	__test_print("1..%d", planned);
	__for_each_run(t, v) {
		if (!__test_wanted(t, v, argc, argv))
			continue;
		t->state = &state[nr];
		status = __test_run(t, ++nr);
		pass += status == 0;
		fail += status == 1;
		skip += status == 4;
	}
	__test_print("# Totals: pass:%d fail:%d xfail:0 xpass:0 skip:%d error:0",
		     pass, fail, skip);
	if (fail || !nr)
		return 1;
	return pass ? 0 : 4;
}

#define TEST_HARNESS_MAIN \
	int main(int argc, char **argv) \
	{ \
		return test_harness_run(argc, argv); \
	}

#endif /* SELFTESTS_KSELFTEST_HARNESS_H */
