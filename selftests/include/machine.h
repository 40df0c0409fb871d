/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs of one seed on a simulated machine of processors. */
#ifndef PL_TEST_MACHINE_H
#define PL_TEST_MACHINE_H

#include "kselftest_harness.h"

#include "rt.h"

#include "parklot/sim.h"

#define NR_THREADS	8
#define WORK_NS		(10 * NSEC_PER_MSEC)

/* What a run took, of virtual time; written by its process. */
static _Atomic uint64_t *took_ns;

#define MACHINE_FIXTURE(name)						\
	FIXTURE(name) { char unused; };					\
	FIXTURE_SETUP(name)						\
	{								\
		rt_begin(_metadata);					\
		took_ns = mmap(NULL, 4096, PROT_READ | PROT_WRITE,	\
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);	\
		ASSERT_NE(MAP_FAILED, (void *)took_ns);			\
	}								\
	FIXTURE_TEARDOWN(name) { }

static inline uint64_t run_with(uint32_t nr_cpus, void (*fn)(void *arg),
				void *arg)
{
	set_env("SIM_CPUS", nr_cpus);
	*took_ns = 0;
	EXPECT_EQ(0, pl_sim_run(1, fn, arg));
	return *took_ns;
}

static inline void *compute(void *arg)
{
	pl_sim_compute(WORK_NS);
	return arg;
}

static inline void compute_in_threads(void *arg)
{
	pthread_t t[NR_THREADS];
	uint64_t begin = pl_now();
	int i;

	for (i = 0; i < NR_THREADS; i++)
		pthread_create(&t[i], NULL, compute, NULL);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(t[i], NULL);
	*took_ns = pl_now() - begin;
}

#endif /* PL_TEST_MACHINE_H */
