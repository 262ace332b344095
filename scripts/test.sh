#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that must hold before a change lands; `make test` and CI run it. docs/testing.md tells what each step is for.
#
#   scripts/test.sh            all steps but those run by hand, even after one fails
#   scripts/test.sh STEP...    those steps alone
#
# A step is a function step_NAME below. Its output appears as it comes; at the end stands one line for
# each step, and the exit status is 1 if any failed.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
OPENNUMA_STACKS=$(realpath -m "${OPENNUMA_STACKS:-$root/build/stacks}")
export OPENNUMA_STACKS
# PoCL keeps compiled kernels; the home directory is not for tests to write in.
export POCL_CACHE_DIR=$root/build/pocl-cache
mkdir -p "$POCL_CACHE_DIR"
jobs=$(nproc)

build() {
    cmake --preset "$1" --log-level=WARNING "${@:2}" >/dev/null && cmake --build --preset "$1" --parallel "$jobs"
}

# Nothing counts as a pass but a test that ran: a label that selects none is an error, and so is a test that
# ctest leaves out because a driver is missing.
run_tests() {
    local log=build/$1/ctest.log
    ctest --preset "$1" --parallel "$jobs" --no-tests=error "${@:2}" 2>&1 | tee "$log" || return 1
    if grep -E '\*\*\*(Not Run|Skipped)' "$log"; then
        echo "tests: the above did not run; scripts/setup.sh test installs what they need"
        return 1
    fi
}

# The demo's kernels for CUDA are kept as text.
step_ptx()     { scripts/ptx.sh --check; }
step_release() { build release -DONUMA_WERROR=ON -DONUMA_TESTS=ON; }
step_debug()   { build debug; }
step_clang()   { build clang; }
# Built, and run under Wine; what does not run there is listed, and the lists are held to what is so.
step_windows() {
    local status=0
    scripts/wine.sh --make & # which mostly waits
    scripts/cross-libraries.sh windows cmake/mingw-w64.cmake cmocka cjson zlib opencl-headers level-zero-headers && build windows || status=1
    wait $! && [ $status = 0 ] || return 1
    scripts/wine.sh build/windows/opennuma.exe --version || return 1
    run_tests windows --parallel $((jobs + 1)) || status=1 # they wait for Wine's server
    cmake --preset debug --log-level=ERROR >/dev/null && cmake --build --preset debug --target onuma_cli &&
        scripts/check-statistics.sh build/debug/opennuma "scripts/wine.sh build/windows/opennuma.exe" || status=1
    scripts/wine.sh --stop
    scripts/check-windows.py || status=1
    return $status
}

# The sweeps of every fault over OpenCL, and of CPU and kernels in turns for many rounds, take many minutes: by hand,
# before a release. Samples of the same are among the tests, and every fault by one of the three ways.
sweeps='^fault_script_pocl_svm_(fine|coarse)$|^fault_demo_pocl_|^(stack_(sharing|unordered)_.*|protocol)_many$'
step_tests()       { run_tests release --exclude-regex "$sweeps"; }
step_sweeps()      { build release && run_tests release --tests-regex "$sweeps"; }
step_tests_debug() { run_tests debug --label-regex quick; }
# The tests of the library, and the faults. The full model runs take ten times as long under the thread sanitizer; the
# quick ones have threads too, and the sweeps of faults have one thread.
step_asan() { build asan && run_tests asan --label-regex 'quick|model' && run_tests asan --label-regex fault --label-exclude long; }
step_tsan() { build tsan && run_tests tsan --label-regex 'quick|model' --exclude-regex '^model_full_'; }
# The command, and the library on PoCL, as it is and where memory is not coherent; by hand. The doctor has one thread and
# starts hundreds of processes; the demo on the host races on purpose where it shows that a race is found.
step_sanitized_stacks() {
    local preset status=0
    for preset in asan tsan; do
        build $preset || return 1
        run_tests $preset --label-regex cli --label-exclude 'stack|quick' --exclude-regex '^cli_doctor' || status=1
        run_tests $preset --label-regex stack --label-exclude 'quick|long|cli' --tests-regex '_(pocl|none)_' \
            --exclude-regex '^stack_demo_none' || status=1
    done
    return $status
}
step_valgrind() { build debug && scripts/check-valgrind.py; }

# Other systems. What their programs link is built first; their tests are those of the library, not of drivers.
# Zig builds what a target lacks of its C library at the first link, on one processor.
both() {
    local status=0
    "$1" "$2" &
    "$1" "$3" || status=1
    wait $! && [ $status = 0 ]
}
link_ported() { scripts/cross-libraries.sh "$1" "cmake/toolchains/$1.cmake" opencl-headers level-zero-headers "${@:2}"; }
build_ported() { link_ported "$@" && build "$1"; }
run_ported() { run_tests "$1" --label-regex 'unit|model|fault' --exclude-regex '^model_full_' "${@:2}"; }
# The library, the command, and of the tests (each of a target of its name) those that are chosen.
build_chosen() {
    local targets
    cmake --preset "$1" --log-level=WARNING >/dev/null &&
        targets=$(ctest --preset "$1" --show-only "${@:2}" | sed -n 's/^ *Test *#[0-9]*: /test_/p') && [ -n "$targets" ] &&
        cmake --build --preset "$1" --parallel "$jobs" --target opennuma onuma_cli $targets
}

# Larger pages change what the layers of memory do; locks, threads and queues see nothing of them.
step_aarch64() {
    build_ported aarch64 cmocka cjson zlib || return 1
    QEMU_PAGESIZE=4096 run_ported aarch64 --label-exclude not_qemu || return 1
    for QEMU_PAGESIZE in 16384 65536; do
        export QEMU_PAGESIZE
        run_tests aarch64 --label-regex 'unit|model' --label-exclude not_qemu \
            --tests-regex '^(os_(memory|capacity)|pool_|policy_|backend_host|late_open|model$|api_(pool|block)$)' || return 1
    done
}
step_musl() { build_ported musl cmocka cjson zlib && run_ported musl; }
step_musl_aarch64() {
    local tests=(--label-exclude not_qemu --tests-regex '^(os_|pool_|late_open|backend_|model$|api_(pool|block)$)')
    link_ported musl-aarch64 cmocka cjson zlib musl-loader && build_chosen musl-aarch64 "${tests[@]}" &&
        run_tests musl-aarch64 "${tests[@]}"
}

# The shared library for Python wheels, which has to run here too: tests of the release build, with it in place.
step_glibc217() {
    both build_ported glibc217 glibc217-aarch64 &&
        scripts/check-glibc.sh build/glibc217/libopennuma.so build/glibc217-aarch64/libopennuma.so &&
        build/release/tests/unit/test_late_open "$root/build/glibc217/libopennuma.so" || return 1
    local test
    for test in abi api_block api_fork api_leaks api_pool api_queue api_refusals; do
        LD_LIBRARY_PATH=$root/build/glibc217 OPENNUMA_CONF=backends:host \
            "$(find build/release/tests/unit -name "test_$test" -type f)" || return 1
    done
}
step_macos() { both build_ported macos-arm64 macos-x86_64; }
step_statistics() {
    local qemu=scripts/qemu-aarch64.sh
    scripts/check-statistics.sh build/release/opennuma build/musl/opennuma \
        "env QEMU_PAGESIZE=4096 $qemu build/aarch64/opennuma" "env QEMU_PAGESIZE=16384 $qemu build/aarch64/opennuma" \
        "env QEMU_PAGESIZE=65536 $qemu build/aarch64/opennuma" "$qemu build/musl-aarch64/opennuma"
}

step_includes() { scripts/check-includes.py; }
step_files()    { scripts/check-files.py; }
step_format()   { scripts/check-format.sh; }
step_tidy()     { scripts/check-tidy.sh; }
step_docs()     { scripts/check-docs.py && scripts/performance.py --check; }
step_fuzz()     { scripts/fuzz.sh 60; }
step_package()  { scripts/check-package.sh; }
step_python()   { scripts/check-python.sh; }
step_examples() { scripts/check-examples.sh; }

all=(includes files format ptx release debug clang windows docs tidy
     tests tests_debug asan tsan valgrind fuzz package examples python
     aarch64 musl musl_aarch64 glibc217 macos statistics)
[ $# -gt 0 ] && steps=("$@") || steps=("${all[@]}")

summary=()
failed=0
begin=$SECONDS
for step in "${steps[@]}"; do
    declare -F "step_$step" >/dev/null || { echo "no such step: $step; there are: ${all[*]}" >&2; exit 2; }
    printf '\n=== %s\n' "$step"
    since=$SECONDS
    if "step_$step" </dev/null; then outcome=ok; else outcome=FAILED; failed=$((failed + 1)); fi
    summary+=("$(printf '%-12s %-6s %4d s' "$step" "$outcome" $((SECONDS - since)))")
done

printf '\n=== summary, %d s in all\n' $((SECONDS - begin))
printf '%s\n' "${summary[@]}"
printf '\nsteps: %d passed, %d failed\n' $((${#steps[@]} - failed)) $failed
[ "$failed" = 0 ]
