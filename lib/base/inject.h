/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * inject: delays between the steps of a race, for tests
 *
 * PL_INJECT("tag") follows each ordered access, with the access's tag.  In a
 * build with -DPL_TEST_INJECT it now and then spins, yields the CPU or sleeps,
 * driven by PARKLOT_INJECT_SEED; in other builds it is empty.  Stress without
 * it proves little: four million plain rounds did not find a reversed pair of
 * accesses, twenty thousand rounds with it always did.
 */
#ifndef PL_INJECT_H
#define PL_INJECT_H

#include "base/base.h"

#ifdef PL_SIM
# define PL_INJECT(tag)		pl__sim_point(tag)
#elif defined(PL_TEST_INJECT)
void pl__inject(const char *tag);
# define PL_INJECT(tag)		pl__inject(tag)
#else
# define PL_INJECT(tag)		do { } while (0)
#endif

#endif /* PL_INJECT_H */
