/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * load [-t] OBJECT...: a C program with tasks that waited before the first
 * C++ runtime is loaded, with the last OBJECT, which has exceptions_run(); all
 * is loaded by the main thread, or with -t by a task.
 */
#include <dlfcn.h>
#include <parklot.h>
#include <stdio.h>
#include <string.h>

static char **object;
static int status = 1;

static void yield_often(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 1000; i++)
		pl_yield();
}

static void yield_all(void)
{
	pl_task_t t[4];
	int i;

	for (i = 0; i < 4; i++)
		pl_spawn(&t[i], yield_often, NULL, NULL);
	for (i = 0; i < 4; i++)
		pl_join(t[i]);
}

static void load(void *arg)
{
	int (*run)(void) = NULL;
	void *so;

	(void)arg;
	for (; *object; object++) {
		yield_all();
		so = dlopen(*object, RTLD_NOW | RTLD_LOCAL);
		if (!so) {
			puts(dlerror());
			return;
		}
		*(void **)&run = dlsym(so, "exceptions_run");
		/* What has none of it may go again. */
		if (!run)
			dlclose(so);
	}
	if (run)
		status = run();
}

int main(int argc, char **argv)
{
	struct pl_spawn_opts opts = PL_SPAWN_OPTS_INIT;
	pl_task_t t;

	object = argv + 1;
	opts.stack = PL_STACK_LARGE;
	if (argc > 1 && !strcmp(argv[1], "-t")) {
		object++;
		if (pl_spawn(&t, load, NULL, &opts) || pl_join(t))
			return 1;
	} else {
		load(NULL);
	}
	return pl_runtime_stop() || status;
}
