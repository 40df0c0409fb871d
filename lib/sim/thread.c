/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "sim/device.h"
#include "sim/state.h"
#include "sim/uring.h"

#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TID_BASE	0x400000	/* above what the kernel gives */

struct pl__sim_thread *pl__sim_self(void)
{
	return pl__sim_me;
}

static bool is_gone(const struct pl__sim_thread *t)
{
	return t->state == PL__SIM_ENDED && (t->is_joined || t->is_detached);
}

struct pl__sim_thread *pl__sim_thread_add(void)
{
	struct pl__sim_thread *t;

	pl__sim_for_each(t)
		if (is_gone(t) && t != pl__sim.ended)
			break;
	if (t == pl__sim_threads + PL__SIM_MAX_THREADS)
		pl__sim_fail("more than %d threads", PL__SIM_MAX_THREADS);
	if (t == pl__sim_threads + pl__sim_nr_threads)
		pl__sim_nr_threads++;
	memset(t, 0, sizeof(*t));
	t->cpus = pl__sim_me ? pl__sim_me->cpus :
			       UINT64_MAX >> (64 - pl__sim.nr_cpus);
	t->prio = PL__SIM_MAX_CHANGES + pl__sim_random() % 1000000;
	t->deadline_ns = PL__SIM_FOREVER;
	if (pl__sim_is_machine())
		pl__sim_machine_add(t);
	return t;
}

struct pl__sim_thread *pl__sim_thread_of(pthread_t id)
{
	struct pl__sim_thread *t;

	pl__sim_for_each(t)
		if (pthread_equal(t->id, id) && !is_gone(t))
			return t;
	return NULL;
}

struct pl__sim_thread *pl__sim_thread_by_tid(int tid)
{
	struct pl__sim_thread *t;

	if (!tid)
		return pl__sim_me;
	pl__sim_for_each(t)
		if (t->state != PL__SIM_ENDED &&
		    (tid == pl__sim_tid(t) || tid == t->real_tid))
			return t;
	return NULL;
}

int pl__sim_tid(const struct pl__sim_thread *t)
{
	return TID_BASE + (int)(t - pl__sim_threads);
}

uint64_t pl__sim_cpu_ns(const struct pl__sim_thread *t)
{
	return t->ran_ns + (t->state == PL__SIM_COMPUTES ?
			    pl__sim.now_ns - t->since_ns : 0);
}

uint64_t pl__sim_cpu_ns_all(void)
{
	struct pl__sim_thread *t;
	uint64_t sum = 0;

	pl__sim_for_each(t)
		sum += pl__sim_cpu_ns(t);
	return sum;
}

void pl__sim_thread_first(struct pl__sim_thread *t)
{
	pl__sim_me = t;
	t->real_tid = (int)PL__SIM_REAL(syscall)(SYS_gettid);
	pl__sim_await_turn(t);
	pl__sim_pass("start");
}

void pl__sim_thread_last(void)
{
	pl__sim_pass("end");
	pl__sim_uring_thread_ends();
	pl__sim_device_thread_ends();
	pl__sim_me->state = PL__SIM_ENDED;
	pl__sim.ended = pl__sim_me;
	pl__sim_switch();
}

/*
 * A thread that ended is gone when the next one goes on; but for its id, which
 * is nobody else's until it is joined.
 */
void pl__sim_thread_reap(struct pl__sim_thread *t)
{
	if (t->is_detached) {
		PL__SIM_REAL(pthread_join)(t->id, NULL);
		return;
	}
	while (!PL__SIM_REAL(syscall)(SYS_tgkill, getpid(), t->real_tid, 0))
		PL__SIM_REAL(sched_yield)();
}

uint32_t pl__sim_nr_cpus(void)
{
	return pl__sim.nr_cpus;
}

/* Addresses, the same in each run, and those of the C library's functions. */
#include "sim/sim.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <unistd.h>

#define NUMBERS_BITS	20

/*
 * Before main(): a program that makes something of an address, such as a random
 * number, does the same in each run.  Where it is forbidden, it does not.
 */
static void __attribute__((constructor(101)))
fix_addresses(int argc, char **argv, char **envp)
{
	int now = personality(0xffffffff);
	char path[4096];
	ssize_t n;

	(void)argc;
	if (now < 0 || now & ADDR_NO_RANDOMIZE)
		return;
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n <= 0 || personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0)
		return;
	path[n] = '\0';
	execve(path, argv, envp);
}

void *pl__sim_look_up(struct pl__sim_symbol *s)
{
	s->fn = dlsym(RTLD_NEXT, s->name);
	if (!s->fn) {
		dprintf(STDERR_FILENO, "sim: the C library has no %s()\n",
			s->name);
		abort();
	}
	return s->fn;
}

/* What the linker names: all of PL__SIM_REAL(). */
extern struct pl__sim_symbol __start_pl_sim_symbols[], __stop_pl_sim_symbols[]
	__attribute__((visibility("hidden")));

static void __attribute__((constructor(102))) look_all_up(void)
{
	struct pl__sim_symbol *s = __start_pl_sim_symbols;

	/* A program may lack a library of which it calls nothing. */
	for (; s < __stop_pl_sim_symbols; s++)
		s->fn = dlsym(RTLD_NEXT, s->name);
}

uint64_t pl__sim_number(const void *address)
{
	static struct {
		const void	*address;
		uint32_t	number;
	} numbers[1U << NUMBERS_BITS];
	static uint32_t nr;
	uint32_t i = (uint32_t)((uintptr_t)address * 0x9e3779b97f4a7c15ULL >>
				(64 - NUMBERS_BITS));

	for (;; i = (i + 1) % (1U << NUMBERS_BITS)) {
		if (numbers[i].address == address)
			return (uint64_t)numbers[i].number << 6;
		if (!numbers[i].address)
			break;
	}
	/* Half full: numbers of later addresses are all the same. */
	if (nr < 1U << (NUMBERS_BITS - 1)) {
		numbers[i].address = address;
		numbers[i].number = ++nr;
	}
	return (uint64_t)nr << 6;
}
