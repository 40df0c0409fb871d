/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#include "debug/dump.h"
#include "base/atfork.h"
#include "base/sys.h"

#include <semaphore.h>
#include <signal.h>

static sem_t asked;
static bool has_asked;
static _Atomic bool is_stopping;
static pthread_t thread;
static bool is_started;

static void on_signal(int sig)
{
	(void)sig;
	sem_post(&asked);
}

/* Several requests before a dump begins get one dump. */
static void wait_until_asked(void)
{
	while (sem_wait(&asked))
		;
	while (!sem_trywait(&asked))
		;
}

static void *dump_signal_main(void *arg)
{
	sigset_t set;

	pl__thread_name("pl-dump");
	sigemptyset(&set);
	sigaddset(&set, (int)(intptr_t)arg);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	for (;;) {
		wait_until_asked();
		if (load_acquire(&is_stopping))
			return NULL;
		pl_dump(2);
	}
}

int pl__dump_signal_start(int sig)
{
	struct sigaction sa = { .sa_handler = on_signal,
				.sa_flags = SA_RESTART };
	int ret;

	if (!sig)
		return 0;
	store_relaxed(&is_stopping, false);
	/* Once: late signals may still use it. */
	if (!has_asked)
		has_asked = !sem_init(&asked, 0, 0);
	sigfillset(&sa.sa_mask);
	ret = pl__signal_handle(sig, &sa);
	if (!ret)
		ret = pl__thread_start(&thread, dump_signal_main,
				       (void *)(intptr_t)sig);
	is_started = !ret;
	return ret;
}

void pl__dump_signal_stop(void)
{
	if (!is_started)
		return;
	is_started = false;
	store_release(&is_stopping, true);
	sem_post(&asked);
	pthread_join(thread, NULL);
}

static void dump_signal_atfork_child(void)
{
	is_started = false;
}

PL_ATFORK_CHILD(dump_signal_atfork_child);
