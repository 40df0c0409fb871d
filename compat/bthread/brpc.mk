# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# bRPC itself on libparklot-bthread, and some of its examples; the Makefile
# beside this one includes it.  With STOCK=1 on its own bthread, to compare.

# As its own makefiles choose them: without thrift, and without files that
# others include.
NOT_BRPC := $(BRPC)/src/brpc/event_dispatcher_%.cpp
BRPC_SRCS := $(filter-out $(NOT_BRPC),$(sort $(shell \
	find $(BRPC)/src/brpc $(BRPC)/src/json2pb -name '*.cpp' \
		! -name 'thrift*')) \
	$(patsubst %,$(BRPC)/src/mcpack2pb/%.cpp,field_type mcpack2pb parser \
		serializer))
PROTOS	:= $(sort $(shell cd $(BRPC)/src && find idl_options.proto brpc \
		-name '*.proto'))
PB	:= $(B)/gen
PB_CC	:= $(PROTOS:%.proto=$(PB)/%.pb.cc)
PB_H	:= $(PROTOS:%.proto=$(PB)/%.pb.h)
PROTOC	?= protoc

# Several of its headers include those of its bthread, or of ours.
BRPC_O	:= $(patsubst $(BRPC)/src/%,$(K)/brpc/%.o,$(BRPC_SRCS))
PB_O	:= $(PB_CC:$(PB)/%=$(K)/pb/%.o)
BRPC_A	:= $(O)/brpc/$(if $(STOCK),stock/)libbrpc.a
BRPC_LIBS := -lgflags -lleveldb -lprotoc -lprotobuf -lssl -lcrypto -lz -ldl

# protoc writes both files of a .proto.
$(PB)/%.pb.cc: $(BRPC)/src/%.proto
	$(call say,PROTOC,$@)
	@mkdir -p $(PB)
	$(Q)$(PROTOC) --cpp_out=$(PB) -I$(BRPC)/src $<
$(PB)/%.pb.h: $(PB)/%.pb.cc ;

$(PB_O): $(K)/pb/%.o: $(PB)/% $(PB_H) $(K)/flags-base
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(compile_base) -I$(PB) -w -c -o $@ $<

$(BRPC_O): $(K)/brpc/%.o: $(BRPC)/src/% $(PB_H) $(K)/flags \
		$(B)/include/butil/config.h
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(compile) -I$(PB) -w -c -o $@ $<

# One library, as bRPC's own: with what is below, but for parklot.
$(BRPC_A): $(BRPC_O) $(PB_O) $(BASE) $(OWN) $(TAKEN_O) $(K)/sources
	$(call say,AR,$@)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

.PHONY: brpc
brpc: $(BRPC_A) $(PC)

# ---- installed, for projects elsewhere ----

BRPC_SO	:= $(O)/brpc/libbrpc.so
BRPC_HEADERS = $(shell cd $(BRPC)/src && find brpc butil bvar bthread json2pb \
		mcpack2pb -name '*.h' -o -name '*.hpp' -o -name '*.proto')
BRPC_INCLUDE = $(DESTDIR)$(INCLUDEDIR)/parklot/brpc
BRPC_VERSION := $(shell cat $(BRPC)/RELEASE_VERSION)
# What changes structs that a program shares with the library.
BRPC_DEFINES := $(filter -DBRPC_% -DBTHREAD_% -DBUTIL_%,$(DEFINES) $(TRACER))
empty	:=
BRPC_CMAKE_DEFINES := $(subst $(empty) ,;,$(strip $(BRPC_DEFINES:-D%=%)))

$(BRPC_SO): $(BRPC_A) $(O)/libparklot.so
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -pthread -Wl,-soname,$(@F) -Wl,-z,nodelete -o $@ \
		-Wl,--whole-archive $(BRPC_A) -Wl,--no-whole-archive \
		$(LDFLAGS) -L$(O) -lparklot $(BRPC_LIBS)

.PHONY: brpc-so install-brpc
brpc-so: $(BRPC_SO)

# Its headers, and those of bthread that stand in place of them.
install-brpc: $(BRPC_SO) $(PB_H) $(B)/include/butil/config.h
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig \
		$(DESTDIR)$(LIBDIR)/cmake/brpc $(BRPC_INCLUDE)
	$(INSTALL) -m 644 $(BRPC_A) $(DESTDIR)$(LIBDIR)/
	$(INSTALL) -m 755 $(BRPC_SO) $(DESTDIR)$(LIBDIR)/
	cd $(BRPC)/src && cp --parents $(BRPC_HEADERS) idl_options.proto \
		$(abspath $(BRPC_INCLUDE))/
	cd $(PB) && cp --parents $(PB_H:$(PB)/%=%) $(abspath $(BRPC_INCLUDE))/
	cp $(B)/include/butil/config.h $(BRPC_INCLUDE)/butil/
	cp $(HERE)/include/bthread/*.h $(BRPC_INCLUDE)/bthread/
	for file in pkgconfig/brpc.pc cmake/brpc/brpc-config.cmake; do \
		sed $(in_prefix) -e 's|@VERSION@|$(BRPC_VERSION)|' \
			-e 's|@DEFINES@|$(BRPC_DEFINES)|' \
			-e 's|@CMAKE_DEFINES@|$(BRPC_CMAKE_DEFINES)|' \
			-e 's|@LIBS@|$(BRPC_LIBS)|' $(HERE)/$${file##*/}.in \
			>$(DESTDIR)$(LIBDIR)/$$file || exit; \
	done

-include $(BRPC_O:.o=.d) $(PB_O:.o=.d)

# ---- its examples ----

EXAMPLES := echo_c++ multi_threaded_echo_c++ streaming_echo_c++ http_c++
EX	:= $(BRPC)/example
EX_SRCS	:= $(sort $(wildcard $(EXAMPLES:%=$(EX)/%/*.cpp)))
EX_PB	:= $(patsubst $(EX)/%.proto,$(B)/examples/%.pb.cc, \
		   $(wildcard $(EXAMPLES:%=$(EX)/%/*.proto)))
EX_O	:= $(EX_SRCS:$(EX)/%=$(K)/examples/%.o)
EX_BIN	:= $(EX_O:.cpp.o=)

$(EX_PB): $(B)/examples/%.pb.cc: $(EX)/%.proto
	$(call say,PROTOC,$@)
	@mkdir -p $(@D)
	$(Q)$(PROTOC) --cpp_out=$(@D) -I$(<D) $<

$(EX_O): $(K)/examples/%.o: $(EX)/% $(EX_PB) $(PB_H) $(K)/flags
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(compile) -I$(PB) -I$(B)/examples/$(*D) -w -c -o $@ $<

$(EX_BIN): %: %.cpp.o $(BRPC_A) $(O)/libparklot.a
	$(call say,LD,$@)
	$(Q)$(CXX) $(CXXFLAGS) $(FLAGS) $(DEFINES) -isystem $(BRPC)/src -I$(PB) \
		-rdynamic -w -o $@ $< $(filter $(B)/examples/$(notdir $(@D))/%, \
		$(EX_PB)) -Wl,--whole-archive $(BRPC_A) -Wl,--no-whole-archive \
		$(if $(STOCK),,$(O)/libparklot.a $(LIBURING_LIBS)) $(LDFLAGS) \
		$(BRPC_LIBS)

.PHONY: examples check-examples
examples: $(EX_BIN)
check-examples: $(EX_BIN)
	$(Q)$(HERE)/run-brpc '$(BRPC)' '$(K)/examples'

-include $(EX_O:.o=.d)

# ---- its tests ----

BRPC_TESTS := builtin_service channel controller event_dispatcher \
	   grpc_protocol h2_unsent_message http_message http_parser \
	   http_rpc_protocol input_messenger server socket ssl streaming_rpc
BT_SRCS	:= $(wildcard $(BRPC_TESTS:%=$(BRPC)/test/brpc_%_unittest.cpp))
BT_O	:= $(call objects,brpc-tests,$(BT_SRCS))
BT_BIN	:= $(BT_O:.cpp.o=)
BT_PROTOS := $(wildcard $(BRPC)/test/*.proto)
BT_PB	:= $(BT_PROTOS:$(BRPC)/test/%.proto=$(B)/brpc-tests/%.pb.cc)
BT_PB_O	:= $(BT_PB:$(B)/%=$(K)/%.o)

$(BT_PB): $(B)/brpc-tests/%.pb.cc: $(BRPC)/test/%.proto
	$(call say,PROTOC,$@)
	@mkdir -p $(@D)
	$(Q)$(PROTOC) --cpp_out=$(@D) -I$(<D) -I$(BRPC)/src $<

$(BT_PB_O): $(K)/%.o: $(B)/% $(BT_PB) $(PB_H) $(K)/flags-base
	$(call say,CXX,$@)
	$(Q)$(compile_base) -I$(PB) -I$(<D) -w -c -o $@ $<

# They look into classes, too.
$(BT_O): $(K)/brpc-tests/%.o: $(BRPC)/test/% $(BT_PB) $(PB_H) $(K)/flags
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(compile) -I$(PB) -I$(B)/brpc-tests -I$(BRPC)/test \
		-fno-access-control -w -c -o $@ $<

$(BT_BIN): %: %.cpp.o $(BT_PB_O) $(BRPC_A) $(O)/libparklot.a
	$(call say,LD,$@)
	$(Q)$(CXX) -pthread -rdynamic -o $@ $< $(BT_PB_O) \
		-Wl,--whole-archive $(BRPC_A) -Wl,--no-whole-archive \
		$(if $(STOCK),,$(O)/libparklot.a $(LIBURING_LIBS)) $(LDFLAGS) \
		-lgtest_main -lgtest $(BRPC_LIBS)

.PHONY: brpc-tests check-servers
brpc-tests: $(BT_BIN)
check-servers: $(BT_BIN)
	@mkdir -p $(K)/in
	@cp $(wildcard $(BRPC)/test/*.crt $(BRPC)/test/*.key) $(K)/in/
	$(Q)LOGS='$(K)/logs-brpc' RUNS='$(RUNS)' WORKERS='$(WORKERS)' \
		CASES='$(CASES)' SKIPS='$(HERE)/skips-brpc' IN='$(K)/in' \
		$(HERE)/run-tests $(BT_BIN)

-include $(BT_O:.o=.d) $(BT_PB_O:.o=.d)

# ---- its speed ----

LOAD	:= $(K)/bench/load
$(B)/bench/load.pb.cc: $(HERE)/bench/load.proto
	@mkdir -p $(@D)
	$(Q)$(PROTOC) --cpp_out=$(@D) -I$(<D) $<
$(LOAD): $(HERE)/bench/load.cpp $(B)/bench/load.pb.cc $(BRPC_A) \
		$(O)/libparklot.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(compile) -I$(PB) -I$(B)/bench -Wall -Wextra -rdynamic -o $@ $< \
		$(B)/bench/load.pb.cc \
		-Wl,--whole-archive $(BRPC_A) -Wl,--no-whole-archive \
		$(if $(STOCK),,$(O)/libparklot.a $(LIBURING_LIBS)) $(LDFLAGS) \
		$(BRPC_LIBS)

.PHONY: load
load: $(LOAD)
