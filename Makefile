# SPDX-License-Identifier: Apache-2.0
# A thin front of CMake's presets (CMakePresets.json), for people who would rather type `make`.
#
#   make              build/release/opennuma and the library
#   make demo         sharing between CPU and device, shown and measured on this machine
#   make test         everything that CI checks (see docs/testing.md)
#   make bench        the recorded traces of allocations, replayed and measured
#   make fuzz         the fuzz targets, a minute each
#   make format       clang-format over the sources
#   make install      to PREFIX (/usr/local), or below DESTDIR
#   make clean        remove what was built; `make distclean` removes the test stacks too
#   make debug, asan, tsan, clang, windows, coverage: build that preset
#
# DEMO_FLAGS and BENCH_FLAGS are handed to the command: make demo DEMO_FLAGS="--device opencl:0 --json"

PRESETS := release debug asan tsan clang windows coverage
PREFIX  ?= /usr/local

all: release

# Whoever only wants the command needs no test libraries, so the first `make` leaves the tests out;
# scripts/test.sh turns them on, and then they stay.
without_tests = $(if $(wildcard build/release/CMakeCache.txt),,-DONUMA_TESTS=OFF)

# setup.sh returns at once when nothing is missing.
$(PRESETS): setup-build
	@cmake --preset $@ --log-level=WARNING $(if $(filter release,$@),$(without_tests)) >/dev/null
	cmake --build --preset $@

setup-build:
	@scripts/setup.sh --check build
setup-demo:
	@scripts/setup.sh demo

demo: setup-demo
	@$(MAKE) --no-print-directory release
	build/release/opennuma demo $(DEMO_FLAGS)

test:
	@scripts/setup.sh test
	@scripts/test.sh

bench: release
	@set -e; for trace in tests/data/traces/*.csv.gz; do build/release/opennuma replay $$trace $(BENCH_FLAGS); done

fuzz:
	@scripts/setup.sh test
	@scripts/fuzz.sh 60

format:
	@scripts/check-format.sh --fix

install: release
	cmake --install build/release --prefix "$(PREFIX)"

clean:
	@for d in build/*; do [ "$$d" = build/stacks ] || rm -rf "$$d"; done
distclean:
	rm -rf build

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

.PHONY: all help $(PRESETS) setup-build setup-demo demo test bench fuzz format install clean distclean
