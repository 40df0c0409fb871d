/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/ctx/switch: where the walk up a context's stack ends.
 */
#include "kselftest_harness.h"

#include "ctx.h"

#include <execinfo.h>

/* The end of a walk: pl__ctx_boot() and no caller above it. */
void pl__ctx_boot(void);

static bool is_boot(const void *pc)
{
	uintptr_t start = (uintptr_t)pl__ctx_boot;

	return (uintptr_t)pc > start && (uintptr_t)pc <= start + 32;
}

struct walk_ctx {
	struct pl__ctx	ctx;
	struct pl__ctx	*back;
	void		*pcs[64];
	int		nr;
};

static __attribute__((noinline)) void walk_deep(struct walk_ctx *w, int depth)
{
	if (depth)
		walk_deep(w, depth - 1);
	else
		w->nr = backtrace(w->pcs, ARRAY_SIZE(w->pcs));
	__asm__ volatile("" ::: "memory");
}

static void walk_entry(void *arg)
{
	struct walk_ctx *w = arg;

	for (;;) {
		walk_deep(w, 10);
		pl__ctx_switch(&w->ctx, w->back);
	}
}

TEST(backtrace_ends_at_the_bottom)
{
	struct walk_ctx w = { .nr = 0 };
	void *stack = stack_new();
	struct pl__ctx self;

	pl__ctx_thread(&self);
	w.back = &self;
	pl__ctx_init(&w.ctx, stack, STACK_SIZE, walk_entry, &w);
	pl__ctx_switch(&self, &w.ctx);
	/* Eleven times walk_deep(), the entry, the bottom. */
	ASSERT_GE(w.nr, 13);
	EXPECT_LE(w.nr, 16);
	EXPECT_TRUE(is_boot(w.pcs[w.nr - 1]));
	EXPECT_FALSE(is_boot(w.pcs[w.nr - 2]));
	pl__ctx_fini(&w.ctx);
	stack_free(stack);
}

struct gdb_ctx {
	struct pl__ctx	ctx;
	int		ready;	/* a pipe to say so */
};

static __attribute__((noinline)) void gdb_deep(struct gdb_ctx *g, int depth)
{
	if (depth)
		gdb_deep(g, depth - 1);
	else if (write(g->ready, "", 1) == 1)
		for (;;)
			pause();
	__asm__ volatile("" ::: "memory");
}

static void gdb_entry(void *arg)
{
	gdb_deep(arg, 5);
	abort();
}

static pid_t gdb_child(int *ready)
{
	struct gdb_ctx g;
	struct pl__ctx self;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (pid) {
		close(fds[1]);
		*ready = fds[0];
		return pid;
	}
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	g.ready = fds[1];
	pl__ctx_thread(&self);
	pl__ctx_init(&g.ctx, stack_new(), STACK_SIZE, gdb_entry, &g);
	pl__ctx_switch(&self, &g.ctx);
	_exit(1);
}

static size_t gdb_backtrace(pid_t pid, char *text, size_t size)
{
	char cmd[256];
	size_t len;
	FILE *out;

	snprintf(cmd, sizeof(cmd),
		 "gdb -nx -batch -iex 'set debuginfod enabled off' -p %d "
		 "-ex bt 2>&1", pid);
	out = popen(cmd, "r");
	if (!out)
		return 0;
	len = fread(text, 1, size - 1, out);
	text[len] = '\0';
	pclose(out);
	return len;
}

/* qemu-user answers /proc/self/exe itself, for a child the kernel does. */
static bool is_emulated(pid_t child)
{
	char path[64], own[256] = "", seen[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/exe", child);
	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0 ||
	    readlink(path, seen, sizeof(seen) - 1) < 0)
		return false;
	return strcmp(own, seen);
}

TEST_REAL(gdb_backtrace_ends_at_the_bottom, "other processes are not simulated")
TEST(gdb_backtrace_ends_at_the_bottom)
{
	static char text[65536];
	char *boot, *line;
	int ready = -1;
	bool emulated;
	pid_t pid;
	char byte;

	if (system("gdb --version >/dev/null 2>&1"))
		SKIP(return, "no gdb");
	pid = gdb_child(&ready);
	ASSERT_LT(0, pid);
	ASSERT_EQ(1, read(ready, &byte, 1));
	emulated = is_emulated(pid);
	if (!emulated)
		gdb_backtrace(pid, text, sizeof(text));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	if (emulated)
		SKIP(return, "gdb would see the emulator");
	if (strstr(text, "ptrace:"))
		SKIP(return, "gdb may not attach");
	EXPECT_NE(NULL, strstr(text, "gdb_deep"));
	/* With clang's line tables gdb takes it for Ada: pl.ctx_boot. */
	boot = strstr(text, "ctx_boot");
	ASSERT_NE(NULL, boot);
	/* No frame after it, and no word of a corrupt stack. */
	line = strstr(boot, "\n#");
	EXPECT_EQ(NULL, line);
	EXPECT_EQ(NULL, strstr(text, "Backtrace stopped"));
}

TEST_HARNESS_MAIN
