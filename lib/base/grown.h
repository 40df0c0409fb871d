/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * grown: structs that the library fills in, and that grow at their end
 *
 * A caller's struct begins with its size, by the header that it was built with.
 * That of an older header is smaller than the library's, but has the fields of
 * the first one; that of a newer header is larger.
 */
#ifndef PL_GROWN_H
#define PL_GROWN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The size of a struct of which @field was the last in the first header. */
#define PL__GROWN_FIRST(type, field) \
	(offsetof(type, field) + sizeof(((type *)0)->field))

static inline size_t pl__grown_both(const void *callers, size_t known)
{
	size_t size = *(const size_t *)callers;

	return size < known ? size : known;
}

static inline bool pl__grown_is_valid(const void *callers, size_t first)
{
	return callers && *(const size_t *)callers >= first;
}

/* Reads a valid struct to @own, of @known bytes; what it lacks is 0. */
static inline void pl__grown_read(void *own, size_t known, const void *callers)
{
	memset(own, 0, known);
	memcpy(own, callers, pl__grown_both(callers, known));
}

/* Writes @own to a valid struct, which keeps its size. */
static inline void pl__grown_write(void *callers, const void *own, size_t known)
{
	memcpy((size_t *)callers + 1, (const size_t *)own + 1,
	       pl__grown_both(callers, known) - sizeof(size_t));
}

#endif /* PL_GROWN_H */
