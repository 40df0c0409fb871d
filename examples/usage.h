/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What all examples make of their arguments: they answer --help and --version,
 * and end with 2 and a word on standard error for what they do not know.
 */
#ifndef EXAMPLES_USAGE_H
#define EXAMPLES_USAGE_H

#include <getopt.h>
#include <parklot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last ones of a program's options. */
#define USAGE_OPTIONS \
	{ "help", no_argument, NULL, 'h' }, \
	{ "version", no_argument, NULL, 'v' }, \
	{ NULL, 0, NULL, 0 }

/* @opt is 'h', 'v', or not known; @usage begins with the program's name. */
static inline void __attribute__((noreturn)) usage_exit(int opt,
							const char *usage)
{
	if (opt == 'v')
		printf("%.*s of parklot %s\n", (int)strcspn(usage, " "), usage,
		       PARKLOT_VERSION);
	else
		fprintf(opt == 'h' ? stdout : stderr, "Usage: %s\n", usage);
	exit(opt == 'h' || opt == 'v' ? 0 : 2);
}

/*
 * The next option of @letters, or of @options if there are some, or -1 if up to
 * @most arguments are left.
 */
static inline int usage_option(int argc, char **argv, const char *letters,
			       const struct option *options, int most,
			       const char *usage)
{
	static const struct option none[] = { USAGE_OPTIONS };
	const int opt = getopt_long(argc, argv, letters,
				    options ? options : none, NULL);

	if (opt == 'h' || opt == 'v' || opt == '?' ||
	    (opt == -1 && argc - optind > most))
		usage_exit(opt, usage);
	return opt;
}

/* Of a program without other options: its arguments up to NULL. */
static inline char **usage_arguments(int argc, char **argv, int most,
				     const char *usage)
{
	usage_option(argc, argv, "", NULL, most, usage);
	return argv + optind;
}

/* @text is a number from @least to @most; @what says of what. */
static inline unsigned long usage_number(const char *what, const char *text,
					 unsigned long least,
					 unsigned long most)
{
	char *end;
	const unsigned long nr = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || nr < least || nr > most) {
		fprintf(stderr, "%s: '%s' is not from %lu to %lu\n", what, text,
			least, most);
		exit(2);
	}
	return nr;
}

#endif /* EXAMPLES_USAGE_H */
