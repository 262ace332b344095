#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Run the fuzz targets of tests/fuzz/, two at a time.
#
#   scripts/fuzz.sh [SECONDS [TARGET...]]     60 seconds each, all targets
#
# Each target first meets its kept inputs (tests/fuzz/seeds/TARGET), of which at least one must go through to the end, then
# looks for new ones until its time is over. It works on a copy of the kept ones, for libFuzzer may write where it reads.
# What it learns stays in build/fuzz/corpus for the next run; an input that breaks something is left in build/fuzz/found.
# Exit status 1 if there is one.
set -uo pipefail
cd "$(dirname "$0")/.."
export seconds=${1:-60}
shift
if [ $# -gt 0 ]; then targets=("$@"); else mapfile -t targets < <(ls tests/fuzz/seeds); fi

cmake --preset fuzz --log-level=WARNING >/dev/null && cmake --build --preset fuzz --parallel "$(nproc)" || exit 1

run_target() {
    local target=$1 program=build/fuzz/tests/fuzz/fuzz_$1 corpus=build/fuzz/corpus/$1 seeds=build/fuzz/seeds/$1
    local found=build/fuzz/found/$1- log=build/fuzz/$1.log dictionary=tests/fuzz/$1.dict
    rm -rf "$seeds"
    mkdir -p "$corpus" build/fuzz/found build/fuzz/seeds
    cp -r "tests/fuzz/seeds/$target" "$seeds"
    local options=(-timeout=20 -rss_limit_mb=2048 -artifact_prefix="$found" -print_final_stats=1 -verbosity=1)
    [ -e "$dictionary" ] && options+=(-dict="$dictionary")
    if ! "$program" "${options[@]}" -runs=0 "$seeds" >"$log" 2>&1 ||
        ! grep -q "^fuzz: reached the end" "$log" ||
        ! "$program" "${options[@]}" -max_total_time="$seconds" "$corpus" "$seeds" >"$log" 2>&1; then
        tail -60 "$log"
        echo "fuzz: $target: FOUND SOMETHING: the above, or no kept input goes through to the end; an input is ${found}*; again with: $program INPUT"
        return 1
    fi
    local runs
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "fuzz: $target: $(ls "$seeds" | wc -l) seeds, $runs runs, nothing found"
}
export -f run_target
printf '%s\n' "${targets[@]}" | xargs -P 2 -I '{}' bash -c 'run_target "$1"' _ '{}' || exit 1
