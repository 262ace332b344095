# SPDX-License-Identifier: Apache-2.0
# 64-bit Arm with glibc, by Debian's cross compiler. Programs run under qemu's user mode; QEMU_PAGESIZE in the
# environment chooses pages of 4096, 16384 or 65536 bytes.
set(onuma_target aarch64)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../../scripts/qemu-aarch64.sh)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
