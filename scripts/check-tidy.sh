#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over the library, the command, the examples and the Python extension, with the checks of .clang-tidy.
# Needs a configured build of the clang preset: its compile commands are what clang understands.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/clang
[ -e $build/compile_commands.json ] || { echo "tidy: configure first: cmake --preset clang" >&2; exit 1; }
clang_tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
mapfile -t files < <(python3 - "$PWD" $build/compile_commands.json <<'PYTHON'
import json, sys
root = sys.argv[1]
names = {entry["file"] for entry in json.load(open(sys.argv[2]))}
print(*sorted(n for n in names if n.startswith(tuple(f"{root}/{d}/" for d in ("src", "cli", "bench", "examples", "python")))), sep="\n")
PYTHON
)
# One file a process: clang-tidy 14 carries the state of va_list from one file into the next.
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" "$clang_tidy" --quiet -p $build 2> >(grep -vE 'warnings? generated|^Suppressed|^Use -header' >&2)
echo "tidy: ${#files[@]} files"
