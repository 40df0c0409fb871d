/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which tests of a program run: those that -t names, or else all that the
 * environment does not leave out, which are listed by -l.
 *
 *   TEST_TIMED=without	the tests that TEST_TIMED() names are left out
 *   TEST_TIMED=only	all others are
 *   TEST_OPEN=NAMES	these are, as "PROGRAM.TEST PROGRAM.TEST"
 *   TEST_ONLY=NAMES	all but these are
 *
 * A part of kselftest_harness.h, which includes it.
 */
#ifndef SELFTESTS_KSELFTEST_CHOICE_H
#define SELFTESTS_KSELFTEST_CHOICE_H

/* What is said of the tests of a name. */
struct __test_note {
	const char		*kind, *name, *why;
	struct __test_note	*next;
};

static struct __test_note *__test_notes;

#define __TEST_NOTE(_kind, _test, _why) \
	static struct __test_note __##_kind##_##_test = { \
		.kind = #_kind, .name = #_test, .why = _why, \
	}; \
	static void __attribute__((constructor)) \
	__register_##_kind##_##_test(void) \
	{ \
		__##_kind##_##_test.next = __test_notes; \
		__test_notes = &__##_kind##_##_test; \
	}

/*
 * TEST_TIMED(test, why): a clock, a share of a processor, or luck decides this
 * test of the file, as @why says.  No gate may hang on it, but in virtual time:
 * the simulation's, or that of a guest that counts instructions.
 */
#define TEST_TIMED(_test, _why)	__TEST_NOTE(TEST_TIMED, _test, _why)

/*
 * TEST_REAL(test, why): this test, or those of a fixture, need what the
 * simulation (lib/sim) does not have, as @why says: it leaves them out.
 */
#define TEST_REAL(_test, _why)	__TEST_NOTE(TEST_REAL, _test, _why)

/* A name without fixture, or without variant, matches several tests. */
static inline bool __test_named(struct __test_metadata *t,
				const struct __test_variant *v,
				const char *name)
{
	size_t len = t->fixture ? strlen(t->fixture->name) : 0;

	__test_set_variant(t, v);
	return !strcmp(t->title, name) || !strcmp(t->name, name) ||
	       (len && !strncmp(t->fixture->name, name, len) &&
		name[len] == '.' && !strcmp(t->name, name + len + 1));
}

static inline bool __test_is(const struct __test_metadata *t, const char *kind)
{
	const struct __test_note *n;

	for (n = __test_notes; n; n = n->next)
		if (!strcmp(n->kind, kind) &&
		    (!strcmp(n->name, t->name) ||
		     (t->fixture && !strcmp(n->name, t->fixture->name))))
			return true;
	return false;
}

/* Returns true if the names, with a blank between two, have PROGRAM.TITLE. */
static inline bool __test_is_among(const struct __test_metadata *t,
				   const char *names)
{
	size_t prog = strlen(program_invocation_short_name);
	size_t title = strlen(t->title);

	for (; names && *names; names += strcspn(names, " ")) {
		names += strspn(names, " ");
		if (!strncmp(names, program_invocation_short_name, prog) &&
		    names[prog] == '.' &&
		    !strncmp(names + prog + 1, t->title, title) &&
		    strchr(" ", names[prog + 1 + title]))
			return true;
	}
	return false;
}

/* Returns true if the environment leaves the test out. */
static inline bool __test_is_left_out(const struct __test_metadata *t)
{
	const char *timed = getenv("TEST_TIMED"), *only = getenv("TEST_ONLY");

	if (timed && !strcmp(timed, __test_is(t, "TEST_TIMED") ? "without" :
								 "only"))
		return true;
#ifdef PL_SIM
	if (__test_is(t, "TEST_REAL"))
		return true;
#endif
	return __test_is_among(t, getenv("TEST_OPEN")) ||
	       (only && *only && !__test_is_among(t, only));
}

/* Returns true if a -t names the test, or if there is no -t. */
static inline bool __test_wanted(struct __test_metadata *t,
				 const struct __test_variant *v, int argc,
				 char **argv)
{
	bool any = false;
	int i;

	__test_set_variant(t, v);
	for (i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "-t"))
			continue;
		if (__test_named(t, v, argv[++i]))
			return true;
		any = true;
	}
	return !any && !__test_is_left_out(t);
}

static inline int __test_usage(const char *prog, bool is_error)
{
	fprintf(is_error ? stderr : stdout,
		"usage: %s [-l] [-t NAME]...\n"
		"  -l       list the tests\n"
		"  -t NAME  run only this test (may be repeated)\n", prog);
	return is_error ? 1 : 0;
}

static inline bool __test_is_known(const char *name)
{
	const struct __test_variant *v;
	struct __test_metadata *t;

	__for_each_run(t, v)
		if (__test_named(t, v, name))
			return true;
	return false;
}

static inline void __test_list(void)
{
	const struct __test_variant *v;
	struct __test_metadata *t;

	__for_each_run(t, v)
		if (__test_wanted(t, v, 0, NULL))
			printf("%s\n", t->title);
}

static inline bool __test_note_is_sound(const struct __test_note *n)
{
	const struct __test_variant *v;
	struct __test_metadata *t;

	__for_each_run(t, v)
		if (*n->why && (__test_named(t, v, n->name) ||
				(t->fixture &&
				 !strcmp(t->fixture->name, n->name))))
			return true;
	return false;
}

/* Returns false, and says so, if the environment or a note is wrong. */
static inline bool __test_notes_are_sound(const char *prog)
{
	const char *which = getenv("TEST_TIMED");
	const struct __test_note *n;

	if (which && strcmp(which, "without") && strcmp(which, "only")) {
		fprintf(stderr, "%s: TEST_TIMED=%s: without, or only\n", prog,
			which);
		return false;
	}
	for (n = __test_notes; n; n = n->next) {
		if (!__test_note_is_sound(n)) {
			fprintf(stderr, "%s: %s(%s, \"%s\"): no test, or no reason\n",
				prog, n->kind, n->name, n->why);
			return false;
		}
	}
	return true;
}

/* Returns -1 to go on, or the exit status. */
static inline int __test_options(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help"))
			return __test_usage(argv[0], false);
		if (!strcmp(argv[i], "-l")) {
			__test_list();
			return 0;
		}
		if (strcmp(argv[i], "-t") || ++i == argc)
			return __test_usage(argv[0], true);
		if (!__test_is_known(argv[i])) {
			fprintf(stderr, "%s: no test %s\n", argv[0], argv[i]);
			return 1;
		}
	}
	return -1;
}

#endif /* SELFTESTS_KSELFTEST_CHOICE_H */
