# SPDX-License-Identifier: Apache-2.0
# A thin front of CMake's presets (CMakePresets.json), for people who would rather type `make`.
#
#   make              build/release/opennuma and the library
#   make demo         sharing between CPU and device, shown and measured on this machine
#   make test         everything that CI checks (see docs/testing.md)
#   make bench        allocations timed next to other allocators, the rules of sharing, and traces replayed
#   make fuzz         the fuzz targets, a minute each
#   make format       clang-format over the sources
#   make install      to PREFIX (/usr/local), or below DESTDIR
#   make clean        remove what was built; `make distclean` removes the test stacks and foreign libraries too
#   make windows      the library and the command for Windows, and their tests under Wine
#   make debug, asan, tsan, clang, coverage: build that preset
#
# DEMO_FLAGS and BENCH_FLAGS (for bench alloc) are handed to the command: make demo DEMO_FLAGS="--device opencl:0 --json"

PRESETS := release debug asan tsan clang coverage
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
setup-bench:
	@scripts/setup.sh bench
setup-demo:
	@scripts/setup.sh demo

demo: setup-demo
	@$(MAKE) --no-print-directory release
	build/release/opennuma demo $(DEMO_FLAGS)

test:
	@scripts/setup.sh test
	@scripts/test.sh

windows:
	@scripts/setup.sh test
	@scripts/test.sh windows

# UMF's wheel, and so the comparison, exists for x86-64 only.
bench: setup-bench
	@$(MAKE) --no-print-directory release
	build/release/opennuma bench alloc $(if $(filter x86_64,$(shell uname -m)),--peers) $(BENCH_FLAGS)
	build/release/opennuma bench sync
	build/release/opennuma bench replay tests/data/traces --generated

fuzz:
	@scripts/setup.sh test
	@scripts/fuzz.sh 60

format:
	@scripts/check-format.sh --fix

install: release
	cmake --install build/release --prefix "$(PREFIX)"

clean:
	@for d in build/*; do case $$d in build/stacks|build/deps) ;; *) rm -rf "$$d" ;; esac; done
distclean:
	rm -rf build

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

.PHONY: all help $(PRESETS) setup-build setup-bench setup-demo demo test windows bench fuzz format install clean distclean
