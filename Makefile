# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# parklot: "make help" lists the targets.
#
# Everything is built below $(O).  CFLAGS, LDFLAGS and CC are yours; what the
# code cannot do without is added to them.

VERSION		:= 0.1.0
SOVERSION	:= 0
DISTNAME	:= parklot-$(VERSION)

O		?= build
PREFIX		?= /usr/local
BINDIR		?= $(PREFIX)/bin
LIBDIR		?= $(PREFIX)/lib
INCLUDEDIR	?= $(PREFIX)/include
DATADIR		?= $(PREFIX)/share
MANDIR		?= $(DATADIR)/man
DKMSROOT	?= /usr/src
DKMS_VERSION	?= $(VERSION)
DKMSDIR		?= $(DKMSROOT)/parklot-$(DKMS_VERSION)
UDEVDIR		?= /usr/lib/udev/rules.d
MODLOADDIR	?= /usr/lib/modules-load.d
KVER		?= $(shell uname -r)
KDIR		?= /lib/modules/$(KVER)/build

PKG_CONFIG	?= pkg-config
INSTALL		?= install
DKMS		?= dkms
CFLAGS		?= -O2 -g
# A cross compiler comes with an archiver of its own, and perhaps with no other.
ifeq ($(origin AR),default)
AR		= $(shell $(CC) -print-prog-name=ar)
endif
# Of the same make as the compiler of C.
ifeq ($(origin CXX),default)
CXX		= $(if $(findstring clang,$(CC)),clang++,g++)
endif

# ---- how ----

# VARIANT=x is how check builds; each goes to an O of its own.  TEST_CFLAGS are
# for the tests alone: they are most of what is compiled.
FLAGS_asan	:= -fsanitize=address,undefined -fno-sanitize-recover=all \
		   -fno-omit-frame-pointer -DPL_TEST_FAULT
FLAGS_tsan	:= -fsanitize=thread
FLAGS_inject	:= -DPL_TEST_INJECT -DPL_TEST_FAULT
FLAGS_sim	:= -DPL_SIM -DPL_TEST_FAULT
FLAGS_sim-asan	:= $(FLAGS_sim) $(FLAGS_asan)
FLAGS_lto	:= -flto=auto -Wno-maybe-uninitialized
FLAGS_cov	:= -O0 --coverage -fprofile-update=atomic \
		   -fno-builtin-fork -DPL_TEST_COVERAGE -DPL_TEST_FAULT
# Forked for each seed, so what is bound is bound before.
LINK_sim	:= -Wl,-z,now
LINK_static	:= -static -Wl,--strip-debug # all lie in a guest's memory
LINK_asan	:= $(if $(findstring clang,$(CC)),,-static-libasan -static-libubsan)
LINK_cov	:= -Wl,--wrap=_exit,--wrap=signal

ifndef LIBURING_LIBS
LIBURING_CFLAGS	:= $(shell $(PKG_CONFIG) --cflags liburing 2>/dev/null)
LIBURING_LIBS	:= $(shell $(PKG_CONFIG) --libs liburing 2>/dev/null || \
			   echo -luring)
endif

override CPPFLAGS += -D_GNU_SOURCE -Iinclude -Iinclude/uapi -iquote lib \
		   $(LIBURING_CFLAGS)
override CFLAGS	+= -std=gnu11 -Wall -Wextra -Wstrict-prototypes \
		   -Wmissing-prototypes -fvisibility=hidden -pthread \
		   -fstack-clash-protection \
		   $(FLAGS_$(VARIANT)) $(if $(WERROR),-Werror)
override LDFLAGS += -pthread $(LINK_$(VARIANT))

# lib/base/frame.h: gcc for x86-64 has it.
ifndef FRAMES
FRAMES		:= $(shell $(CC) -ffixed-rbp -Werror -S -o - -x c /dev/null \
			>/dev/null 2>&1 \
			&& echo -ffixed-rbp -include base/frame.h)
endif

MACHINE		:= $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

ifeq ($(VARIANT),lto)
AR		:= gcc-ar
endif

ifeq ($(V),1)
Q		:=
say		= @:
else
Q		:= @
say		= @printf '  %-7s %s\n' '$(1)' '$(2)'
endif

# ---- what ----

# The simulation is of its variant alone.
ROOMS		:= $(filter-out $(if $(filter sim%,$(VARIANT)),,sim),\
		   $(shell sed 's/[[:space:]]*\#.*//' lib/LAYERS))
LIB_SRCS	:= $(foreach r,$(ROOMS),$(sort $(wildcard lib/$(r)/*.c))) \
		   $(sort $(wildcard lib/ctx/arch/$(MACHINE)/*.S))
LIB_OBJS	:= $(addprefix $(O)/,$(addsuffix .o,$(LIB_SRCS)))
# What is for tests alone is compiled once, for both libraries.
ONCE		:= $(filter sim% tsan,$(VARIANT))
PIC_OBJS	:= $(if $(ONCE),$(LIB_OBJS),\
		   $(addprefix $(O)/pic/,$(addsuffix .o,$(LIB_SRCS))))
LIB_A		:= $(O)/libparklot.a
LIB_SO		:= $(O)/libparklot.so.$(SOVERSION)
# The same library for programs with ThreadSanitizer, in a directory of its own.
TSAN_O		:= $(O)/tsan
TSAN_SO		:= $(TSAN_O)/$(notdir $(LIB_SO))
TSANDIR		= $(LIBDIR)/parklot-tsan
TSAN_PC		:= $(O)/parklot-tsan.pc
# And for programs that are simulated.
SIM_O		:= $(O)/sim
SIM_SO		:= $(SIM_O)/$(notdir $(LIB_SO))
SIM_A		:= $(SIM_O)/libparklot.a
SIMDIR		= $(LIBDIR)/parklot-sim
SIM_PC		:= $(O)/parklot-sim.pc
PC		:= $(O)/parklot.pc
CMAKE		:= $(O)/parklot-config.cmake $(O)/parklot-config-version.cmake
CMAKEDIR	= $(LIBDIR)/cmake/parklot
INCLUDE_FROM_CMAKE = $(shell realpath -m --relative-to='$(CMAKEDIR)' \
			'$(INCLUDEDIR)')

programs	= $(patsubst %.c,$(O)/%,$(sort $(wildcard $(1))))
LIB_TEST_SRCS	:= $(sort $(foreach r,$(ROOMS),$(wildcard selftests/lib/$(r)/lib_*.c)))
MOD_TEST_SRCS	:= $(sort $(wildcard selftests/device/mod_*.c) \
			  $(wildcard selftests/manual/mod_*.c))
TEST_SRCS	:= $(LIB_TEST_SRCS) $(MOD_TEST_SRCS)
# The program of a test has its name, and no part of its directory's.
tests		= $(sort $(addprefix $(O)/selftests/,$(basename $(notdir $(1)))))
LIB_TESTS	:= $(call tests,$(LIB_TEST_SRCS))
MOD_TESTS	:= $(call tests,$(MOD_TEST_SRCS))
# Of the same objects, for guests that have no C library.
STATIC_LIB_TESTS := $(patsubst $(O)/selftests/%,$(O)/static/%,$(LIB_TESTS))
STATIC_MOD_TESTS := $(patsubst $(O)/selftests/%,$(O)/static/%,$(MOD_TESTS))
EXAMPLES	:= $(call programs,examples/*.c)
BENCHES		:= $(call programs,bench/crowd/blocked_*.c $(patsubst \
		   %,bench/%/*.c,counts module paths scale server))
# Those of several files need other libraries too: "scripts/setup check".
HTTPD		:= $(O)/examples/httpd/httpd
HTTPSD		:= $(O)/examples/httpsd/httpsd
KV		:= $(O)/examples/kv/kv
APPS		:= $(HTTPD) $(HTTPSD) $(KV)
# Programs of many tasks that use a library each; one of C++ uses several.
APP_TESTS	:= $(call programs,selftests/apps/*.c)
CXX_APP_TESTS	:= $(patsubst %.cpp,$(O)/%,$(wildcard selftests/apps/*.cpp))
TOOLS		:= $(call programs,tools/pl*.c)
PROGRAMS	:= $(EXAMPLES) $(BENCHES) $(TOOLS)
# Crowds that block or compute.  Those of libraries that are not here are left out: "scripts/setup bench".
LIBRARY_OF	:= libpq:libpq sqlite:sqlite3
CROWDS	:= $(filter-out $(foreach l,$(LIBRARY_OF),$(shell \
			$(PKG_CONFIG) --exists $(lastword $(subst :, ,$(l))) \
			2>/dev/null || echo %/$(firstword $(subst :, ,$(l))))), \
		   $(filter-out $(BENCHES),$(call programs,bench/crowd/*.c)))

MODULE_SRCS	:= Kbuild dkms.conf module include
HEADERS		:= $(sort $(wildcard include/parklot/*.h include/parklot/*.hpp))
# Found as the C library's headers, by the flags of parklot.pc.
WRAPPERS	:= $(sort $(wildcard include/parklot/wrap/*.h))
# gdb loads the second by itself, with the shared library.
GDB_SCRIPT	:= $(DATADIR)/parklot/parklot-gdb.py
GDB_AUTO	:= $(DATADIR)/gdb/auto-load$(LIBDIR)/libparklot.so.$(VERSION)-gdb.py
MAN_PAGES	:= $(sort $(wildcard man/*.[1-9]))
MAN_BUILT	:= $(addprefix $(O)/,$(MAN_PAGES))

.DELETE_ON_ERROR:
.SUFFIXES:

.PHONY: all
all: lib lib-tsan lib-sim tools examples benches ## the library, tools, examples, benchmarks

.PHONY: lib
lib: $(LIB_A) $(LIB_SO) $(PC) $(CMAKE) ## libparklot.a, libparklot.so

.PHONY: tools examples apps app-tests benches crowds selftests lib-tests mod-tests static-tests
tools: $(TOOLS) ## what operators look at programs with
examples: $(EXAMPLES) ## examples/*
apps: $(APPS) ## examples/*/*: servers, which need other libraries too
app-tests: $(APP_TESTS) $(CXX_APP_TESTS) ## selftests/apps/*.c, *.cpp: libraries in tasks
benches: $(BENCHES) ## bench/*/*, to be run by bench
crowds: $(CROWDS) ## bench/crowd/*, for bench-blocked and bench-hogs
lib-tests: $(LIB_TESTS)
mod-tests: $(MOD_TESTS)
static-tests: $(STATIC_LIB_TESTS) $(STATIC_MOD_TESTS)
selftests: lib-tests mod-tests ## the tests of the library and of the device

# Nothing where the compiler has no ThreadSanitizer.
.PHONY: lib-tsan
lib-tsan: $(TSAN_PC)
	@rm -f $(O)/has-tsan
	@echo 'int main(void) { return 0; }' | $(CC) $(CFLAGS) -fsanitize=thread \
		-x c -o $(O)/has-tsan - $(LDFLAGS) 2>/dev/null || \
		echo 'no ThreadSanitizer: no parklot-tsan' >&2
	+$(Q)if [ -e $(O)/has-tsan ]; then $(MAKE) --no-print-directory \
		O=$(TSAN_O) VARIANT=tsan $(TSAN_SO); fi

.PHONY: lib-sim
lib-sim: $(SIM_PC) ## the library for tests under one seed: parklot-sim(7)
	+$(Q)$(MAKE) --no-print-directory O=$(SIM_O) VARIANT=sim $(SIM_SO) \
		$(SIM_A)

# A change of compiler or flags rebuilds everything, a file that comes or goes
# the library.
BUILT_WITH	:= $(CC) $(CPPFLAGS) $(CFLAGS) $(FRAMES) $(LDFLAGS)
changed		= @mkdir -p $(@D) && \
		  { echo '$(1)' | cmp -s - $@ || echo '$(1)' >$@; }
$(O)/flags: FORCE
	$(call changed,$(BUILT_WITH))
$(O)/test-flags: FORCE
	$(call changed,$(TEST_CFLAGS))
$(O)/sources: FORCE
	$(call changed,$(LIB_SRCS))

$(O)/%.c.o: %.c $(O)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(O)/%.S.o: %.S $(O)/flags
	$(call say,AS,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(O)/pic/%.c.o: %.c $(O)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -MMD -MP -c -o $@ $<

$(O)/pic/%.S.o: %.S $(O)/flags
	$(call say,AS,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -MMD -MP -c -o $@ $<

$(LIB_OBJS) $(PIC_OBJS): override CFLAGS += $(FRAMES) $(if $(ONCE),-fPIC)

$(LIB_A): $(LIB_OBJS) $(O)/sources
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(LIB_OBJS)

# ThreadSanitizer's own part is the program's: each compiler has another.
$(LIB_SO): $(PIC_OBJS) lib/parklot.map $(O)/sources
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out $(FLAGS_tsan),$(CFLAGS)) -shared -Wl,-soname,$(@F) \
		$(if $(filter sim%,$(VARIANT)),,\
		-Wl,--version-script=lib/parklot.map) -Wl,-z,now \
		-Wl,-z,nodelete -o $@ \
		$(PIC_OBJS) $(LDFLAGS) $(LIBURING_LIBS)
	@ln -sf $(@F) $(O)/libparklot.so

$(PC) $(TSAN_PC) $(SIM_PC) $(CMAKE): $(O)/%: lib/%.in Makefile FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@INCLUDE@|$(INCLUDE_FROM_CMAKE)|' \
		-e 's|@SOVERSION@|$(SOVERSION)|' \
		-e 's|@VERSION@|$(VERSION)|' $< >$@

# They name paths of the default prefix.
$(MAN_BUILT): $(O)/%: % Makefile FORCE
	@mkdir -p $(@D)
	@sed -e 's|/usr/local/lib|$(LIBDIR)|g' \
		-e 's|/usr/local/share|$(DATADIR)|g' $< >$@

# Each program is one file and the library's archive, hidden symbols included.
$(EXAMPLES) $(BENCHES) $(TOOLS): $(O)/%: $(O)/%.c.o $(LIB_A)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(LIBURING_LIBS)

# Each of those has the calls of one library.
users_of	= $(foreach d,bench/crowd selftests/apps,\
		   $(O)/$(d)/$(1) $(O)/$(d)/$(1).c.o)
$(call users_of,libpq): LIBRARY := libpq
$(call users_of,sqlite): LIBRARY := sqlite3
$(call users_of,curl): LIBRARY := libcurl
$(call users_of,gssapi): LIBRARY := mit-krb5-gssapi
$(O)/bench/crowd/%.c.o $(O)/selftests/apps/%.c.o: override CPPFLAGS += \
		   $(if $(LIBRARY),$(shell $(PKG_CONFIG) --cflags $(LIBRARY)))
$(CROWDS) $(APP_TESTS): $(O)/%: $(O)/%.c.o $(LIB_A)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(LIBURING_LIBS) \
		$(if $(LIBRARY),$$($(PKG_CONFIG) --libs $(LIBRARY)))

# The library's flags, but for what C++ has not; with sanitizers, gcc 12 warns of
# its own <regex>.
CXX_FLAGS	= -std=c++17 $(filter-out -std=% -Wstrict-prototypes \
		   -Wmissing-prototypes,$(CFLAGS)) \
		   $(if $(FLAGS_$(VARIANT)),-Wno-maybe-uninitialized)
$(O)/%.cpp.o: %.cpp $(O)/flags
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CPPFLAGS) $(CXX_FLAGS) -MMD -MP -c -o $@ $<
$(CXX_APP_TESTS): $(O)/%: $(O)/%.cpp.o $(LIB_A)
	$(call say,LD,$@)
	$(Q)$(CXX) $(CXX_FLAGS) -o $@ $^ $(LDFLAGS) -lz $(LIBURING_LIBS)

objects		= $(patsubst %.c,$(O)/%.c.o,$(sort $(wildcard $(1))))

$(HTTPD): $(call objects,examples/httpd/*.c) $(LIB_A)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) -lhttp_parser $(LIBURING_LIBS)

# httpd with other streams.
$(O)/examples/httpsd/%.c.o: override CPPFLAGS += -iquote examples/httpd
$(HTTPSD): $(filter-out %/stream_tcp.c.o,$(call objects,examples/httpd/*.c)) \
	   $(call objects,examples/httpsd/*.c) $(LIB_A)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) -lhttp_parser -lssl -lcrypto \
		$(LIBURING_LIBS)

$(KV): $(call objects,examples/kv/*.c) $(LIB_A)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(LIBURING_LIBS)

# selftests/include has the harness, which a kernel tree has too; the tests of
# the device share headers with others.
$(O)/selftests/%.o: override CPPFLAGS += -iquote selftests/include \
		   -iquote selftests/device
# What a task or a thread is given, a test often needs not.
$(O)/selftests/%.o: override CFLAGS += -Wno-unused-parameter $(TEST_CFLAGS)
$(addsuffix .o,$(addprefix $(O)/,$(TEST_SRCS))): $(O)/test-flags
$(foreach f,$(TEST_SRCS),$(eval $(call tests,$(f)) \
	$(O)/static/$(basename $(notdir $(f))): $(O)/$(f).o))
$(LIB_TESTS) $(STATIC_LIB_TESTS): $(LIB_A)
$(STATIC_LIB_TESTS) $(STATIC_MOD_TESTS): IS_STATIC := -static
$(LIB_TESTS) $(MOD_TESTS) $(STATIC_LIB_TESTS) $(STATIC_MOD_TESTS):
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
		$(IS_STATIC) $(LDFLAGS) $(LIBURING_LIBS)

# What the manual shows of the device, for the test that runs it there.
$(O)/man/parklot-device.4.h: man/parklot-device.4
	@mkdir -p $(@D)
	$(Q)scripts/check-examples --print $< >$@

$(O)/selftests/manual/mod_manual.c.o: $(O)/man/parklot-device.4.h
$(O)/selftests/manual/mod_manual.c.o: override CPPFLAGS += -iquote $(O)/man

-include $(LIB_OBJS:.o=.d) $(PIC_OBJS:.o=.d) $(PROGRAMS:=.c.d) \
	$(CROWDS:=.c.d) $(APP_TESTS:=.c.d) $(CXX_APP_TESTS:=.cpp.d) \
	$(patsubst %.o,%.d,$(call objects,examples/*/*.c)) \
	$(patsubst %,$(O)/%.d,$(TEST_SRCS))

# ---- the module ----

# Kbuild writes beside its sources, so it is given copies.
copy_module	= @mkdir -p $(1) && cp -pr $(MODULE_SRCS) $(1)

.PHONY: module
module: ## parklot.ko for KVER, this kernel by default
	@test -d $(KDIR) || { echo >&2 'no headers of $(KVER): $(KDIR)'; exit 1; }
	$(call copy_module,$(O)/module-$(KVER))
	$(Q)$(MAKE) -C $(KDIR) O= M=$(abspath $(O)/module-$(KVER)) modules

.PHONY: sparse
sparse: ## the module with W=1 C=2 for 6.1, 6.12, 7.2; warnings fail
	$(Q)O='$(O)' $(CHECK) kbuild

# ---- check, which ends with make, and with the shell of its line ----
CHECK		:= setpriv --pdeathsig TERM scripts/check

.PHONY: setup
setup: ## install the packages that check needs (root), or name them
	$(Q)scripts/setup check

.PHONY: check check-full check-timed check-long
check: ## what gates a commit: ten minutes
	$(Q)O='$(O)' $(CHECK)

check-full: ## all builds, kernels, models, programs: over an hour
	$(Q)O='$(O)' $(CHECK) --full
check-timed: ## how often each test passes that a clock decides, to docs/results
	$(Q)O='$(O)' scripts/results timed
check-long: ## hours of stress: TIME= SEEDS= SEED= REPEAT=, scripts/long.sh
	$(Q)O='$(O)' TIME='$(TIME)' SEEDS='$(SEEDS)' SEED='$(SEED)' \
		REPEAT='$(REPEAT)' $(CHECK) --long

.PHONY: sim
sim: ## the simulation with more seeds: SEEDS=10000 SEED=1
	$(Q)O='$(O)' SEEDS='$(or $(SEEDS),10000)' SEED='$(SEED)' \
		$(CHECK) sim-seeds; status=$$?; \
		grep '^# sim:' '$(O)/check/sim-seeds.log'; exit $$status

# As vm/run calls it, too.
VM_KERNEL	:= $(patsubst rt,6.12-rt,$(KERNEL))
# "make check" has some of the tests in these, check-vm all.
VM_PART		:= vm-$(VM_KERNEL)$(if $(filter 6.1 7.2,$(VM_KERNEL)),-all)

VM_KERNELS	:= 6.1 6.12 7.2 6.1-rt 6.12-rt rt debug debug-7.2 kcsan

.PHONY: check-vm
check-vm: ## the machine: KERNEL=6.1|6.12|7.2|6.1-rt|rt|debug|debug-7.2|kcsan SMP=
	$(if $(filter $(VM_KERNELS),$(KERNEL)),,$(error check-vm: no \
		KERNEL='$(KERNEL)'; there are: $(VM_KERNELS)))
	$(Q)O='$(O)' SMP='$(SMP)' $(CHECK) $(VM_PART); status=$$?; \
		scripts/matrix '$(O)/check/$(VM_PART).log'; exit $$status

.PHONY: fuzz
fuzz: ## the whole device at random: TIME=600 SEED= KERNEL=6.12 SMP=8
	$(Q)O='$(O)' TIME='$(or $(TIME),600)' SEED='$(SEED)' SMP='$(SMP)' \
		KERNEL='$(or $(KERNEL),6.12)' $(CHECK) fuzz

.PHONY: coverage
coverage: ## the lines of lib/ that its tests run: 90 % at least
	$(Q)O='$(O)' $(CHECK) coverage; status=$$?; \
		cat $(O)/check/coverage.txt; exit $$status

.PHONY: coverage-module
coverage-module: ## the lines of module/ run in a guest: TIME=600 SEED= KERNEL= SMP=
	$(Q)O='$(O)' TIME='$(or $(TIME),600)' SEED='$(SEED)' SMP='$(SMP)' \
		KERNEL='$(or $(KERNEL),debug)' $(CHECK) coverage-module; \
		status=$$?; cat $(O)/check/coverage-module.txt; exit $$status

.PHONY: style lint
style: check-style ## codespell, sizes, SPDX lines
lint: ## all that looks at the source, and runs nothing of it
	$(Q)O='$(O)' $(CHECK) layers pairs version docs style shell abi

.PHONY: check-docs check-tools
check-docs: ## the manual: style, all that is public in it, its examples run
	$(Q)O='$(O)' $(CHECK) docs abi examples
check-tools: ## plstat, gdb, probes, valgrind, and the checks themselves
	$(Q)O='$(O)' $(CHECK) see tools

# check-native check-asan check-inject ...: one part of check.
check-%: FORCE
	$(Q)O='$(O)' $(CHECK) $*

.PHONY: demo
demo: ## an echo server of tasks under load
	$(Q)scripts/setup demo
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) lib examples benches
	$(Q)O='$(O)' scripts/demo

include compat/compat.mk
include bench/bench.mk

# ---- install ----

.PHONY: install
install: lib lib-tsan lib-sim tools $(MAN_BUILT) ## to DESTDIR/PREFIX
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(CMAKEDIR) \
		$(DESTDIR)$(BINDIR) $(DESTDIR)$(INCLUDEDIR)/linux \
		$(DESTDIR)$(INCLUDEDIR)/parklot
	$(INSTALL) -m 755 $(TOOLS) $(DESTDIR)$(BINDIR)/
	$(INSTALL) -m 755 $(LIB_SO) $(DESTDIR)$(LIBDIR)/libparklot.so.$(VERSION)
	ln -sf libparklot.so.$(VERSION) \
		$(DESTDIR)$(LIBDIR)/libparklot.so.$(SOVERSION)
	ln -sf libparklot.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libparklot.so
	$(INSTALL) -m 644 $(LIB_A) $(DESTDIR)$(LIBDIR)/
	$(INSTALL) -m 644 $(PC) $(DESTDIR)$(LIBDIR)/pkgconfig/
	$(INSTALL) -m 644 $(CMAKE) $(DESTDIR)$(CMAKEDIR)/
	if [ -e $(O)/has-tsan ]; then \
		$(INSTALL) -D -m 755 $(TSAN_SO) \
			$(DESTDIR)$(TSANDIR)/$(notdir $(TSAN_SO)) && \
		ln -sf $(notdir $(TSAN_SO)) $(DESTDIR)$(TSANDIR)/libparklot.so && \
		$(INSTALL) -m 644 $(TSAN_PC) $(DESTDIR)$(LIBDIR)/pkgconfig/; fi
	$(INSTALL) -D -m 755 $(SIM_SO) \
		$(DESTDIR)$(SIMDIR)/libparklot.so.$(SOVERSION)
	ln -sf libparklot.so.$(SOVERSION) $(DESTDIR)$(SIMDIR)/libparklot.so
	$(INSTALL) -m 644 $(SIM_A) $(DESTDIR)$(SIMDIR)/
	$(INSTALL) -m 644 $(SIM_PC) $(DESTDIR)$(LIBDIR)/pkgconfig/
	$(INSTALL) -m 644 include/parklot.h include/parklot.hpp \
		$(DESTDIR)$(INCLUDEDIR)/
	$(INSTALL) -m 644 $(HEADERS) $(DESTDIR)$(INCLUDEDIR)/parklot/
	$(INSTALL) -d $(DESTDIR)$(INCLUDEDIR)/parklot/wrap
	$(INSTALL) -m 644 $(WRAPPERS) $(DESTDIR)$(INCLUDEDIR)/parklot/wrap/
	$(INSTALL) -m 644 include/uapi/linux/parklot.h \
		$(DESTDIR)$(INCLUDEDIR)/linux/
	$(INSTALL) -D -m 644 tools/parklot-gdb.py $(DESTDIR)$(GDB_SCRIPT)
	$(INSTALL) -D -m 644 tools/parklot-gdb.py $(DESTDIR)$(GDB_AUTO)
	$(foreach p,$(MAN_BUILT),$(INSTALL) -D -m 644 $(p) \
		$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(notdir $(p)) &&) :

.PHONY: uninstall
uninstall: ## takes away what install put there
	rm -f $(DESTDIR)$(LIBDIR)/libparklot.so.$(VERSION) \
		$(DESTDIR)$(LIBDIR)/libparklot.so.$(SOVERSION) \
		$(DESTDIR)$(LIBDIR)/libparklot.so \
		$(DESTDIR)$(LIBDIR)/libparklot.a \
		$(addprefix $(DESTDIR)$(BINDIR)/,$(notdir $(TOOLS))) \
		$(DESTDIR)$(TSANDIR)/$(notdir $(TSAN_SO)) \
		$(DESTDIR)$(TSANDIR)/libparklot.so \
		$(addprefix $(DESTDIR)$(SIMDIR)/,libparklot.a \
			libparklot.so libparklot.so.$(SOVERSION)) \
		$(addprefix $(DESTDIR)$(LIBDIR)/pkgconfig/,\
			$(notdir $(PC) $(TSAN_PC) $(SIM_PC))) \
		$(addprefix $(DESTDIR)$(CMAKEDIR)/,$(notdir $(CMAKE))) \
		$(DESTDIR)$(INCLUDEDIR)/parklot.h \
		$(DESTDIR)$(INCLUDEDIR)/parklot.hpp \
		$(DESTDIR)$(INCLUDEDIR)/linux/parklot.h \
		$(addprefix $(DESTDIR)$(INCLUDEDIR)/parklot/wrap/,$(notdir $(WRAPPERS))) \
		$(DESTDIR)$(GDB_SCRIPT) $(DESTDIR)$(GDB_AUTO) \
		$(addprefix $(DESTDIR)$(INCLUDEDIR)/parklot/,$(notdir $(HEADERS))) \
		$(foreach p,$(MAN_PAGES),\
		$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(notdir $(p)))
	-rmdir $(DESTDIR)$(INCLUDEDIR)/parklot/wrap \
		$(DESTDIR)$(INCLUDEDIR)/parklot $(DESTDIR)$(CMAKEDIR) \
		$(DESTDIR)$(TSANDIR) $(DESTDIR)$(SIMDIR) \
		$(DESTDIR)$(dir $(GDB_SCRIPT)) 2>/dev/null

.PHONY: dkms-source
dkms-source: ## the module's source, what udev and boot need: DESTDIR/usr
	rm -rf $(DESTDIR)$(DKMSDIR)
	$(INSTALL) -d $(DESTDIR)$(DKMSDIR)
	cp -r $(MODULE_SRCS) $(DESTDIR)$(DKMSDIR)/
	sed -i 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION="$(DKMS_VERSION)"/' \
		$(DESTDIR)$(DKMSDIR)/dkms.conf
	sed -i 's/^MODULE_VERSION(.*/MODULE_VERSION("$(DKMS_VERSION)");/' \
		$(DESTDIR)$(DKMSDIR)/module/main.c
	$(INSTALL) -D -m 644 module/60-parklot.rules \
		$(DESTDIR)$(UDEVDIR)/60-parklot.rules
	$(INSTALL) -D -m 644 module/modules-load.conf \
		$(DESTDIR)$(MODLOADDIR)/parklot.conf

.PHONY: dkms-install
dkms-install: ## add, build and install with dkms, for KVER
	@test -d $(KDIR) || { echo >&2 'no headers of $(KVER): $(KDIR)'; exit 1; }
	$(Q)DKMS='$(DKMS)' DKMSROOT='$(DKMSROOT)' KVER='$(KVER)' \
		scripts/dkms install

.PHONY: dkms-uninstall dkms-clear
dkms-uninstall: ## take the module from all kernels, and its source
	$(Q)DKMS='$(DKMS)' DKMSROOT='$(DKMSROOT)' scripts/dkms uninstall
dkms-clear:
	rm -rf $(DKMSDIR) $(UDEVDIR)/60-parklot.rules \
		$(MODLOADDIR)/parklot.conf

.PHONY: dist distcheck
dist: ## $(O)/parklot-VERSION.tar.gz of what git tracks
	$(Q)O='$(O)' scripts/dist $(O)/$(DISTNAME).tar.gz
distcheck: check-dist ## unpack it: it builds, checks itself, makes the same

.PHONY: release
release: ## the checklist of docs/releasing.md; then dist and its checksum
	$(Q)O='$(O)' scripts/release

.PHONY: deb deb-bthread
deb: ## $(O)/deb: Debian's packages, of what dist packs
	$(Q)scripts/setup deb
	$(Q)O='$(O)' scripts/deb $(O)/deb
deb-bthread: ## $(O)/deb-bthread: Debian's packages with libparklot-bthread's: BRPC=DIR
	$(Q)scripts/setup deb
	$(call in_compat_bthread,setup)
	$(Q)O='$(O)' scripts/deb $(O)/deb-bthread '$(BRPC)'

.PHONY: clean
clean: ## what was built
	rm -rf $(O)

.PHONY: help
help: ## this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' \
		Makefile bench/bench.mk compat/compat.mk
	@printf '  %-15s %s\n' check-PART 'one part of check: scripts/check -l'
	@printf '  %-15s %s\n' bench-SUBJECT 'one of bench/run'
	@echo 'Variables: O= V=1 CC= CFLAGS= LDFLAGS= PREFIX= DESTDIR= KVER=' \
		'KDIR= KERNEL= KERNELS= RUNS= SMP= TIME= SEED= BRPC= WORKERS='

# For scripts: the value of a variable.
print-%: FORCE
	@echo '$($*)'

.PHONY: FORCE
FORCE:
