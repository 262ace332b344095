#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Run the fuzz targets of tests/fuzz/, one after the other.
#
#   scripts/fuzz.sh [SECONDS [TARGET...]]     60 seconds each, all targets
#
# Each target first meets its kept inputs (tests/fuzz/seeds/TARGET), then looks for new ones until its time is
# over. What it learns stays in build/fuzz/corpus for the next run; an input that breaks something is left in
# build/fuzz/found. Exit status 1 if there is one.
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift
if [ $# -gt 0 ]; then targets=("$@"); else mapfile -t targets < <(ls tests/fuzz/seeds); fi

cmake --preset fuzz --log-level=WARNING >/dev/null && cmake --build --preset fuzz --parallel "$(nproc)" || exit 1
failed=0
for target in "${targets[@]}"; do
    program=build/fuzz/tests/fuzz/fuzz_$target
    corpus=build/fuzz/corpus/$target
    found=build/fuzz/found/$target-
    log=build/fuzz/$target.log
    mkdir -p "$corpus" build/fuzz/found
    options=(-timeout=20 -rss_limit_mb=2048 -artifact_prefix="$found" -print_final_stats=1 -verbosity=1)
    dictionary=tests/fuzz/$target.dict
    [ -e "$dictionary" ] && options+=(-dict="$dictionary")
    if "$program" "${options[@]}" -runs=0 "tests/fuzz/seeds/$target" >"$log" 2>&1 &&
        "$program" "${options[@]}" -max_total_time="$seconds" "$corpus" "tests/fuzz/seeds/$target" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "fuzz: $target: $(ls "tests/fuzz/seeds/$target" | wc -l) seeds, $runs runs, nothing found"
    else
        tail -60 "$log"
        echo "fuzz: $target: FOUND SOMETHING: the above; the input is ${found}*; again with: $program INPUT"
        failed=1
    fi
done
exit $failed
