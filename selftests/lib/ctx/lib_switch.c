/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/ctx/switch: what a switch keeps, on one thread and across threads; what
 * becomes of the stacks; where the walk up a stack ends.
 */
#include "kselftest_harness.h"

#include "ctx.h"
#include "lib.h"

#include <execinfo.h>

/*
 * switch_with_regs() puts @in into every register that a callee keeps,
 * switches, and stores what it then finds in them to @out.
 */
#if defined(__x86_64__)
# define NR_REGS	6
#else
# define NR_REGS	19	/* x19 to x29, d8 to d15 */
#endif

void switch_with_regs(struct pl__ctx *from, struct pl__ctx *to,
		      const uint64_t in[NR_REGS], uint64_t out[NR_REGS]);

/* What the assembly calls; keeps its caller's registers as any function. */
void test_switch(struct pl__ctx *from, struct pl__ctx *to);
__attribute__((used, noinline))
void test_switch(struct pl__ctx *from, struct pl__ctx *to)
{
	pl__ctx_switch(from, to);
}

#if defined(__x86_64__)
__asm__(
"	.text\n"
"	.globl	switch_with_regs\n"
"	.type	switch_with_regs, @function\n"
"switch_with_regs:\n"
"	pushq	%rbp\n"
"	pushq	%rbx\n"
"	pushq	%r12\n"
"	pushq	%r13\n"
"	pushq	%r14\n"
"	pushq	%r15\n"
"	pushq	%rcx\n"
"	movq	(%rdx), %rbp\n"
"	movq	8(%rdx), %rbx\n"
"	movq	16(%rdx), %r12\n"
"	movq	24(%rdx), %r13\n"
"	movq	32(%rdx), %r14\n"
"	movq	40(%rdx), %r15\n"
"	call	test_switch\n"
"	popq	%rcx\n"
"	movq	%rbp, (%rcx)\n"
"	movq	%rbx, 8(%rcx)\n"
"	movq	%r12, 16(%rcx)\n"
"	movq	%r13, 24(%rcx)\n"
"	movq	%r14, 32(%rcx)\n"
"	movq	%r15, 40(%rcx)\n"
"	popq	%r15\n"
"	popq	%r14\n"
"	popq	%r13\n"
"	popq	%r12\n"
"	popq	%rbx\n"
"	popq	%rbp\n"
"	ret\n"
"	.size	switch_with_regs, . - switch_with_regs\n");
#else
__asm__(
"	.text\n"
"	.globl	switch_with_regs\n"
"	.type	switch_with_regs, @function\n"
"	.macro	each op, base\n"
"	\\op	x19, x20, [\\base]\n"
"	\\op	x21, x22, [\\base, #16]\n"
"	\\op	x23, x24, [\\base, #32]\n"
"	\\op	x25, x26, [\\base, #48]\n"
"	\\op	x27, x28, [\\base, #64]\n"
"	\\op	d8, d9, [\\base, #88]\n"
"	\\op	d10, d11, [\\base, #104]\n"
"	\\op	d12, d13, [\\base, #120]\n"
"	\\op	d14, d15, [\\base, #136]\n"
"	.endm\n"
"switch_with_regs:\n"
"	sub	sp, sp, #176\n"
"	each	stp, sp\n"
"	str	x29, [sp, #80]\n"
"	stp	x30, x3, [sp, #160]\n"
"	each	ldp, x2\n"
"	ldr	x29, [x2, #80]\n"
"	bl	test_switch\n"
"	ldp	x30, x3, [sp, #160]\n"
"	each	stp, x3\n"
"	str	x29, [x3, #80]\n"
"	each	ldp, sp\n"
"	ldr	x29, [sp, #80]\n"
"	add	sp, sp, #176\n"
"	ret\n"
"	.size	switch_with_regs, . - switch_with_regs\n");
#endif

/* A context that switches with random registers, and the resuming one. */
struct regs_ctx {
	struct pl__ctx	ctx;
	struct pl__ctx	*back;
	uint64_t	seed;
	uint64_t	nr_bad;
};

static void regs_step(struct pl__ctx *from, struct pl__ctx *to, uint64_t *seed,
		      uint64_t *nr_bad)
{
	uint64_t in[NR_REGS], out[NR_REGS] = { 0 };
	int i;

	for (i = 0; i < NR_REGS; i++)
		in[i] = next_random(seed);
	switch_with_regs(from, to, in, out);
	for (i = 0; i < NR_REGS; i++)
		*nr_bad += in[i] != out[i];
}

static void regs_entry(void *arg)
{
	struct regs_ctx *r = arg;

	for (;;)
		regs_step(&r->ctx, r->back, &r->seed, &r->nr_bad);
}

/* Two threads resume the same context in turn, each from a stack of its own. */
struct regs_relay {
	struct regs_ctx		r;
	pthread_mutex_t		lock;
	uint64_t		nr_bad;
};

static void *regs_relay_thread(void *arg)
{
	struct regs_relay *relay = arg;
	uint64_t seed = (uintptr_t)&seed, nr_bad = 0;
	struct pl__ctx self;
	int i;

	pl__ctx_thread(&self);
	for (i = 0; i < 2000; i++) {
		pthread_mutex_lock(&relay->lock);
		relay->r.back = &self;
		regs_step(&self, &relay->r.ctx, &seed, &nr_bad);
		pthread_mutex_unlock(&relay->lock);
	}
	pthread_mutex_lock(&relay->lock);
	relay->nr_bad += nr_bad;
	pthread_mutex_unlock(&relay->lock);
	return NULL;
}

TEST(callee_saved_registers_survive_migration)
{
	struct regs_relay relay = {
		.r = { .seed = 4711 },
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	void *stack = stack_new();
	pthread_t threads[2];
	int i;

	pl__ctx_init(&relay.r.ctx, stack, STACK_SIZE, regs_entry, &relay.r);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL,
					    regs_relay_thread, &relay));
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(0, relay.nr_bad);
	EXPECT_EQ(0, relay.r.nr_bad);
	pl__ctx_fini(&relay.r.ctx);
	stack_free(stack);
}

/* All control bits of the floating-point unit, whatever they mean. */
struct fp_control {
	uint64_t	a;
	uint64_t	b;
};

static struct fp_control fp_get(void)
{
	struct fp_control c = { 0, 0 };
#if defined(__x86_64__)
	uint32_t mxcsr;
	uint16_t cw;

	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(cw));
	c.a = mxcsr & ~0x3fU;
	c.b = cw;
#else
	__asm__ volatile("mrs %0, fpcr" : "=r"(c.a));
#endif
	return c;
}

static bool fp_equal(struct fp_control x, struct fp_control y)
{
	return x.a == y.a && x.b == y.b;
}

/* A rounding mode of 0 to 3, and flush to zero; fenv.h would want libm. */
static void fp_set(unsigned int round, bool flush)
{
#if defined(__x86_64__)
	uint32_t mxcsr = 0x1f80 | round << 13 | (flush ? 1U << 15 : 0);
	uint16_t cw = 0x037f | round << 10;

	__asm__ volatile("ldmxcsr %0" :: "m"(mxcsr));
	__asm__ volatile("fldcw %0" :: "m"(cw));
#else
	uint64_t fpcr = round << 22 | (flush ? 1U << 24 : 0);

	__asm__ volatile("msr fpcr, %0" :: "r"(fpcr));
#endif
}

struct fp_ctx {
	struct pl__ctx		ctx;
	struct pl__ctx		*back;
	struct fp_control	first;
	int			nr_bad;
};

static void fp_entry(void *arg)
{
	struct fp_ctx *f = arg;
	struct fp_control mine;

	f->first = fp_get();
	fp_set(3, true);
	mine = fp_get();
	for (;;) {
		pl__ctx_switch(&f->ctx, f->back);
		f->nr_bad += !fp_equal(mine, fp_get());
	}
}

static void *fp_thread(void *arg)
{
	struct fp_ctx *f = arg;
	struct fp_control mine = fp_get();
	struct pl__ctx self;

	pl__ctx_thread(&self);
	f->back = &self;
	pl__ctx_switch(&self, &f->ctx);
	f->nr_bad += !fp_equal(mine, fp_get());
	return NULL;
}

TEST(floating_point_control_stays_with_its_context)
{
	struct fp_control plain = fp_get(), mine;
	struct fp_ctx f = { .nr_bad = 0 };
	void *stack = stack_new();
	struct pl__ctx self;
	pthread_t thread;
	int i;

	pl__ctx_thread(&self);
	f.back = &self;
	/* What its maker has set is no business of a new context. */
	fp_set(2, false);
	mine = fp_get();
	ASSERT_FALSE(fp_equal(mine, plain));
	pl__ctx_init(&f.ctx, stack, STACK_SIZE, fp_entry, &f);
	for (i = 0; i < 100; i++) {
		pl__ctx_switch(&self, &f.ctx);
		EXPECT_TRUE(fp_equal(mine, fp_get()));
	}
	EXPECT_TRUE(fp_equal(plain, f.first));
	pl__ctx_reset_fp();
	EXPECT_TRUE(fp_equal(plain, fp_get()));

	ASSERT_EQ(0, pthread_create(&thread, NULL, fp_thread, &f));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, f.nr_bad);
	pl__ctx_fini(&f.ctx);
	stack_free(stack);
}

struct align_ctx {
	struct pl__ctx	ctx;
	struct pl__ctx	*back;
	uintptr_t	rest;
	char		text[64];
};

static void align_entry(void *arg)
{
	volatile int __attribute__((aligned(16))) local = 0;
	struct align_ctx *a = arg;
	volatile double x = 2.5;

	a->rest = (uintptr_t)__builtin_frame_address(0) % 16;
	a->rest |= (uintptr_t)&local % 16;
	/* Saves its vector arguments with aligned moves. */
	snprintf(a->text, sizeof(a->text), "%.2f %.1f", x, x * 2);
	pl__ctx_switch_last(&a->ctx, a->back);
}

TEST(new_context_starts_with_an_aligned_stack)
{
	struct align_ctx a = { .rest = 1 };
	void *stack = stack_new();
	struct pl__ctx self;
	size_t odd;

	pl__ctx_thread(&self);
	a.back = &self;
	for (odd = 0; odd < 16; odd++) {
		pl__ctx_init(&a.ctx, stack, STACK_SIZE - odd, align_entry, &a);
		pl__ctx_switch(&self, &a.ctx);
		pl__ctx_fini(&a.ctx);
		EXPECT_EQ(0, a.rest);
		EXPECT_STREQ("2.50 5.0", a.text);
		a.rest = 1;
	}
	stack_free(stack);
}

struct last_ctx {
	struct pl__ctx	ctx;
	struct pl__ctx	*back;
	unsigned int	sum;
};

/* Arrays have red zones around them, left behind when it does not return. */
static void last_entry(void *arg)
{
	struct last_ctx *l = arg;
	volatile unsigned char dirt[3000];
	size_t i;

	for (i = 0; i < sizeof(dirt); i += 7)
		dirt[i] = 1;
	for (i = 0; i < sizeof(dirt); i += 7)
		l->sum += dirt[i];
	pl__ctx_switch_last(&l->ctx, l->back);
}

static void last_entry_other_frame(void *arg)
{
	volatile unsigned char dirt[500] = { 0 };
	struct last_ctx *l = arg;

	dirt[l->sum % 500] = 1;
	l->sum += dirt[l->sum % 500];
	pl__ctx_switch_last(&l->ctx, l->back);
}

TEST(stack_of_a_dead_context_serves_the_next)
{
	struct last_ctx l = { .sum = 0 };
	void *stack = stack_new();
	struct pl__ctx self;
	unsigned int i;

	pl__ctx_thread(&self);
	l.back = &self;
	for (i = 0; i < 200; i++) {
		pl__ctx_init(&l.ctx, stack, STACK_SIZE, i % 2 ? last_entry :
			     last_entry_other_frame, &l);
		pl__ctx_switch(&self, &l.ctx);
		pl__ctx_fini(&l.ctx);
		/* Memory again like any other. */
		memset(stack, i, STACK_SIZE);
	}
	EXPECT_EQ(100 * (3000 / 7 + 1) + 100, l.sum);
	stack_free(stack);
}

static void parked_entry(void *arg)
{
	volatile unsigned char dirt[3000];
	struct last_ctx *l = arg;

	dirt[l->sum] = 1;
	pl__ctx_switch(&l->ctx, l->back);
	l->sum += dirt[l->sum];
}

TEST(stack_of_a_dropped_context_is_memory_again)
{
	struct last_ctx l = { .sum = 0 };
	void *stack = stack_new();
	struct pl__ctx self;

	pl__ctx_thread(&self);
	l.back = &self;
	pl__ctx_init(&l.ctx, stack, STACK_SIZE, parked_entry, &l);
	pl__ctx_switch(&self, &l.ctx);
	pl__ctx_fini(&l.ctx);
	memset(stack, 1, STACK_SIZE);
	EXPECT_EQ(1, ((char *)stack)[STACK_SIZE / 2]);
	stack_free(stack);
}

TEST(context_that_never_ran_can_be_dropped)
{
	void *stack = stack_new();
	struct pl__ctx ctx;
	int i;

	for (i = 0; i < 100; i++) {
		pl__ctx_init(&ctx, stack, STACK_SIZE, regs_entry, NULL);
		EXPECT_NE(NULL, ctx.sp);
		pl__ctx_fini(&ctx);
	}
	stack_free(stack);
}

/* ---- where the walk up a stack ends ---- */

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

TEST_HARNESS_MAIN
