#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that is said of CUDA devices, run on one: the suites of the public functions and the models, sharing over sizes,
# what is CUDA's own, replays, and PyTorch's checks where PyTorch is.
#
#   scripts/gpu.sh [--binaries DIR] [--traces DIR] [--out DIR] [--device ID] [--rounds N]
#                  [--only PART,PART...]
#
# --binaries   a build of the release preset; without it one is made in build/release
# --traces     recordings to replay (default: tests/data/traces)
# --out        where the results go (default: docs/results)
# --rounds     of training with PyTorch (default: 3)
# --only       some of: info doctor demo api model shared cuda replay sanitizer torch
#
# Ends with a line for each part, and status 1 if one failed. Results: cuda.md, with the machine, the commands and what they
# printed, and JSON beside it. It uses no more managed memory than the card has free, and changes no setting of the card.
set -uo pipefail
cd "$(dirname "$0")/.."
binaries= traces=tests/data/traces out=docs/results device=cuda:0 only= rounds=3
while [ $# -gt 0 ]; do
    case $1 in
    --binaries) binaries=$2 ;;
    --traces) traces=$2 ;;
    --out) out=$2 ;;
    --device) device=$2 ;;
    --rounds) rounds=$2 ;;
    --only) only=$2 ;;
    *) sed -n '3,18p' "$0"; exit 2 ;;
    esac
    shift 2
done
if [ -z "$binaries" ]; then
    binaries=build/release
    cmake --preset release --log-level=WARNING -DONUMA_TESTS=ON >/dev/null && cmake --build --preset release || exit 1
fi
binaries=$(realpath "$binaries")
mkdir -p "$out"
report=$out/cuda.md
export LD_LIBRARY_PATH=$binaries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
declare -A status

heading() {
    echo "# CUDA, as seen"
    echo
    echo "Written by scripts/gpu.sh; every figure is of this one run."
    echo
    echo "| | |"
    echo "|---|---|"
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader |
        awk -F', ' '{ print "| GPU | " $1 ", " $3 " |\n| driver | " $2 " |" }'
    echo "| system | $(. /etc/os-release && echo "$PRETTY_NAME"), Linux $(uname -r), $(nproc) processors |"
    echo "| OpenNUMA | $("$binaries/opennuma" --version), commit ${OPENNUMA_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null)} |"
    python3 -c 'import torch; print("| PyTorch |", torch.__version__, "|")' 2>/dev/null
}

# part NAME COMMAND...: run it, with its output in the report.
part() {
    local name=$1 text result
    shift
    case ,$only, in ,, | *,$name,*) ;; *) return ;; esac
    local begin=$SECONDS
    text=$("$@" 2>&1)
    result=$?
    [ "${status[$name]:-0}" = 0 ] && status[$name]=$result
    {
        echo
        echo "## $name"
        echo
        echo '```'
        echo "\$ $*" | sed "s|$binaries/||g"
        echo "$text" | sed "s|$binaries/||g"
        echo '```'
        [ $result = 0 ] || echo "**exit status $result**"
    } >>"$report"
    echo "gpu: $name: exit status $result, $((SECONDS - begin)) s"
    [ $result = 0 ] || echo "$text" | tail -15
}

# The tests of the public functions, as they run on the host in CI.
api() {
    local failed=0 test
    for test in "$binaries"/tests/unit/api/test_api_*; do
        [ -x "$test" ] || continue
        if OPENNUMA_TEST_DEVICE=$device timeout 120 "$test" >"$out/api.log" 2>&1; then
            echo "$(basename "$test"): $(grep -c '\[       OK' "$out/api.log") passed"
        else
            echo "$(basename "$test"): FAILED"
            grep -E 'ERROR|FAILED' "$out/api.log" | head -5
            failed=1
        fi
    done
    rm -f "$out/api.log"
    return $failed
}

replays() {
    local failed=0 trace kind
    for trace in "$traces"/*.csv.gz; do
        for kind in device shared; do
            timeout 120 "$binaries/opennuma" replay "$trace" --device "$device" --kind $kind --json || failed=1
        done
    done
    return $failed
}

sanitizer() {
    compute-sanitizer --error-exitcode 9 "$binaries/opennuma" demo --device "$device" | tail -3 &&
        compute-sanitizer --error-exitcode 9 "$binaries/tests/gpu/test_gpu_model" "$device" 3
}

heading >"$report"
part info "$binaries/opennuma" info
part doctor "$binaries/opennuma" doctor
part demo "$binaries/opennuma" demo --device "$device"
for way in pinned managed; do
    OPENNUMA_CONF=cuda.share:$way part demo "$binaries/opennuma" demo --device "$device"
done
part api api
part model "$binaries/tests/gpu/test_gpu_model" "$device" 10
part shared "$binaries/tests/gpu/test_gpu_shared" "$device"
part cuda "$binaries/tests/gpu/test_gpu_cuda" "$device"
part cuda "$binaries/tests/gpu/test_gpu_cuda" "$device" lost
part replay replays
command -v compute-sanitizer >/dev/null && part sanitizer sanitizer
python3 -c 'import torch' 2>/dev/null && part torch python3 tests/gpu/torch_cuda.py "$binaries/libopennuma.so.0.1" "$out/torch.json" "$rounds"
failed=0
for name in "${!status[@]}"; do
    echo "gpu: $name $([ "${status[$name]}" = 0 ] && echo ok || echo FAILED)"
    [ "${status[$name]}" = 0 ] || failed=1
done
exit $failed
