# SPDX-License-Identifier: Apache-2.0
# macOS on Apple's processors. Nothing built for it can run here.
set(onuma_target macos-arm64)
set(zig_target aarch64-macos)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
