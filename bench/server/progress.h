/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A progress bar on stderr, drawn only where there is a terminal to watch it
 *
 * The caller must have called setlocale(): a locale that is not UTF-8 gets a
 * bar of ASCII characters.
 */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <langinfo.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_CELLS	32U

static inline bool progress_is_shown(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
}

/* Draw @done of @whole, and @text behind the bar. */
static inline void progress_draw(double done, double whole, const char *text)
{
	const bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	const char *full = utf8 ? "\u2588" : "#";
	const char *empty = utf8 ? "\u2591" : "-";
	unsigned int i, nr = PROGRESS_CELLS;

	if (!progress_is_shown())
		return;
	if (done < whole)
		nr = (unsigned int)(done / whole * PROGRESS_CELLS);
	fputs("\r  ", stderr);
	for (i = 0; i < PROGRESS_CELLS; i++)
		fputs(i < nr ? full : empty, stderr);
	fprintf(stderr, "  %s\033[K", text);
	fflush(stderr);
}

/* Leave no trace of the bar. */
static inline void progress_clear(void)
{
	if (progress_is_shown())
		fputs("\r\033[K", stderr);
}

#endif /* BENCH_PROGRESS_H */
