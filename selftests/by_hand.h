/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A test that is a soak too, for as long as somebody likes:
 *
 *	lib_x [--seconds N] [--seed S] [--workers W]
 *
 * or LIB_X_SECONDS, LIB_X_SEED and LIB_X_WORKERS in the environment.  Who says
 * any of these means the one test that does as it is told; without them it is a
 * program like any other.
 */
#ifndef SELFTESTS_BY_HAND_H
#define SELFTESTS_BY_HAND_H

#include "harness.h"

/* As said; 0 if not. */
static struct by_hand {
	double		seconds;
	uint64_t	seed;
	uint32_t	workers;
} by_hand;

static const char *const by_hand_options[] = {
	"--seconds", "--seed", "--workers",
};

#define BY_HAND_NR (sizeof(by_hand_options) / sizeof(by_hand_options[0]))

/* The seed to begin with, which is not 0. */
static inline uint64_t by_hand_seed(uint64_t otherwise)
{
	return by_hand.seed ? by_hand.seed : otherwise | 1;
}

/* What is said of it by an option or in the environment; or NULL. */
static inline const char *by_hand_said(int argc, char **argv,
				       const char *prefix, size_t nth)
{
	char name[64];
	int i;

	for (i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], by_hand_options[nth]))
			return argv[i + 1];
	snprintf(name, sizeof(name), "%s_%s", prefix, by_hand_options[nth] + 2);
	for (i = 0; name[i]; i++)
		if (name[i] >= 'a' && name[i] <= 'z')
			name[i] -= 'a' - 'A';
	return getenv(name);
}

static inline bool by_hand_is_option(const char *arg)
{
	size_t i;

	for (i = 0; i < BY_HAND_NR; i++)
		if (!strcmp(arg, by_hand_options[i]))
			return true;
	return false;
}

/* @text is a number above 0; or the program ends. */
static inline double by_hand_positive(const char *option, const char *text)
{
	char *end;
	double n = strtod(text, &end);

	if (n > 0 && !*end)
		return n;
	fprintf(stderr, "%s %s: not a number above 0\n", option, text);
	exit(1);
}

/* What main() does: @prefix as in "LIB_X", @test that does as it is told. */
static inline int by_hand_main(int argc, char **argv, const char *prefix,
			       char *test)
{
	char *alone[] = { argv[0], "-t", test, NULL };
	double said[BY_HAND_NR] = { 0 };
	bool is_by_hand = false;
	const char *text;
	size_t i;

	for (i = 0; i < BY_HAND_NR; i++) {
		text = by_hand_said(argc, argv, prefix, i);
		if (!text)
			continue;
		said[i] = by_hand_positive(by_hand_options[i], text);
		is_by_hand = true;
	}
	by_hand = (struct by_hand){
		said[0], (uint64_t)said[1], (uint32_t)said[2],
	};
	if (is_by_hand && (argc == 1 || by_hand_is_option(argv[1])))
		return test_harness_run(3, alone);
	return test_harness_run(argc, argv);
}

#endif /* SELFTESTS_BY_HAND_H */
