/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Threads, and what they wait for one another with: the C library's functions
 * do the work, as far as they need not wait.
 */
#include "sim/sim.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t deadline_of(const struct timespec *ts, clockid_t clock)
{
	struct timespec now, mono;

	/* As those of libc_time.c say it. */
	clock_gettime(clock, &now);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	return pl__sim_ns(ts) - pl__sim_ns(&now) + pl__sim_ns(&mono);
}

/* ---- threads ---- */

/*
 * The destructors of a thread's own data run before it gives away its turn.
 * They run in up to four rounds, of which this key is in the last.
 */
static pthread_key_t last_key;
static pthread_once_t last_once = PTHREAD_ONCE_INIT;

static void last_round(void *round)
{
	uintptr_t nr = (uintptr_t)round;

	if (nr < 4)
		pthread_setspecific(last_key, (void *)(nr + 1));
	else
		pl__sim_thread_last();
}

static void last_create(void)
{
	if (pthread_key_create(&last_key, last_round))
		abort();
}

static void *thread_main(void *arg)
{
	struct pl__sim_thread *t = arg;

	pthread_setspecific(last_key, (void *)1);
	pl__sim_thread_first(t);
	t->result = t->fn(t->fn_arg);
	return t->result;
}

PL__SIM_API int pthread_create(pthread_t *out, const pthread_attr_t *attr,
			       void *(*fn)(void *), void *arg)
{
	struct pl__sim_thread *t;
	int detached = PTHREAD_CREATE_JOINABLE, ret;
	pthread_attr_t own;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(pthread_create)(out, attr, fn, arg);
	pthread_once(&last_once, last_create);
	if (attr) {
		own = *attr;
		pthread_attr_getdetachstate(attr, &detached);
		pthread_attr_setdetachstate(&own, PTHREAD_CREATE_JOINABLE);
	}
	pl__sim_point("pthread_create");
	t = pl__sim_thread_add();
	t->fn = fn;
	t->fn_arg = arg;
	t->is_detached = detached == PTHREAD_CREATE_DETACHED;
	ret = PL__SIM_REAL(pthread_create)(&t->id, attr ? &own : NULL,
					   thread_main, t);
	if (ret) {
		t->state = PL__SIM_ENDED;
		t->is_joined = true;
		return ret;
	}
	*out = t->id;
	pl__sim_point("pthread_create-done");
	return 0;
}

static bool thread_has_ended(void *arg)
{
	return ((struct pl__sim_thread *)arg)->state == PL__SIM_ENDED;
}

PL__SIM_API int pthread_join(pthread_t id, void **result)
{
	struct pl__sim_thread *t;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(pthread_join)(id, result);
	pl__sim_point("pthread_join");
	t = pl__sim_thread_of(id);
	if (!t)
		return ESRCH;
	if (t->is_detached)
		return EINVAL;
	if (t == pl__sim_self())
		return EDEADLK;
	if (t->state != PL__SIM_ENDED)
		pl__sim_sleep("pthread_join", NULL, thread_has_ended, t,
			      PL__SIM_FOREVER);
	t->is_joined = true;
	if (result)
		*result = t->result;
	return PL__SIM_REAL(pthread_join)(id, NULL);
}

PL__SIM_API int pthread_detach(pthread_t id)
{
	struct pl__sim_thread *t;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(pthread_detach)(id);
	pl__sim_point("pthread_detach");
	t = pl__sim_thread_of(id);
	if (!t)
		return ESRCH;
	t->is_detached = true;
	return t->state == PL__SIM_ENDED ? PL__SIM_REAL(pthread_detach)(id) : 0;
}

PL__SIM_API void pthread_exit(void *result)
{
	if (pl__sim_is_on && pl__sim_self())
		pl__sim_self()->result = result;
	PL__SIM_REAL(pthread_exit)(result);
	__builtin_unreachable();
}

PL__SIM_API int sched_yield(void)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(sched_yield)();
	pl__sim_point("sched_yield");
	return 0;
}

PL__SIM_API pid_t fork(void)
{
	if (pl__sim_is_on)
		pl__sim_point("fork");
	return PL__SIM_REAL(fork)();
}

/* It is another process, and not simulated. */
static void child_begins(void)
{
	pl__sim_is_on = false;
}

/* First of all, so that it is first in a child, too. */
static void __attribute__((constructor(101))) watch_forks(void)
{
	pthread_atfork(NULL, NULL, child_begins);
}

/* ---- mutexes and conditions ---- */

static int mutex_lock_until(pthread_mutex_t *m, uint64_t deadline_ns)
{
	int ret;

	pl__sim_point("pthread_mutex_lock");
	while ((ret = PL__SIM_REAL(pthread_mutex_trylock)(m)) == EBUSY)
		if (!pl__sim_sleep("pthread_mutex_lock", m, NULL, NULL,
				   deadline_ns))
			return ETIMEDOUT;
	return ret;
}

PL__SIM_API int pthread_mutex_lock(pthread_mutex_t *m)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(pthread_mutex_lock)(m);
	return mutex_lock_until(m, PL__SIM_FOREVER);
}

PL__SIM_API int pthread_mutex_timedlock(pthread_mutex_t *m,
					const struct timespec *until)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(pthread_mutex_timedlock)(m, until);
	return mutex_lock_until(m, deadline_of(until, CLOCK_REALTIME));
}

PL__SIM_API int pthread_mutex_unlock(pthread_mutex_t *m)
{
	int ret = PL__SIM_REAL(pthread_mutex_unlock)(m);

	if (pl__sim_is_on) {
		pl__sim_wake(m, 1);
		pl__sim_point("pthread_mutex_unlock");
	}
	return ret;
}

static int cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m,
			   uint64_t deadline_ns)
{
	bool woken;
	int ret;

	pl__sim_point("pthread_cond_wait");
	ret = PL__SIM_REAL(pthread_mutex_unlock)(m);
	if (ret)
		return ret;
	pl__sim_wake(m, 1);
	woken = pl__sim_sleep("pthread_cond_wait", c, NULL, NULL, deadline_ns);
	ret = mutex_lock_until(m, PL__SIM_FOREVER);
	return ret ? ret : woken ? 0 : ETIMEDOUT;
}

PL__SIM_API int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(pthread_cond_wait)(c, m);
	return cond_wait_until(c, m, PL__SIM_FOREVER);
}

/* That the clock is another one, by an attribute, cannot be seen here. */
PL__SIM_API int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
				       const struct timespec *until)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(pthread_cond_timedwait)(c, m, until);
	return cond_wait_until(c, m, deadline_of(until, CLOCK_REALTIME));
}

PL__SIM_API int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m,
				       clockid_t clock,
				       const struct timespec *until)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(pthread_cond_clockwait)(c, m, clock, until);
	return cond_wait_until(c, m, deadline_of(until, clock));
}

static int cond_wake(pthread_cond_t *c, int nr)
{
	pl__sim_point("pthread_cond_signal");
	pl__sim_wake(c, nr);
	return 0;
}

PL__SIM_API int pthread_cond_signal(pthread_cond_t *c)
{
	return pl__sim_is_on ? cond_wake(c, 1) :
			       PL__SIM_REAL(pthread_cond_signal)(c);
}

PL__SIM_API int pthread_cond_broadcast(pthread_cond_t *c)
{
	return pl__sim_is_on ? cond_wake(c, INT32_MAX) :
			       PL__SIM_REAL(pthread_cond_broadcast)(c);
}

/* ---- semaphores ---- */

static int sem_wait_until(sem_t *sem, uint64_t deadline_ns)
{
	pl__sim_point("sem_wait");
	while (PL__SIM_REAL(sem_trywait)(sem)) {
		if (errno != EAGAIN)
			return -1;
		if (!pl__sim_sleep("sem_wait", sem, NULL, NULL, deadline_ns)) {
			errno = ETIMEDOUT;
			return -1;
		}
	}
	return 0;
}

PL__SIM_API int sem_wait(sem_t *sem)
{
	return pl__sim_is_on ? sem_wait_until(sem, PL__SIM_FOREVER) :
			       PL__SIM_REAL(sem_wait)(sem);
}

PL__SIM_API int sem_timedwait(sem_t *sem, const struct timespec *until)
{
	if (!pl__sim_is_on)
		return PL__SIM_REAL(sem_timedwait)(sem, until);
	return sem_wait_until(sem, deadline_of(until, CLOCK_REALTIME));
}

PL__SIM_API int sem_trywait(sem_t *sem)
{
	pl__sim_point("sem_trywait");
	return PL__SIM_REAL(sem_trywait)(sem);
}

PL__SIM_API int sem_post(sem_t *sem)
{
	int ret = PL__SIM_REAL(sem_post)(sem);

	if (pl__sim_is_on) {
		pl__sim_wake(sem, 1);
		pl__sim_point("sem_post");
	}
	return ret;
}

/* ---- barriers ---- */

#define MAX_BARRIERS	64

static struct barrier {
	pthread_barrier_t	*at;
	unsigned int		nr, inside;
	uint64_t		round;
} barriers[MAX_BARRIERS];

static struct barrier *barrier_of(const pthread_barrier_t *at)
{
	int i;

	for (i = 0; i < MAX_BARRIERS; i++)
		if (barriers[i].at == at)
			return &barriers[i];
	return NULL;
}

PL__SIM_API int pthread_barrier_init(pthread_barrier_t *at,
				     const pthread_barrierattr_t *attr,
				     unsigned int nr)
{
	int ret = PL__SIM_REAL(pthread_barrier_init)(at, attr, nr);
	struct barrier *b;

	if (ret || !pl__sim_is_on)
		return ret;
	b = barrier_of(NULL);
	if (!b)
		pl__sim_fail("more than %d barriers", MAX_BARRIERS);
	*b = (struct barrier){ .at = at, .nr = nr };
	return 0;
}

PL__SIM_API int pthread_barrier_destroy(pthread_barrier_t *at)
{
	struct barrier *b = pl__sim_is_on ? barrier_of(at) : NULL;

	if (b)
		b->at = NULL;
	return PL__SIM_REAL(pthread_barrier_destroy)(at);
}

PL__SIM_API int pthread_barrier_wait(pthread_barrier_t *at)
{
	struct barrier *b;
	uint64_t round;

	if (!pl__sim_is_on)
		return PL__SIM_REAL(pthread_barrier_wait)(at);
	pl__sim_point("pthread_barrier_wait");
	b = barrier_of(at);
	if (!b)
		return EINVAL;
	round = b->round;
	if (++b->inside == b->nr) {
		b->inside = 0;
		b->round++;
		pl__sim_wake(b, INT32_MAX);
		pl__sim_point("pthread_barrier_wait-last");
		return PTHREAD_BARRIER_SERIAL_THREAD;
	}
	while (b->round == round)
		pl__sim_sleep("pthread_barrier_wait", b, NULL, NULL,
			      PL__SIM_FOREVER);
	return 0;
}

/*
 * Signals are real: when one arrives is not the seed's choice.  So a handler
 * may not reach a point; but for those of the process's own faults, which say
 * what is wrong and end it.
 */

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
