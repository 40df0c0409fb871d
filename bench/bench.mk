# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# For the makefile above: what is measured, and the peers beside which it is.

PEERS		:= $(patsubst %.c,$(O)/%,$(wildcard bench/peers/*.c)) \
		   $(patsubst %.cpp,$(O)/%,$(wildcard bench/peers/*.cpp)) \
		   $(O)/bench/peers/go/peers
GO_SRCS		:= $(wildcard bench/peers/go/*.go) bench/peers/go/go.mod

# They need what "scripts/setup bench" installs, and none of the library.
.PHONY: peers
peers: $(PEERS)

$(O)/bench/peers/%: bench/peers/%.c $(wildcard bench/lib/*.h) $(O)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(LDFLAGS) $(LIBURING_LIBS)

# "make bench-peers" is run as it stands: optimised, whatever CFLAGS say.
$(O)/bench/peers/%: bench/peers/%.cpp $(wildcard bench/lib/*.h)
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=gnu++17 -O2 -g -Wall -pthread -o $@ $< \
		-Wl,--as-needed -lboost_fiber -lboost_context

$(O)/bench/peers/go/peers: $(GO_SRCS)
	$(call say,GO,$@)
	@mkdir -p $(@D)
	$(Q)cd bench/peers/go && CGO_ENABLED=0 GOFLAGS=-buildvcs=false \
		GOTOOLCHAIN=local go build -o $(abspath $@) .

# What is built is not what is asked for: stdout is for results.
measured_by	= $(Q)$(MAKE) --no-print-directory -j$$(nproc) $(1) >&2

.PHONY: bench
bench: ## measure everything: $(O)/bench/results.tsv and charts
	$(Q)scripts/setup bench >&2
	$(call measured_by,examples benches)
	$(Q)O='$(O)' bench/run all

.PHONY: bench-peers
bench-peers: ## the same in turn with futexes, epoll, Boost, Go
	$(Q)scripts/setup bench >&2
	$(call measured_by,examples benches peers)
	$(Q)O='$(O)' bench/peers/compare

.PHONY: bench-growth bench-cliff
bench-growth: ## what one costs as they become more, and charts
	$(Q)scripts/setup bench >&2
	$(call measured_by,examples benches)
	$(Q)O='$(O)' bench/run growth
bench-cliff: ## growth, and all subjects with 1, 2, 4, 8 workers: what jumps?
	$(call measured_by,examples benches)
	$(Q)O='$(O)' bench/scale/cliff

.PHONY: bench-apps
bench-apps: ## httpd, httpsd and kv beside nginx, Go and redis-server, and a chart
	$(Q)scripts/setup bench-apps >&2
	$(call measured_by,apps $(O)/bench/peers/go/peers)
	$(Q)O='$(O)' bench/server/apps

# For the guest, as check builds it.
.PHONY: bench-vm
bench-vm: ## the module against futex in virtual machines: KERNELS=
	$(Q)scripts/setup bench-vm >&2
	$(call measured_by,O=$(O)/vm VARIANT=static WERROR=1 \
		$(O)/vm/bench/module/device $(O)/vm/bench/peers/futex)
	$(Q)O='$(O)' bench/module/vm $(KERNELS)

.PHONY: bench-backends
bench-backends: ## the library on futexes and on the module, in instructions: KERNELS=
	$(Q)scripts/setup bench-vm >&2
	$(call measured_by,O=$(O)/vm VARIANT=static WERROR=1 \
		$(O)/vm/bench/paths/wake $(O)/vm/bench/crowd/blocked_burst)
	$(Q)O='$(O)' bench/module/backends $(KERNELS)

.PHONY: bench-blocked
bench-blocked: ## tasks that block their workers: what others notice, and charts
	$(Q)scripts/setup bench >&2
	$(call measured_by,examples benches crowds $(O)/bench/peers/go/peers)
	$(Q)O='$(O)' bench/run blocked_burst blocked_workers
	@echo
	$(Q)O='$(O)' bench/crowd/crowd blocked $(CASES)

.PHONY: bench-crowd-vm
bench-crowd-vm: ## both on futexes, on the module, and threads, in virtual time: KERNELS=
	$(Q)scripts/setup bench-vm >&2
	$(call measured_by,O=$(O)/vm VARIANT=static WERROR=1 \
		$(O)/vm/bench/crowd/usleep $(O)/vm/bench/crowd/compute)
	$(Q)O='$(O)' bench/crowd/crowd-vm $(KERNELS)

.PHONY: bench-hogs
bench-hogs: ## a ticker, and a server, beside tasks that compute, and charts
	$(Q)scripts/setup bench >&2
	$(call measured_by,benches crowds $(O)/bench/peers/go/peers)
	$(Q)O='$(O)' bench/crowd/crowd hogs $(CASES)

.PHONY: bench-echo
bench-echo: ## echo servers side by side, 1 to 1000 connections, and a chart
	$(Q)scripts/setup bench >&2
	$(call measured_by,examples benches peers)
	$(Q)O='$(O)' bench/server/echo

.PHONY: bench-server
bench-server: ## a server at any load, beside epoll, Asio, Go, and a chart
	$(Q)scripts/setup bench >&2
	$(call measured_by,examples benches peers)
	$(Q)O='$(O)' bench/server/server $(PARTS)

# Of what gcc and make are enough for: it is to be run on machines of others.
.PHONY: bench-scale
bench-scale: ## 1 to all processors: a table, a chart, a form to send back
	$(call measured_by,benches)
	$(Q)O='$(O)' bench/scale/scale-run $(SUBJECTS)

# Instructions, not time; in a build of its own, as check's part "bench".
.PHONY: bench-check bench-baseline
bench-check: check-bench ## hot paths take no more instructions than they did
bench-baseline: ## what they take from now on
	$(Q)scripts/part bench-baseline

.PHONY: check-sharing
check-sharing: ## hot paths write no cache lines of others: bench/counts/sharing.tsv
	$(Q)O='$(O)' scripts/check sharing

# bench-yield bench-spawn bench-wake ...: one subject, RUNS=5 times.
bench-%: FORCE
	$(call measured_by,examples benches)
	$(Q)O='$(O)' bench/run $*

# Figures of the simulation, in its variant alone: bench/virtual/run.
$(O)/bench/virtual/%: $(O)/bench/virtual/%.c.o $(LIB_A)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(LIBURING_LIBS) -lm
