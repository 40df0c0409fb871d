/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is dumped, to be read by tests.  rt.h is included before this.
 */
#ifndef SELFTESTS_DUMP_H
#define SELFTESTS_DUMP_H

static char text[1 << 20];

/* What is dumped, or NULL: this kernel does not let us read our memory. */
static inline const char *dumped(void)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	ssize_t n;
	int ret;

	ASSERT_LE(0, fd);
	ret = pl_dump(fd);
	if (ret != -EPERM)
		EXPECT_EQ(0, ret);
	n = pread(fd, text, sizeof(text) - 1, 0);
	ASSERT_LE(0, n);
	text[n] = '\0';
	close(fd);
	return ret == -EPERM ? NULL : text;
}

/* The line of the task @name that says @words. */
static inline const char *line_of(const char *name, const char *words)
{
	static char line[512];
	char quoted[64];
	const char *at, *end;

	snprintf(quoted, sizeof(quoted), "'%s' ", name);
	for (at = text; (at = strstr(at, "task ")); at = end) {
		end = strchr(at, '\n');
		if (!end)
			return NULL;
		snprintf(line, sizeof(line), "%.*s", (int)(end - at), at);
		if (strstr(line, quoted) && strstr(line, words))
			return line;
	}
	return NULL;
}

#define EXPECT_SAYS(name, words) do { \
	bool __says = line_of(name, words); \
	EXPECT_TRUE(__says); \
	if (!__says) \
		TH_LOG("no '%s' that %s in:\n%s", name, words, text); \
} while (0)

static inline bool can_dump(void)
{
	return pl_runtime_start(NULL) <= 0 && dumped();
}

#define NEEDS_DUMP() do { \
	if (!can_dump()) \
		SKIP(return, "no process_vm_readv() here"); \
} while (0)

static inline void sleep_long(void *arg)
{
	pl_sleep(3600 * NSEC_PER_SEC);
}

static inline void cancel_and_join(pl_task_t *t, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, pl_cancel(t[i]));
	for (i = 0; i < nr; i++)
		join(t[i]);
}

#endif /* SELFTESTS_DUMP_H */
