#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/qemu-aarch64.sh PROGRAM [ARGUMENT...]: run a program for 64-bit Arm under qemu's user mode, as ctest does.
# QEMU_PAGESIZE chooses its pages: 4096 (also if unset), 16384 or 65536 bytes.
case $1 in
    */musl-aarch64/*) root=$(cd "$(dirname "$0")/.." && pwd)/build/deps/musl-aarch64 ;;
    *)                root=/usr/aarch64-linux-gnu ;;
esac
exec qemu-aarch64 -L "$root" "$@"
