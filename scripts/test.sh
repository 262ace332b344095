#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that must hold before a change lands; `make test` and CI run it. docs/testing.md tells what each step is for.
#
#   scripts/test.sh            all steps, even after one fails
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

step_release() { build release -DONUMA_WERROR=ON -DONUMA_TESTS=ON; }
step_debug()   { build debug; }
step_clang()   { build clang; }
step_windows() { build windows; }

step_tests()       { run_tests release; }
step_tests_debug() { run_tests debug --label-regex quick; }
step_asan()        { build asan && run_tests asan --label-regex 'quick|model'; }
# The full model runs take ten times as long here; the quick ones have threads too.
step_tsan()     { build tsan && run_tests tsan --label-regex 'quick|model' --exclude-regex '^model_full_'; }

step_includes() { scripts/check-includes.py; }
step_files()    { scripts/check-files.py; }
step_format()   { scripts/check-format.sh; }
step_tidy()     { scripts/check-tidy.sh; }
step_docs()     { scripts/check-docs.py; }
step_fuzz()     { scripts/fuzz.sh 10; }
step_package()  { scripts/check-package.sh; }
step_examples() { scripts/check-examples.sh; }

all=(includes files format release debug clang windows docs tidy
     tests tests_debug asan tsan fuzz package examples)
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
