# make            builds build/mod_circuitbreaker.so
# make test       installs what is missing, builds, runs every test
# make check      the same where all is installed
#                 MPM=all with either: on httpd's three MPMs also what doesn't depend on them, not on mpm_event alone
# make run        installs what is missing, builds, starts the demo on 127.0.0.1:8080 (PORT=n: another port)
# make install    installs the module into this machine's httpd (then: a2enmod circuitbreaker)
# make simulation writes the plot in README.md and prints its tables
# make mutation   puts small faults into a copy, one at a time: does a test fail for each? (hours; tests/mutation/run.sh)
# make format | tidy | model | bench | clean

SHELL := /bin/bash
BUILD ?= build
APXS ?= apxs
CXX := g++

apxs = $(shell command -v $(APXS) >/dev/null && $(APXS) -q $(1))
HTTPD_INCLUDES = -isystem $(call apxs,INCLUDEDIR) -isystem $(call apxs,APR_INCLUDEDIR)
WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Werror
INCLUDES := -I. -Imod_circuitbreaker
# Debian's build flags for modules, then ours. -fno-gnu-unique and hidden symbols: httpd unloads and loads the module
# again at each restart, and nothing of it may stay. -flto: a request goes through many small functions of many files.
LTO := -flto
MODULE_FLAGS = $(subst ;,,$(call apxs,CFLAGS)) -std=c++20 $(WARNINGS) -fPIC -fvisibility=hidden -fno-gnu-unique \
	-fno-exceptions -fno-rtti $(LTO) -D_GNU_SOURCE -DLINUX -D_REENTRANT $(INCLUDES) $(HTTPD_INCLUDES)
# -O0 and few debug symbols: most of the tests' time is the compiler's.
TEST_FLAGS = -std=c++20 -O0 -g1 $(WARNINGS) -pthread -D_GNU_SOURCE -DLINUX -D_REENTRANT $(INCLUDES) -Itests $(HTTPD_INCLUDES)
STEPS := -O1 -DCB_TEST_STEPS

CORE := $(wildcard mod_circuitbreaker/core/*.cpp)
SHM := $(wildcard shm/*.cpp)
HTTPD := $(sort $(shell find mod_circuitbreaker/httpd -name '*.cpp')) mod_circuitbreaker/mod_circuitbreaker.cpp
SUPPORT := $(filter-out %_test.cpp,$(wildcard tests/support/*.cpp))

module_objects := $(patsubst %.cpp,$(BUILD)/module/%.o,$(CORE) $(SHM) $(HTTPD))
test_objects = $(patsubst %.cpp,$(BUILD)/tests/%.o,$(1))

.PHONY: all test check run install format format-check tidy model mutation bench simulation clean packages
.SECONDARY:
.DELETE_ON_ERROR:

all: $(BUILD)/mod_circuitbreaker.so $(BUILD)/circuitbreaker-runbook

$(BUILD)/mod_circuitbreaker.so: $(module_objects)
	@echo "  link $@"
	@$(CXX) -shared -flto=auto -o $@ $^ -Wl,-z,relro,-z,now -Wl,--as-needed -ljansson

$(BUILD)/module/%.o: %.cpp Makefile
	@mkdir -p $(@D)
	@echo "  c++ $<"
	@$(CXX) $(MODULE_FLAGS) -MMD -MP -c $< -o $@

# The program for `CircuitBreakerEventLog "|..."`.
$(BUILD)/circuitbreaker-runbook: $(patsubst %.cpp,$(BUILD)/program/%.o,$(wildcard conf/runbook/runner/*.cpp))
	@echo "  link $@"
	@$(CXX) -o $@ $^ -Wl,-z,relro,-z,now -ljansson

$(BUILD)/program/%.o: %.cpp
	@mkdir -p $(@D)
	@echo "  c++ $<"
	@$(CXX) -std=c++20 -O2 -g $(WARNINGS) -D_GNU_SOURCE -MMD -MP -c $< -o $@

# What nearly every test includes is read once; a compiler that can't use it takes tests/precompiled.hpp itself.
$(BUILD)/tests/precompiled.hpp.gch $(BUILD)/steps/precompiled.hpp.gch: tests/precompiled.hpp
	@mkdir -p $(@D)
	@echo "  c++ $@"
	@$(CXX) $(TEST_FLAGS) $(if $(findstring /steps/,$@),$(STEPS)) -MMD -MP -x c++-header $< -o $@

$(BUILD)/tests/%.o: %.cpp $(BUILD)/tests/precompiled.hpp.gch
	@mkdir -p $(@D)
	@echo "  c++ $<"
	@$(CXX) -I$(BUILD)/tests -include precompiled.hpp $(TEST_FLAGS) -MMD -MP -c $< -o $@

# The shared-memory code once more, with its steps visible to the tests that kill processes between any two of them.
$(BUILD)/steps/%.o: %.cpp $(BUILD)/steps/precompiled.hpp.gch
	@mkdir -p $(@D)
	@echo "  c++ $<"
	@$(CXX) -I$(BUILD)/steps -include precompiled.hpp $(TEST_FLAGS) $(STEPS) -MMD -MP -c $< -o $@

# --- tests ---
$(BUILD)/unit_tests: $(call test_objects,$(wildcard tests/unit/*.cpp) $(CORE))
	@echo "  link $@"
	@$(CXX) -pthread -o $@ $^ -lgtest_main -lgtest -ljansson

$(BUILD)/shm_tests: $(patsubst %.cpp,$(BUILD)/steps/%.o,$(wildcard tests/shm/*.cpp) tests/bench/recovery.cpp tests/bench/rolling.cpp $(SHM) $(CORE))
	@echo "  link $@"
	@$(CXX) -pthread -o $@ $^ -lgtest_main -lgtest -lapr-1 -ljansson

$(BUILD)/harness_tests: $(call test_objects,$(wildcard tests/support/*.cpp))
	@echo "  link $@"
	@$(CXX) -pthread -o $@ $^ -lgtest_main -lgtest -lcurl

$(BUILD)/httpd_tests: $(call test_objects,$(wildcard tests/httpd/*.cpp) $(SUPPORT))
	@echo "  link $@"
	@$(CXX) -pthread -o $@ $(filter %.o,$^) -lgtest_main -lgtest -lcurl -ljansson

# Modules that tests load beside ours.
test_modules := $(patsubst tests/httpd/modules/%.cpp,$(BUILD)/test_modules/%.so,$(wildcard tests/httpd/modules/*.cpp))
$(BUILD)/test_modules/%.so: tests/httpd/modules/%.cpp
	@mkdir -p $(@D)
	@echo "  c++ $<"
	@$(CXX) $(TEST_FLAGS) -fPIC -shared -MMD -MP -o $@ $<
$(BUILD)/httpd_tests: $(test_modules)

check_programs := $(BUILD)/demo $(BUILD)/simulation $(BUILD)/unit_tests $(BUILD)/shm_tests $(BUILD)/harness_tests $(BUILD)/httpd_tests

# The benchmark links the module's own objects: what is measured is what is loaded.
$(BUILD)/permit_bench: $(call test_objects,tests/bench/permit_bench.cpp) $(filter-out %/segment.o,$(patsubst %.cpp,$(BUILD)/module/%.o,$(CORE) $(SHM)))
	@echo "  link $@"
	@$(CXX) -pthread -o $@ $^ -lbenchmark -ljansson

bench: $(BUILD)/permit_bench
	$(BUILD)/permit_bench

# The same of the simulation. README.md shows its tables and its plot (tests/guards compares them).
$(BUILD)/simulation: $(call test_objects,tests/bench/simulation.cpp tests/bench/recovery.cpp tests/bench/recovery_plot.cpp tests/bench/rolling.cpp) $(filter-out %/segment.o,$(patsubst %.cpp,$(BUILD)/module/%.o,$(CORE) $(SHM)))
	@echo "  link $@"
	@$(CXX) -pthread -o $@ $^ -ljansson

simulation: $(BUILD)/simulation
	$(BUILD)/simulation tests/bench/recovery.svg

packages:
	tests/support/packages.sh test

test:
	tests/support/packages.sh test
	@$(MAKE) --no-print-directory -j2 check

check: all $(check_programs)
	BUILD=$(BUILD) tests/support/run_tests.sh

run:
	tests/support/packages.sh run
	@$(MAKE) --no-print-directory -j2 all $(BUILD)/demo
	@$(BUILD)/demo

$(BUILD)/demo: $(call test_objects,$(wildcard docker/demo/*.cpp) $(SUPPORT))
	@echo "  link $@"
	@$(CXX) -pthread -o $@ $^ -lcurl -lcrypt

SHARE := /usr/share/mod_circuitbreaker
RUNBOOK_PROGRAMS := $(addprefix conf/runbook/,webhook slack dingtalk feishu mail switch-standby log-snapshot scale-out warm-up)
RUNBOOK_EVENTS := open half-open recovering closed forced-open forced-closed reset suppressed flapping probe-lost probe probe-soon too-cautious

install: all
	install -D -m 644 $(BUILD)/mod_circuitbreaker.so $(DESTDIR)$(call apxs,LIBEXECDIR)/mod_circuitbreaker.so
	install -D -m 644 conf/circuitbreaker.load $(DESTDIR)/etc/apache2/mods-available/circuitbreaker.load
	install -D -m 644 conf/circuitbreaker.conf $(DESTDIR)/etc/apache2/mods-available/circuitbreaker.conf
	install -D -m 755 $(BUILD)/circuitbreaker-runbook $(DESTDIR)/usr/lib/mod_circuitbreaker/circuitbreaker-runbook
	install -d $(DESTDIR)$(SHARE)/runbook $(DESTDIR)$(SHARE)/prometheus $(DESTDIR)$(SHARE)/grafana
	install -m 755 $(RUNBOOK_PROGRAMS) $(DESTDIR)$(SHARE)/runbook
	install -m 644 conf/runbook/common.sh conf/runbook/runbook.conf $(DESTDIR)$(SHARE)/runbook
	install -m 644 conf/prometheus/*.yml $(DESTDIR)$(SHARE)/prometheus
	install -m 644 conf/grafana/*.json $(DESTDIR)$(SHARE)/grafana
	install -d $(RUNBOOK_EVENTS:%=$(DESTDIR)/etc/apache2/circuitbreaker/on-%.d) $(DESTDIR)/etc/apache2/circuitbreaker/clear.d
	@# What the administrator has written there stays.
	@[ -e $(DESTDIR)/etc/apache2/circuitbreaker/runbook.conf ] || \
		install -m 600 conf/runbook/runbook.conf $(DESTDIR)/etc/apache2/circuitbreaker/runbook.conf

sources := $(shell git ls-files '*.cpp' '*.hpp' 2>/dev/null)
format:
	@clang-format -i $(sources)
format-check:
	clang-format --dry-run --Werror $(sources)
tidy:
	clang-tidy --quiet $(CORE) $(SHM) $(HTTPD) -- $(filter-out -Werror -fno-gnu-unique,$(MODULE_FLAGS))

model:
	tests/model/run.sh full

mutation:
	tests/mutation/run.sh

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
