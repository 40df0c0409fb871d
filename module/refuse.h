/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Configurations for which parklot is not built. Includes no other header, so
 * that scripts/test/test-kbuild can preprocess it alone.
 */
#ifndef PARKLOT_REFUSE_H
#define PARKLOT_REFUSE_H

/*
 * User space and the kernel write the same pages by addresses of their own,
 * without a flush in between. Kernels before 6.9 do not say where that fails.
 */
#if defined(CONFIG_ARCH_HAS_CPU_CACHE_ALIASING) || \
	defined(CONFIG_CPU_CACHE_ALIASING) || \
	defined(CONFIG_ARC) || defined(CONFIG_ARM) || defined(CONFIG_CSKY) || \
	defined(CONFIG_M68K) || defined(CONFIG_MIPS) || \
	defined(CONFIG_NIOS2) || defined(CONFIG_PARISC) || \
	defined(CONFIG_SPARC) || defined(CONFIG_SUPERH) || \
	defined(CONFIG_XTENSA)
#error "parklot needs data caches without aliases"
#endif

/* charge.c counts in user_struct.locked_vm, which one of these brings. */
#if !defined(CONFIG_NET) && !defined(CONFIG_IO_URING)
#error "parklot charges pages to user_struct.locked_vm: CONFIG_NET has that"
#endif

#endif /* PARKLOT_REFUSE_H */
