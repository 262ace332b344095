# SPDX-License-Identifier: Apache-2.0
# 64-bit Arm with musl, run under qemu's user mode.
set(onuma_target musl-aarch64)
# glibc's name for the size of a word, without which cmocka's header takes every processor but x86-64 for a 32-bit one.
set(CMAKE_C_FLAGS_INIT -D__WORDSIZE=64)
set(zig_target aarch64-linux-musl)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
