# SPDX-License-Identifier: Apache-2.0
# macOS on Intel's processors. Nothing built for it can run here.
set(onuma_target macos-x86_64)
set(zig_target x86_64-macos)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
