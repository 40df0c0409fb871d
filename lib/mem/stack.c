/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "mem/stack.h"
#include "base/atfork.h"
#include "base/lock.h"
#include "mem/valgrind.h"
#include "base/sys.h"
#include "base/sigsafe_buf.h"

#include <signal.h>
#include <sys/mman.h>

#ifndef MADV_GUARD_INSTALL
# define MADV_GUARD_INSTALL	102
#endif
#ifndef MADV_POPULATE_READ
# define MADV_POPULATE_READ	22
#endif

#define AREA_SIZE	(8UL << 20)	/* bytes; or one larger stack */
#define AREA_NR_MAX	64
#define CANARY_SIZE	(PL__STACK_NR_CANARIES * sizeof(uint64_t))
#define CACHE_BYTES	(4UL << 20)	/* of stacks in a worker's cache */
#define CACHE_NR_MAX	32
#define WARM_NR_MAX	1024		/* with more, aging gives some back */
#define WARM_BYTES	(256UL << 20)	/* or with more than these */

static size_t page_size = 4096;
static enum pl__stack_guard forced;
static _Atomic uint64_t nr_unguarded;
static _Atomic int64_t mprotects_left;
static _Atomic bool has_no_guard_install;

void pl__stack_force_guard(enum pl__stack_guard guard)
{
	forced = guard;
}

/* ---- guards ---- */

/* Each takes two mappings; the library uses at most half of the process's. */
static int64_t mprotects_allowed(void)
{
	char text[32];

	if (forced == PL__STACK_GUARD_CANARY)
		return 0;
	if (pl__read_file("/proc/sys/vm/max_map_count", text,
			  sizeof(text)) <= 0)
		return 65530 / 4;
	return strtoll(text, NULL, 10) / 4;
}

static bool is_by_mprotect(void)
{
	return forced != PL__STACK_GUARD_BEST ||
	       load_relaxed(&has_no_guard_install);
}

/*
 * Emulators accept any advice and do nothing: a page is a guard only if it
 * cannot be read.
 */
static bool can_guard_install(void)
{
	char *page = pl__map(page_size);
	bool can;

	if (!page)
		return false;
	can = !pl__advise(page, page_size, MADV_GUARD_INSTALL) &&
	      pl__advise(page, page_size, MADV_POPULATE_READ) == -EFAULT;
	pl__unmap(page, page_size);
	return can;
}

static bool guard(char *low, size_t size)
{
	if (!is_by_mprotect())
		return !pl__advise(low, size, MADV_GUARD_INSTALL);
	if (atomic_fetch_sub(&mprotects_left, 1) > 0 &&
	    !pl__protect_none(low, size))
		return true;
	atomic_fetch_add(&mprotects_left, 1);
	return false;
}

void pl__stack_check_canary(const struct pl__stack *st)
{
	uint64_t seen = 0;
	int i;

	for (i = 0; i < PL__STACK_NR_CANARIES; i++)
		seen |= st->canary[i];
	if (unlikely(seen))
		pl__stack_die(st);
}

/* ---- areas ---- */

static void area_add_to_valgrind(struct pl__stack_pool *p,
				 struct pl__stack_area *a)
{
	uint32_t i;

	char *base;

	for (i = 0; i < p->nr_per_area; i++) {
		base = pl__stack_slot_at(p, a, i) + p->size;
		a->valgrind[i] = pl__valgrind_add(base, p->size);
		pl__valgrind_no_access(base, p->size);
		/* The guard, or what is below the canary. */
		pl__valgrind_no_access(base - p->size, p->size - CANARY_SIZE);
	}
}

static struct pl__stack_area *area_new(struct pl__stack_pool *p)
{
	bool on_valgrind = pl__valgrind_is_on();
	struct pl__stack_area *a = pl__alloc(sizeof(*a) +
			on_valgrind * p->nr_per_area * sizeof(a->valgrind[0]));
	uint32_t i;

	if (!a)
		return NULL;
	a->base = pl__map(pl__stack_area_size(p));
	if (!a->base) {
		pl__free(a);
		return NULL;
	}
	/*
	 * Each task is to use single pages; a huge page would serve 500 tasks.
	 */
	pl__advise(a->base, pl__stack_area_size(p), MADV_NOHUGEPAGE);
	for (i = 0; i < p->nr_per_area; i++) {
		if (guard(pl__stack_slot_at(p, a, i), p->size))
			a->guarded |= 1ULL << i;
		else
			atomic_fetch_add(&nr_unguarded, 1);
	}
	if (on_valgrind)
		area_add_to_valgrind(p, a);
	a->idle = pl__stack_all_of(p);
	return a;
}

void pl__stack_area_free(struct pl__stack_pool *p, struct pl__stack_area *a)
{
	uint64_t guards = (uint64_t)__builtin_popcountll(a->guarded);
	uint32_t i;

	for (i = 0; pl__valgrind_is_on() && i < p->nr_per_area; i++)
		pl__valgrind_del(a->valgrind[i]);
	if (is_by_mprotect())
		atomic_fetch_add(&mprotects_left, (int64_t)guards);
	atomic_fetch_sub(&nr_unguarded, p->nr_per_area - guards);
	pl__unmap(a->base, pl__stack_area_size(p));
	pl__free(a);
}

static struct pl__stack *stack_at(struct pl__stack_pool *p,
				  struct pl__stack_area *a, uint32_t i)
{
	char *base = pl__stack_slot_at(p, a, i) + p->size;
	struct pl__stack *st;

	pl__valgrind_undefined(base, p->size);
	st = (struct pl__stack *)(base + p->size) - 1;
	*st = (struct pl__stack){
		.base = base,
		.size = p->size,
		.guard_size = p->size,
		.cls = p->cls,
		.index = i,
		.area = a,
	};
	if (!(a->guarded & 1ULL << i))
		st->canary = (const uint64_t *)st->base - PL__STACK_NR_CANARIES;
	return st;
}

/* ---- pools ---- */

/* Under the pool's lock, which is dropped during the mapping. */
static struct pl__stack_area *area_with_idle(struct pl__stack_pool *p)
{
	struct pl__stack_area *a;

	if (!list_empty(&p->areas))
		return list_entry(p->areas.next, struct pl__stack_area, list);
	pl__unlock(&p->lock);
	a = area_new(p);
	pl__lock(&p->lock);
	if (a)
		list_add_tail(&a->list, &p->areas);
	return a;
}

void pl__stack_area_place(struct pl__stack_pool *p, struct pl__stack_area *a)
{
	list_del_init(&a->list);
	if (!a->idle)
		list_add(&a->list, &p->full);
	else if (a->dirty)
		list_add(&a->list, &p->areas);
	else
		list_add_tail(&a->list, &p->areas);
}

static struct pl__stack_area *get_cold(struct pl__stack_pool *p, uint32_t *i)
{
	struct pl__stack_area *a = area_with_idle(p);
	bool was_dirty;

	if (!a)
		return NULL;
	was_dirty = a->dirty;
	*i = (uint32_t)__builtin_ctzll(a->dirty ? a->dirty : a->idle);
	a->idle &= ~(1ULL << *i);
	a->dirty &= ~(1ULL << *i);
	atomic_fetch_add(p->nr_out, 1);
	if (!a->idle || (was_dirty && !a->dirty))
		pl__stack_area_place(p, a);
	return a;
}

static void take_warm(struct pl__stack_pool *p)
{
	uint32_t nr = load_relaxed(&p->nr_warm) - 1;

	p->warm = p->warm->next;
	store_relaxed(&p->nr_warm, nr);
	if (nr < p->nr_low)
		p->nr_low = nr;
}

/*
 * True: there is neither a warm stack nor memory for an area, but some are
 * being cleaned.
 */
static bool get_some(struct pl__stack_pool *p, struct pl__stack **st,
		     struct pl__stack_area **a, uint32_t *i)
{
	bool is_to_wait;

	pl__lock(&p->lock);
	*st = p->warm;
	if (*st)
		take_warm(p);
	else
		*a = get_cold(p, i);
	is_to_wait = !*st && !*a && p->nr_cleaning;
	pl__unlock(&p->lock);
	return is_to_wait;
}

static struct pl__stack *pool_get(struct pl__stack_pool *p)
{
	struct pl__stack_area *a = NULL;
	struct pl__stack *st;
	uint32_t i = 0;

	while (unlikely(get_some(p, &st, &a, &i)))
		pl__sched_yield();
	/*
	 * The first page of the stack is faulted in here, with the lock
	 * dropped.
	 */
	return a ? stack_at(p, a, i) : st;
}

/* Puts the chain of @nr stacks from @first to @last on the warm list. */
static void pool_put(struct pl__stack_pool *p, struct pl__stack *first,
		     struct pl__stack *last, uint32_t nr)
{
	pl__lock(&p->lock);
	last->next = p->warm;
	p->warm = first;
	store_relaxed(&p->nr_warm, load_relaxed(&p->nr_warm) + nr);
	pl__unlock(&p->lock);
}

/* Gives all but the @keep stacks that were put last to the pool. */
static void cache_flush(struct pl__stacks *s, struct pl__stack_cache *c,
			uint32_t cls, uint32_t keep)
{
	struct pl__stack **end = &c->head[cls], *first, *last;
	uint32_t i, nr;

	if (c->nr[cls] <= keep)
		return;
	nr = c->nr[cls] - keep;
	for (i = 0; i < keep; i++)
		end = &(*end)->next;
	first = last = *end;
	for (i = 1; i < nr; i++)
		last = last->next;
	*end = NULL;
	c->nr[cls] = keep;
	pool_put(&s->pools[cls], first, last, nr);
}

void pl__stack_put(struct pl__stacks *s, struct pl__stack_cache *c,
		   struct pl__stack *st)
{
	uint32_t cls = st->cls;

	if (!c) {
		pool_put(&s->pools[cls], st, st, 1);
		return;
	}
	st->next = c->head[cls];
	c->head[cls] = st;
	c->nr[cls]++;
	if (unlikely(c->nr[cls] > s->pools[cls].nr_cached))
		cache_flush(s, c, cls, s->pools[cls].nr_cached / 2);
}

void pl__stack_cache_drain(struct pl__stacks *s, struct pl__stack_cache *c)
{
	uint32_t cls;

	for (cls = 0; cls < PL__STACK_CLASSES; cls++)
		cache_flush(s, c, cls, 0);
}

/*
 * Memory of idle stacks of other classes may be enough for a stack of this one.
 */
static struct pl__stack *get_trimmed(struct pl__stacks *s,
				     struct pl__stack_cache *c, uint32_t cls)
{
	if (c)
		pl__stack_cache_drain(s, c);
	pl__stacks_trim(s);
	return pool_get(&s->pools[cls]);
}

static __pl_noinline struct pl__stack *stack_fetch(struct pl__stacks *s,
						   struct pl__stack_cache *c,
						   uint32_t cls)
{
	struct pl__stack *st;

	pl__memory_wait_begin();
	st = pool_get(&s->pools[cls]);
	if (unlikely(!st))
		st = get_trimmed(s, c, cls);
	pl__memory_wait_end();
	return st;
}

struct pl__stack *pl__stack_get(struct pl__stacks *s,
				struct pl__stack_cache *c, uint32_t cls)
{
	struct pl__stack *st = c ? c->head[cls] : NULL;

	if (likely(st)) {
		c->head[cls] = st->next;
		c->nr[cls]--;
		return st;
	}
	return stack_fetch(s, c, cls);
}

/* ---- all of a runtime ---- */

uint64_t pl__stacks_unguarded(struct pl__stacks *s)
{
	(void)s;
	return load_relaxed(&nr_unguarded);
}

static void stack_atfork_child(void)
{
	atomic_store(&nr_unguarded, 0);
}

PL_ATFORK_CHILD(stack_atfork_child);

static uint32_t stack_nr_in(uint32_t nr, size_t bytes, size_t size)
{
	return bytes / size < nr ? (uint32_t)(bytes / size) : nr;
}

static void pool_init(struct pl__stack_pool *p, uint32_t cls, size_t size)
{
	size = (size + page_size - 1) & ~(page_size - 1);
	p->cls = cls;
	p->size = size;
	p->nr_per_area = pl__stack_slot_size(p) < AREA_SIZE ?
			 (uint32_t)(AREA_SIZE / pl__stack_slot_size(p)) : 1;
	if (p->nr_per_area > AREA_NR_MAX)
		p->nr_per_area = AREA_NR_MAX;
	p->nr_cached = 1 + stack_nr_in(CACHE_NR_MAX - 1, CACHE_BYTES, size);
	p->nr_warm_max = stack_nr_in(WARM_NR_MAX, WARM_BYTES, size);
	p->nr_at_once = 1 + stack_nr_in(PL__STACK_AT_ONCE - 1,
					PL__STACK_BYTES_AT_ONCE, size);
	list_init(&p->areas);
	list_init(&p->full);
}

int pl__stacks_init(struct pl__stacks *s, const size_t size[3])
{
	uint32_t cls;

	page_size = pl__page_size();
	for (cls = 0; cls < PL__STACK_CLASSES; cls++)
		if (size[cls] < PL__STACK_SIZE_MIN ||
		    size[cls] > PL__STACK_SIZE_MAX)
			return -EINVAL;
	s->pools = pl__alloc_aligned(PL_CACHELINE, PL__STACK_CLASSES *
						   sizeof(*s->pools));
	if (!s->pools)
		return -ENOMEM;
	for (cls = 0; cls < PL__STACK_CLASSES; cls++) {
		pool_init(&s->pools[cls], cls, size[cls]);
		s->pools[cls].nr_out = &s->nr_out;
	}
	atomic_store(&s->nr_out, 0);
	store_relaxed(&has_no_guard_install, !can_guard_install());
	atomic_store(&mprotects_left, mprotects_allowed());
	return 0;
}

void pl__stacks_fini(struct pl__stacks *s)
{
	uint32_t cls;

	pl__stacks_trim(s);
	for (cls = 0; cls < PL__STACK_CLASSES; cls++)
		PL_BUG_ON(!list_empty(&s->pools[cls].areas) ||
			  !list_empty(&s->pools[cls].full));
	pl__free(s->pools);
}

/*
 * stack_guard: a task that overflows its stack dies with a line that names it,
 * and so does a task that hits a bug of the library
 */

#define SIGSTACK_SIZE	(64 << 10)

static pl__stack_running_fn running_fn;
static struct sigaction previous;
static struct pl__lock install_lock;
static bool is_installed;

void pl__stack_on_overflow(pl__stack_running_fn running)
{
	running_fn = running;
}

static void overflow_print(const struct pl__stack *st, const char *name,
			   uint64_t handle)
{
	struct pl__sigsafe_buf l = { .fd = 2 };

	pl__sigsafe_put(&l, "parklot: task '");
	pl__sigsafe_put(&l, name);
	pl__sigsafe_put(&l, "' (");
	pl__sigsafe_hex(&l, handle);
	pl__sigsafe_put(&l, ") overflowed its stack of ");
	pl__sigsafe_number(&l, st->size, 10);
	pl__sigsafe_put(&l, " bytes\n");
	pl__sigsafe_flush(&l);
}

void pl__bug(const char *file, uint32_t line, const char *what)
{
	struct pl__sigsafe_buf l = { .fd = 2 };
	const char *name = "?";
	uint64_t handle = 0;

	pl__sigsafe_put(&l, "parklot: BUG: ");
	pl__sigsafe_put(&l, file);
	pl__sigsafe_put(&l, ":");
	pl__sigsafe_number(&l, line, 10);
	pl__sigsafe_put(&l, ": ");
	pl__sigsafe_put(&l, what);
	if (running_fn && running_fn(&name, &handle)) {
		pl__sigsafe_put(&l, ", in task '");
		pl__sigsafe_put(&l, name);
		pl__sigsafe_put(&l, "' (");
		pl__sigsafe_hex(&l, handle);
		pl__sigsafe_put(&l, ")");
	}
	pl__sigsafe_put(&l, "\n");
	pl__sigsafe_flush(&l);
	abort();
}

void pl__stack_die(const struct pl__stack *st)
{
	const char *name = "?";
	uint64_t handle = 0;

	if (running_fn)
		running_fn(&name, &handle);
	overflow_print(st, name, handle);
	pl__die_by(SIGSEGV);
}

static bool is_guard(const struct pl__stack *st, uintptr_t addr)
{
	uintptr_t base = (uintptr_t)st->base;

	return !st->canary && addr < base && addr >= base - st->guard_size;
}

/* Not a guard: behaves as if the library had no handler. */
static void handler_chain(int sig, siginfo_t *info, void *context)
{
	if (previous.sa_flags & SA_SIGINFO) {
		previous.sa_sigaction(sig, info, context);
	} else if (previous.sa_handler != SIG_DFL &&
		   previous.sa_handler != SIG_IGN) {
		previous.sa_handler(sig);
	} else {
		/*
		 * A fault comes again at once; a signal that was sent does not.
		 */
		signal(sig, SIG_DFL);
		if (info->si_code <= 0)
			raise(sig);
	}
}

static void handle_fault(int sig, siginfo_t *info, void *context)
{
	const char *name = "?";
	uint64_t handle = 0;
	const struct pl__stack *st = running_fn ? running_fn(&name, &handle) :
						  NULL;

	if (!st || !is_guard(st, (uintptr_t)info->si_addr)) {
		handler_chain(sig, info, context);
		return;
	}
	overflow_print(st, name, handle);
	signal(sig, SIG_DFL);
}

static void handler_install(void)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO | SA_ONSTACK }, old;

	sa.sa_sigaction = handle_fault;
	sigemptyset(&sa.sa_mask);
	/* handle_fault() reads the previous handler once it is installed. */
	pl__lock(&install_lock);
	if (!is_installed && !sigaction(SIGSEGV, NULL, &old)) {
		/* A fork() may have happened between these two statements. */
		if (old.sa_sigaction != handle_fault)
			previous = old;
		is_installed = !sigaction(SIGSEGV, &sa, NULL);
	}
	pl__unlock(&install_lock);
}

static void stack_guard_atfork_child(void)
{
	install_lock = (struct pl__lock){ 0 };
}

PL_ATFORK_CHILD(stack_guard_atfork_child);

int pl__stack_thread_init(void **sigstack)
{
	stack_t ss = { .ss_size = SIGSTACK_SIZE };

	handler_install();
	ss.ss_sp = *sigstack = pl__map(SIGSTACK_SIZE);
	if (!ss.ss_sp)
		return -ENOMEM;
	sigaltstack(&ss, NULL);
	return 0;
}

void pl__stack_thread_fini(void *sigstack)
{
	stack_t ss = { .ss_flags = SS_DISABLE };

	if (!sigstack)
		return;
	sigaltstack(&ss, NULL);
	pl__unmap(sigstack, SIGSTACK_SIZE);
}
