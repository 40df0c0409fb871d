/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Signals are real: when one arrives is not the seed's choice.  So a handler
 * may not reach a point; but for those of the process's own faults, which say
 * what is wrong and end it.
 */
#include "sim/sim.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static struct sigaction handlers[NSIG];

static __thread int nr_handlers, nr_faults
	__attribute__((tls_model("initial-exec")));

bool pl__sim_in_handler(bool *of_fault)
{
	*of_fault = nr_faults;
	return nr_handlers;
}

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE ||
	       sig == SIGILL || sig == SIGTRAP || sig == SIGABRT ||
	       sig == SIGSYS;
}

static void handle(int sig, siginfo_t *info, void *context)
{
	struct sigaction sa = handlers[sig];

	nr_handlers++;
	nr_faults += is_fault(sig);
	if (sa.sa_flags & SA_SIGINFO)
		sa.sa_sigaction(sig, info, context);
	else
		sa.sa_handler(sig);
	nr_faults -= is_fault(sig);
	nr_handlers--;
}

static bool has_handler(const struct sigaction *sa)
{
	return sa->sa_flags & SA_SIGINFO ||
	       (sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN);
}

PL__SIM_API int sigaction(int sig, const struct sigaction *sa,
			  struct sigaction *old)
{
	struct sigaction ours, before;
	int ret;

	if (sig <= 0 || sig >= NSIG)
		return PL__SIM_REAL(sigaction)(sig, sa, old);
	before = handlers[sig];
	if (sa && has_handler(sa)) {
		ours = *sa;
		ours.sa_sigaction = handle;
		ours.sa_flags |= SA_SIGINFO;
		handlers[sig] = *sa;
		ret = PL__SIM_REAL(sigaction)(sig, &ours, old);
	} else {
		ret = PL__SIM_REAL(sigaction)(sig, sa, old);
	}
	if (!ret && old && old->sa_flags & SA_SIGINFO &&
	    old->sa_sigaction == handle)
		*old = before;
	return ret;
}

PL__SIM_API sighandler_t signal(int sig, sighandler_t fn)
{
	struct sigaction sa = { .sa_handler = fn, .sa_flags = SA_RESTART }, old;

	return sigaction(sig, &sa, &old) ? SIG_ERR : old.sa_handler;
}
