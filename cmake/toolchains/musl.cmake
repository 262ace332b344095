# SPDX-License-Identifier: Apache-2.0
# x86-64 with musl.
set(onuma_target musl)
set(zig_target x86_64-linux-musl)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
