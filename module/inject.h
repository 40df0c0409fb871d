/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delays between the steps of a race. A point stands behind each tagged
 * barrier; in a debug build (Kbuild: PARKLOT_INJECT=1) the caller spins there
 * for a time that depends on the seed, the point and the number of delays that
 * came before.
 */
#ifndef PARKLOT_INJECT_H
#define PARKLOT_INJECT_H

#ifdef PARKLOT_INJECT
#undef PARKLOT_INJECT
void parklot_inject(const char *point);
/* May be called anywhere, even with interrupts off: it spins. */
#define PARKLOT_INJECT(point)	parklot_inject(point)
#else
#define PARKLOT_INJECT(point)	((void)(point))
#endif

#endif /* PARKLOT_INJECT_H */
