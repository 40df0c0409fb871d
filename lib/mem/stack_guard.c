/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * stack_guard: a task that overflows its stack dies with a line that names it,
 * and so does a task that hits a bug of the library
 */
#include "mem/stack.h"
#include "base/atfork.h"
#include "base/sys.h"
#include "base/sigsafe_buf.h"

#include <signal.h>

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
