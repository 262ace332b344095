#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build the examples as their reader would, against an installed tree, and run them: those of examples/sharing, and the others
# on each OpenCL stack of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
stacks=${OPENNUMA_STACKS:-$PWD/build/stacks}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install build/release --prefix "$work/prefix" >/dev/null
export LD_LIBRARY_PATH
LD_LIBRARY_PATH=$(dirname "$(find "$work/prefix" -name libopennuma.so)")
export PKG_CONFIG_PATH=$LD_LIBRARY_PATH/pkgconfig

read -ra flags < <(pkg-config --cflags --libs opennuma OpenCL)
read -ra own < <(pkg-config --cflags --libs opennuma)
for example in turns conflict event free queues; do
    cc -std=c17 -Wall -Wextra -Werror "examples/sharing/$example.c" "${own[@]}" -pthread -o "$work/$example"
    timeout 60 "$work/$example" || { echo "examples: sharing/$example failed"; exit 1; }
done

cc -std=c17 -Wall -Wextra -Werror examples/share.c "${flags[@]}" -o "$work/share"

vendors=(/etc/OpenCL/vendors/pocl.icd /etc/OpenCL/vendors/rusticl.icd)
[ "$(uname -m)" != x86_64 ] || vendors+=("$stacks/intel/intel.icd")
for icd in "${vendors[@]}"; do
    for program in "$work/share" "python3 examples/share.py"; do
        # shellcheck disable=SC2086 # a command and its argument
        OCL_ICD_VENDORS=$icd RUSTICL_ENABLE=llvmpipe timeout 120 $program ||
            { echo "examples: $program failed with $icd"; exit 1; }
    done
done
