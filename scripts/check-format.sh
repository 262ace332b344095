#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Is every C file as clang-format would write it? With --fix: write it so.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.c' '*.h')
if [ "${1:-}" = --fix ]; then
    clang-format -i "${files[@]}"
else
    # One line for each file, not clang-format's line for each blank.
    pattern='s/^\([^: ]*\):.*should be clang-formatted.*/not as clang-format would write it (make format): \1/p'
    unformatted=$(clang-format --dry-run --Werror "${files[@]}" 2>&1 | sed -n "$pattern" | sort -u)
    [ -z "$unformatted" ] || { echo "$unformatted"; exit 1; }
    echo "format: ${#files[@]} files"
fi
