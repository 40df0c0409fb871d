/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program with short tests by default. Options or the environment may
 * give it settings instead; then it runs only the test that heeds the settings.
 * The harness is included before this header.
 */
#ifndef SELFTESTS_MANUAL_RUN_H
#define SELFTESTS_MANUAL_RUN_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct setting {
	const char	*option, *variable;
	uint64_t	*value;		/* unchanged by default */
	uint64_t	unit;		/* fractions of it are allowed; or 1 */
};

/* The text given by an option or in the environment; or NULL. */
static inline const char *setting_text(const struct setting *s, int argc,
				       char **argv)
{
	int i;

	for (i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], s->option))
			return argv[i + 1];
	return getenv(s->variable);
}

/* Returns 0 unless all of @text is a number above 0. */
static inline uint64_t setting_value(const struct setting *s, const char *text)
{
	uint64_t value;
	double n;
	char *end;

	errno = 0;
	if (s->unit == 1) {
		value = strtoull(text, &end, 0);
	} else {
		n = strtod(text, &end) * (double)s->unit;
		value = n >= 1 && n < 0x1p63 ? (uint64_t)n : 0;
	}
	return errno || *end || strchr(text, '-') ? 0 : value;
}

/* Returns true if @s is given; ends the program if it is not a number. */
static inline bool setting_take(const struct setting *s, int argc, char **argv)
{
	const char *text = setting_text(s, argc, argv);

	if (!text)
		return false;
	*s->value = setting_value(s, text);
	if (!*s->value) {
		fprintf(stderr, "%s: %s %s: not a number above 0\n", argv[0],
			s->option, text);
		exit(1);
	}
	return true;
}

/* main(): runs @test alone if any of the @nr @settings is given. */
static inline int manual_run_main(int argc, char **argv, char *test,
				  const struct setting *settings, size_t nr)
{
	char *args[] = { argv[0], "-t", test, NULL };
	bool is_said = false, is_option = argc == 1;
	size_t i;

	for (i = 0; i < nr; i++) {
		is_said |= setting_take(&settings[i], argc, argv);
		is_option |= argc > 1 && !strcmp(argv[1], settings[i].option);
	}
	if (is_said && is_option)
		return test_harness_run(3, args);
	return test_harness_run(argc, argv);
}

#endif /* SELFTESTS_MANUAL_RUN_H */
