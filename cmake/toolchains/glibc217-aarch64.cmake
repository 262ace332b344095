# SPDX-License-Identifier: Apache-2.0
# The same for 64-bit Arm.
set(onuma_target glibc217-aarch64)
set(zig_target aarch64-linux-gnu.2.17)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
