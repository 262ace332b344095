#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-exports.sh BUILD: the shared library exports exactly the functions that the public headers declare and
# cmake/opennuma.symbols lists, and the static one defines no outside name without our prefix. Every struct of
# the headers is pinned in tests/unit/test_abi.c.
set -euo pipefail
export LC_ALL=C # one order of names everywhere
cd "$(dirname "$0")/.."
build=$1
declared=$(cat include/opennuma/*.h | tr '\n' ' ' | grep -oE 'ONUMA_API [^;()]*\b(onuma_[a-z_0-9]+)\(' |
    sed -E 's/.*\b(onuma_[a-z_0-9]+)\($/\1/' | sort -u)
exported=$(nm -D --defined-only "$build/libopennuma.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u)
if ! difference=$(diff <(echo "$declared") <(echo "$exported")); then
    echo "exports: < declared but not exported, > exported but not declared:"
    echo "$difference"
    exit 1
fi
if ! difference=$(diff cmake/opennuma.symbols <(echo "$exported")); then
    echo "exports: < in cmake/opennuma.symbols and gone, > exported and not in it; the rule is in opennuma.h:"
    echo "$difference"
    exit 1
fi
unpinned=$(sed -nE 's/^typedef struct (onuma_[a-z_]+) \{$/\1/p' include/opennuma/*.h | while read -r name; do
    grep -q "SIZE($name," tests/unit/test_abi.c || echo "$name"
done)
[ -z "$unpinned" ] || { echo "exports: structs that tests/unit/test_abi.c does not pin:" $unpinned; exit 1; }
foreign=$(nm -g --defined-only "$build/libopennuma.a" 2>/dev/null | awk 'NF == 3 && $3 !~ /^onuma_/ { print $3 }')
[ -z "$foreign" ] || { echo "exports: names without prefix in the static library: $foreign"; exit 1; }
echo "exports: $(echo "$exported" | wc -l) functions"
