// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Two tasks on one worker hand a turn to and fro; a round trip is both ways
 */
#include "../lib/task.h"

#define NR_TRIPS	200000

static struct pl_mutex mutex;
static struct pl_cond cond;
static struct pl_word word;
static uint32_t turn;

static void play_cond(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;
	int i;

	for (i = 0; i < NR_TRIPS; i++) {
		pl_mutex_lock(&mutex);
		while (turn != me)
			pl_cond_wait(&cond, &mutex);
		turn = !me;
		pl_cond_signal(&cond);
		pl_mutex_unlock(&mutex);
	}
}

static void play_word(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;
	int i;

	for (i = 0; i < NR_TRIPS; i++) {
		while (atomic_load(&word.value) != me)
			pl_word_wait(&word, !me, PL_FOREVER);
		atomic_store(&word.value, !me);
		pl_word_wake(&word, 1);
	}
}

static void both(const char *name, void (*play)(void *arg))
{
	pl_task_t a, b;

	bench_begin();
	a = spawn(play, (void *)0);
	b = spawn(play, (void *)1);
	pl_join(a);
	pl_join(b);
	bench_put_busy(name, NR_TRIPS);
}

static void both_cond(void *arg)
{
	(void)arg;
	both("cond", play_cond);
}

static void both_word(void *arg)
{
	(void)arg;
	both("word", play_word);
}

static void by_cond(void)
{
	in_task(1, both_cond, NULL);
}

static void by_word(void)
{
	in_task(1, both_word, NULL);
}

int main(int argc, char **argv)
{
	static const struct bench_case cases[] = {
		{ "cond", by_cond },
		{ "word", by_word },
		{ NULL, NULL },
	};

	return bench_main(argc, argv, "pingpong", cases);
}
