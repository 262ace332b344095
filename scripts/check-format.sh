#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Is every C file as clang-format would write it? With --fix: write it so.
set -euo pipefail
cd "$(dirname "$0")/.."
clang_format=$(command -v clang-format-14 || command -v clang-format)
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.c' '*.h')
if [ "${1:-}" = --fix ]; then
    "$clang_format" -i "${files[@]}"
else
    if ! "$clang_format" --dry-run --Werror "${files[@]}" 2>/dev/null; then
        # Its own report has a line for each blank; the names of the files are enough.
        echo "format: not as $("$clang_format" --version) would write them; make format does:"
        for file in "${files[@]}"; do
            "$clang_format" --dry-run --Werror "$file" 2>/dev/null || echo "    $file"
        done
        exit 1
    fi
    echo "format: ${#files[@]} files"
fi
