#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles alone, as strict C17 and as strict C++17, with gcc and with clang.
set -euo pipefail
cd "$(dirname "$0")/.."
warnings=(-pedantic-errors -Wall -Wextra -Wconversion -Wundef -Werror)
for header in include/opennuma/*.h; do
    for compiler in gcc clang; do
        $compiler -x c -std=c17 "${warnings[@]}" -Wstrict-prototypes -Iinclude -fsyntax-only "$header"
        $compiler -x c++ -std=c++17 "${warnings[@]}" -Iinclude -fsyntax-only "$header"
    done
    echo "headers: $header"
done
