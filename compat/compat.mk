# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# Targets of what stands on the library's interface in place of another's; the
# project's Makefile includes this.

# Of bthread's interface on this library: compat/bthread/README.md.  They need
# what "scripts/setup brpc" installs, and BRPC, a checkout of apache/brpc.
in_compat_bthread = +$(Q)$(MAKE) --no-print-directory \
		   -f compat/bthread/Makefile O='$(O)' BRPC='$(BRPC)' \
		   STOCK='$(STOCK)' RUNS='$(RUNS)' WORKERS='$(WORKERS)' \
		   CASES='$(CASES)' VARIANT='$(VARIANT)' \
		   KERNEL='$(KERNEL)' SMP='$(SMP)' \
		   V='$(V)' VERSION='$(VERSION)' SOVERSION='$(SOVERSION)' \
		   PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' \
		   INCLUDEDIR='$(INCLUDEDIR)' DESTDIR='$(DESTDIR)' \
		   LIBURING_LIBS='$(LIBURING_LIBS)' $(1)

.PHONY: brpc-bthread install-bthread check-bthread brpc install-brpc check-brpc
.PHONY: check-brpc-clients bench-brpc
brpc-bthread: ## libparklot-bthread: bthread on parklot, for bRPC: BRPC=DIR
	$(call in_compat_bthread,setup)
	$(Q)$(MAKE) --no-print-directory lib
	$(call in_compat_bthread,lib)
install-bthread: brpc-bthread ## that, beside "make install": BRPC=DIR
	$(call in_compat_bthread,install)
check-bthread: ## bRPC's own tests of bthread: BRPC=DIR RUNS= WORKERS= STOCK=1 KERNEL= SMP=
	$(call in_compat_bthread,setup)
	$(if $(KERNEL),$(Q)scripts/setup bench-vm)
	$(Q)$(MAKE) --no-print-directory lib
	$(call in_compat_bthread,check)
brpc: ## bRPC itself on parklot, and its examples: BRPC=DIR [STOCK=1]
	$(call in_compat_bthread,setup)
	$(Q)$(MAKE) --no-print-directory lib
	$(call in_compat_bthread,brpc examples)
install-brpc: brpc install ## bRPC on parklot, brpc.pc, find_package(brpc): BRPC=DIR PREFIX=
	$(call in_compat_bthread,brpc-so)
	$(call in_compat_bthread,install-brpc)
check-brpc-clients: brpc ## that, in a directory of its own: a Makefile and a CMake project use it
	$(call in_compat_bthread,brpc-so)
	$(Q)compat/bthread/run-clients '$(BRPC)' '$(O)'
bench-brpc: ## beside stock bRPC, requests, latency, CPU: BRPC=DIR RUNS=5
	$(call in_compat_bthread,setup)
	$(Q)$(MAKE) --no-print-directory lib
	$(call in_compat_bthread,load)
	$(call in_compat_bthread,load STOCK=1)
	$(Q)RUNS='$(RUNS)' compat/bthread/bench/compare \
		$(O)/bthread/bench/load $(O)/bthread/stock/bench/load
check-brpc: brpc ## its examples, its tests of servers, channels and HTTP: BRPC=DIR
	$(call in_compat_bthread,check-examples)
	$(call in_compat_bthread,check-servers)
