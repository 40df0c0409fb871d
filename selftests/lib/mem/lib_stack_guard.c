/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stack_guard: a task that runs over its stack dies by SIGSEGV with a line that
 * names it, however the stack is guarded; any other fault is handled as it was.
 */
#include "kselftest_harness.h"

#include "lib.h"
#include "mem/stack.h"
#include "ctx/switch.h"

#define KIB		1024UL

static const size_t sizes[PL__STACK_CLASSES] = {
	256 * KIB, 32 * KIB, 8192 * KIB,
};

enum { NORMAL, SMALL, LARGE };

#define ALL_GUARDS(g) \
	for (g = PL__STACK_GUARD_BEST; g <= PL__STACK_GUARD_CANARY; g++)

static size_t room(const struct pl__stack *st)
{
	return (size_t)((char *)st - (char *)st->base);
}

/* A thread that runs @fn in a context on @st. */
struct victim {
	struct pl__stack	*st;
	void			(*fn)(struct victim *v);
	struct pl__ctx		ctx;
	struct pl__ctx		loop;
};

static struct victim *victim;

static const struct pl__stack *running_stack(const char **name,
					     uint64_t *handle)
{
	*name = "deep";
	*handle = 0x700000012ULL;
	return victim->st;
}

static void victim_entry(void *arg)
{
	struct victim *v = arg;

	v->fn(v);
	pl__stack_check(v->st);
	pl__ctx_switch_last(&v->ctx, &v->loop);
}

static void *victim_thread(void *arg)
{
	struct victim *v = arg;
	void *sigstack;

	if (pl__stack_thread_init(&sigstack))
		abort();
	pl__ctx_thread(&v->loop);
	pl__ctx_init(&v->ctx, v->st->base, room(v->st), victim_entry, v);
	pl__ctx_switch(&v->loop, &v->ctx);
	pl__ctx_fini(&v->ctx);
	pl__stack_thread_fini(sigstack);
	return NULL;
}

/* Down to the guard; or, if there is none, a little way past the base. */
__attribute__((noinline, no_sanitize_address, no_sanitize_thread))
static size_t recurse(struct victim *v, size_t depth)
{
	volatile char frame[200];
	size_t i;

	for (i = 0; i < sizeof(frame); i++)
		frame[i] = 1;
	if (v->st->canary &&
	    (uintptr_t)__builtin_frame_address(0) < (uintptr_t)v->st->base)
		return depth;
	return recurse(v, depth + 1) + (size_t)frame[depth % 200];
}

static void overflow(struct victim *v)
{
	recurse(v, 0);
}

static void __attribute__((noreturn))
victim_process(enum pl__stack_guard how, uint32_t cls,
	       void (*fn)(struct victim *))
{
	static struct pl__stacks s;
	struct victim v = { .fn = fn };
	pthread_t thread;

	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	victim = &v;
	pl__stack_on_overflow(running_stack);
	pl__stack_force_guard(how);
	if (pl__stacks_init(&s, sizes))
		_exit(2);
	v.st = pl__stack_get(&s, NULL, cls);
	if (!v.st || pthread_create(&thread, NULL, victim_thread, &v))
		_exit(2);
	pthread_join(thread, NULL);
	_exit(0);
}

/* How it ended, and what it said on stderr. */
static int watch(enum pl__stack_guard how, uint32_t cls,
		 void (*fn)(struct victim *), char *text, size_t size)
{
	int fds[2], status = -1;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(fds))
		abort();
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDERR_FILENO);
		victim_process(how, cls, fn);
	}
	close(fds[1]);
	while ((n = read(fds[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	/* An emulator has its own last word. */
	if (strstr(text, "qemu: "))
		*strstr(text, "qemu: ") = '\0';
	close(fds[0]);
	waitpid(pid, &status, 0);
	return status;
}

TEST_REAL(overflow_dies_with_a_line_that_names_the_task,
	  "other processes are not simulated")
TEST(overflow_dies_with_a_line_that_names_the_task)
{
	enum pl__stack_guard how;
	char text[4096], line[128];
	uint32_t cls;
	int status;

	ALL_GUARDS(how) {
		for (cls = NORMAL; cls <= LARGE; cls++) {
			status = watch(how, cls, overflow, text, sizeof(text));
			EXPECT_TRUE(WIFSIGNALED(status));
			EXPECT_EQ(SIGSEGV, WTERMSIG(status));
			snprintf(line, sizeof(line),
				 "parklot: task 'deep' (0x700000012) "
				 "overflowed its stack of %zu bytes\n",
				 sizes[cls]);
			EXPECT_STREQ(line, text);
		}
	}
}

/* As a function with an array that it uses the low end of first. */
__attribute__((no_sanitize_address, no_sanitize_thread))
static void write_wide_frame(struct victim *v)
{
	volatile char *low = (char *)__builtin_frame_address(0) - v->st->size;

	*low = 1;
}

TEST_REAL(frame_as_wide_as_the_stack_dies_with_a_line_that_names_the_task,
	  "other processes are not simulated")
TEST(frame_as_wide_as_the_stack_dies_with_a_line_that_names_the_task)
{
	enum pl__stack_guard how;
	char text[4096], line[128];
	uint32_t cls;
	int status;

	for (how = PL__STACK_GUARD_BEST; how < PL__STACK_GUARD_CANARY; how++) {
		for (cls = NORMAL; cls <= LARGE; cls++) {
			status = watch(how, cls, write_wide_frame, text,
				       sizeof(text));
			EXPECT_TRUE(WIFSIGNALED(status));
			EXPECT_EQ(SIGSEGV, WTERMSIG(status));
			snprintf(line, sizeof(line),
				 "parklot: task 'deep' (0x700000012) "
				 "overflowed its stack of %zu bytes\n",
				 sizes[cls]);
			EXPECT_STREQ(line, text);
		}
	}
}

TEST(wide_frame_without_a_guard_leaves_other_stacks_alone)
{
	struct pl__stack *st[40];
	struct pl__stacks s;
	size_t i, n, bad = 0;

	pl__stack_force_guard(PL__STACK_GUARD_CANARY);
	ASSERT_EQ(0, pl__stacks_init(&s, sizes));
	for (i = 0; i < ARRAY_SIZE(st); i++) {
		st[i] = pl__stack_get(&s, NULL, SMALL);
		ASSERT_NE(NULL, st[i]);
		memset(st[i]->base, (int)i + 1, room(st[i]));
	}
	for (i = 0; i < ARRAY_SIZE(st); i++)
		memset((char *)st[i]->base - sizes[SMALL], 0xff, sizes[SMALL]);
	for (i = 0; i < ARRAY_SIZE(st); i++) {
		for (n = 0; n < room(st[i]); n++)
			bad += ((uint8_t *)st[i]->base)[n] != i + 1;
		pl__stack_put(&s, NULL, st[i]);
	}
	EXPECT_EQ(0, bad);

	/* What it left is no overflow of the next task. */
	pl__stacks_trim(&s);
	st[0] = pl__stack_get(&s, NULL, SMALL);
	ASSERT_NE(NULL, st[0]);
	pl__stack_check(st[0]);
	pl__stack_put(&s, NULL, st[0]);
	pl__stacks_fini(&s);
}

static void nearly_overflow(struct victim *v)
{
	char *base = v->st->base;

	memset(base, 0xff, (size_t)((char *)__builtin_frame_address(0) - base) -
			   8 * KIB);
}

TEST_REAL(full_stack_is_no_overflow, "other processes are not simulated")
TEST(full_stack_is_no_overflow)
{
	enum pl__stack_guard how;
	char text[4096];

	ALL_GUARDS(how) {
		EXPECT_EQ(0, watch(how, SMALL, nearly_overflow, text,
				   sizeof(text)));
		EXPECT_STREQ("", text);
	}
}

static void come_upon_a_bug(struct victim *v)
{
	PL_BUG_ON(v);
}

TEST_REAL(internal_bug_dies_with_a_line_that_names_the_task,
	  "other processes are not simulated")
TEST(internal_bug_dies_with_a_line_that_names_the_task)
{
	char text[4096], line[256];
	int status = watch(PL__STACK_GUARD_BEST, NORMAL, come_upon_a_bug, text,
			   sizeof(text));

	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGABRT, WTERMSIG(status));
	snprintf(line, sizeof(line), "parklot: BUG: %s:", __FILE__);
	EXPECT_EQ(text, strstr(text, line));
	EXPECT_NE(NULL, strstr(text, ": v, in task 'deep' (0x700000012)\n"));
}

/* ---- faults that are not ours ---- */

static char *volatile nowhere = (char *)16;

static void fault_elsewhere(struct victim *v)
{
	(void)v;
	*nowhere = 1;
}

static void send_fault(struct victim *v)
{
	(void)v;
	raise(SIGSEGV);
}

static void say_and_leave(int sig, siginfo_t *info, void *context)
{
	static const char line[] = "mine\n";

	(void)context;
	if (sig != SIGSEGV || info->si_addr != (void *)16 ||
	    write(STDERR_FILENO, line, 5) != 5)
		_exit(3);
	_exit(42);
}

static void leave(int sig)
{
	_exit(sig == SIGSEGV ? 43 : 3);
}

TEST_REAL(other_fault_reaches_the_handler_before,
	  "other processes are not simulated")
TEST(other_fault_reaches_the_handler_before)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO };
	char text[4096];
	int status;

	sa.sa_sigaction = say_and_leave;
	ASSERT_EQ(0, sigaction(SIGSEGV, &sa, NULL));
	status = watch(PL__STACK_GUARD_BEST, SMALL, fault_elsewhere, text,
		       sizeof(text));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(42, WEXITSTATUS(status));
	EXPECT_STREQ("mine\n", text);

	signal(SIGSEGV, leave);
	status = watch(PL__STACK_GUARD_BEST, SMALL, fault_elsewhere, text,
		       sizeof(text));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(43, WEXITSTATUS(status));
	EXPECT_STREQ("", text);
}

TEST_REAL(other_fault_without_a_handler_kills,
	  "other processes are not simulated")
TEST(other_fault_without_a_handler_kills)
{
	static void (*const faults[])(struct victim *) = {
		fault_elsewhere, send_fault,
	};
	char text[4096];
	int status;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		/* A sanitizer has one of its own. */
		signal(SIGSEGV, SIG_DFL);
		status = watch(PL__STACK_GUARD_BEST, SMALL, faults[i], text,
			       sizeof(text));
		EXPECT_TRUE(WIFSIGNALED(status));
		EXPECT_EQ(SIGSEGV, WTERMSIG(status));
		EXPECT_STREQ("", text);
	}
}

TEST_REAL(overflow_is_named_despite_other_handlers,
	  "other processes are not simulated")
TEST(overflow_is_named_despite_other_handlers)
{
	char text[4096];
	int status;

	signal(SIGSEGV, leave);
	status = watch(PL__STACK_GUARD_BEST, SMALL, overflow, text,
		       sizeof(text));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGSEGV, WTERMSIG(status));
	EXPECT_NE(NULL, strstr(text, "overflowed its stack"));
}

TEST_HARNESS_MAIN
