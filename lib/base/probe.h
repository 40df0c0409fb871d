/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * probe: points that bpftrace, perf and gdb find by name, "parklot:NAME"
 *
 * Each is a nop, and a note that says where its arguments are at that moment
 * (systemtap's sys/sdt.h); without that header there are none.  So arguments
 * are values that the code has anyway; but of at least 32 bits, as gdb does not
 * know all names of smaller registers.  parklot-debug(7) lists the probes.
 */
#ifndef PL_PROBE_H
#define PL_PROBE_H

#if defined(__has_include)
# if __has_include(<sys/sdt.h>)
#  include <sys/sdt.h>
# endif
#endif

#ifdef DTRACE_PROBE
# define PL_PROBE1(name, a)		DTRACE_PROBE1(parklot, name, a)
# define PL_PROBE2(name, a, b)		DTRACE_PROBE2(parklot, name, a, b)
# define PL_PROBE3(name, a, b, c)	DTRACE_PROBE3(parklot, name, a, b, c)
#else
# define PL_PROBE1(name, a)		((void)(a))
# define PL_PROBE2(name, a, b)		((void)(a), (void)(b))
# define PL_PROBE3(name, a, b, c)	((void)(a), (void)(b), (void)(c))
#endif

#endif /* PL_PROBE_H */
