#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that `opennuma bench` needs, in one folder to carry to a machine without packages (Linux, x86-64, a C library
# not older than this machine's): build/bench-bundle. There:
#
#   bench-bundle/bin/opennuma bench alloc --peers-from bench-bundle/peers --json >alloc.json
#
# and back here: scripts/performance.py --from alloc.json
set -euo pipefail
cd "$(dirname "$0")/.."
stacks=$(realpath -m "${OPENNUMA_STACKS:-build/stacks}")
bundle=build/bench-bundle
scripts/setup.sh bench
make --no-print-directory release >/dev/null
rm -rf $bundle
cmake --install build/release --prefix $bundle >/dev/null
rm -rf $bundle/include $bundle/lib*/pkgconfig $bundle/lib*/cmake $bundle/lib*/*.a
# The command looks for what it links to in the folder of its own library; what the C library is made of is every system's.
library=$(dirname "$(find $bundle -name 'libopennuma.so' -print -quit)")
ldd $bundle/bin/opennuma | sed -n 's/.*lib\(z\|cjson\)\.so[^ ]* => \([^ ]*\).*/\2/p' | while read -r path; do
    cp -L "$path" "$library/$(basename "$path")"
done
cp build/release/map_pool.so $bundle/bin/ # which `opennuma bench replay` looks for beside the command
cp -r "$stacks/peers" $bundle/peers
tar -C build -czf $bundle.tar.gz bench-bundle
echo "bench-bundle: $bundle and $bundle.tar.gz"
