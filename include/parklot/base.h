/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What every header of parklot begins with; <parklot.h> includes them all.
 */
#ifndef PARKLOT_BASE_H
#define PARKLOT_BASE_H

#include "errno.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(PL_API)
/* The library's own, while it is built. */
#elif defined(__GNUC__)
# define PL_API			__attribute__((visibility("default")))
#else
# define PL_API
#endif

/*
 * A struct of options has its size, so that it can grow at its end: what an
 * older program's struct lacks is 0, the default.
 */
#ifdef __cplusplus
# define PL_ATOMIC_U32		uint32_t
# define PL__SIZED(type)	pl__sized<type>()
# define PL_BEGIN_DECLS		extern "C" {
# define PL_END_DECLS		}
#else
# define PL_ATOMIC_U32		_Atomic uint32_t
# define PL__SIZED(type)	(type){ .size = sizeof(type) }
# define PL_BEGIN_DECLS
# define PL_END_DECLS
#endif

#ifdef __cplusplus
template <typename T> static inline T pl__sized()
{
	T t = T();

	t.size = sizeof(t);
	return t;
}
#endif

/* A deadline that never comes. */
#define PL_FOREVER		UINT64_MAX

#endif /* PARKLOT_BASE_H */
