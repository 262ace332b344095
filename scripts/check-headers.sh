#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles alone, as strict C17 and as strict C++17, with gcc and with clang; and with clang in the
# manner of Microsoft's compiler, which knows no GNU construct (its own headers are not here: freestanding ones do).
set -euo pipefail
cd "$(dirname "$0")/.."
warnings=(-pedantic-errors -Wall -Wextra -Wconversion -Wundef -Werror)
microsoft=(--target=x86_64-pc-windows-msvc -fms-compatibility -ffreestanding -Wgnu -isystem tests/unit/headers/msvc)
check() {
    "$1" -x c -std=c17 "${warnings[@]}" -Wstrict-prototypes -Iinclude -fsyntax-only "${@:2}"
    "$1" -x c++ -std=c++17 "${warnings[@]}" -Iinclude -fsyntax-only "${@:2}"
}
for header in include/opennuma/*.h; do
    check gcc "$header"
    check clang "$header"
    check clang "${microsoft[@]}" "$header"
    check clang "${microsoft[@]}" -DONUMA_STATIC "$header"
    echo "headers: $header"
done
