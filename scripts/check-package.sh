#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Install the release build into a folder of its own, move that folder, and build tests/package against it
# as a stranger would: with pkg-config and with find_package, shared and static. Each program must run.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install build/release --prefix "$work/first" >/dev/null
# Nothing installed may remember where it was first put.
mv "$work/first" "$work/prefix"
prefix=$work/prefix
library_dir=$(dirname "$(find "$prefix" -name libopennuma.so)")
export PKG_CONFIG_PATH=$library_dir/pkgconfig

runs() {
    LD_LIBRARY_PATH=$library_dir "$@" >"$work/output" || { echo "package: $1 failed"; exit 1; }
    grep -q "^opennuma $(pkg-config --modversion opennuma)\$" "$work/output" ||
        { echo "package: $1 printed: $(cat "$work/output")"; exit 1; }
}
links_shared() { readelf -d "$1" | grep -q 'NEEDED.*libopennuma\.so\.'; }

read -ra flags < <(pkg-config --cflags --libs opennuma)
cc -std=c17 tests/package/main.c "${flags[@]}" -o "$work/pkg_shared"
links_shared "$work/pkg_shared"
runs "$work/pkg_shared"

read -ra flags < <(pkg-config --static --cflags --libs opennuma | sed 's/-lopennuma/-l:libopennuma.a/')
cc -std=c17 tests/package/main.c "${flags[@]}" -o "$work/pkg_static"
! links_shared "$work/pkg_static" || { echo "package: pkg_static needs the shared library"; exit 1; }
runs "$work/pkg_static"

cmake -S tests/package -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" --log-level=WARNING >/dev/null
cmake --build "$work/build" >/dev/null
links_shared "$work/build/with_opennuma"
runs "$work/build/with_opennuma"
! links_shared "$work/build/with_static" || { echo "package: with_static needs the shared library"; exit 1; }
runs "$work/build/with_static"

# The command finds its library in an installed tree by itself.
env -u LD_LIBRARY_PATH "$prefix/bin/opennuma" --version >/dev/null ||
    { echo "package: the installed command does not start"; exit 1; }
echo "package: 4 programs built and run, and the installed command"
