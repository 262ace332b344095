# SPDX-License-Identifier: Apache-2.0
# x86-64 with no more than glibc 2.17 has, as the manylinux2014 platform of Python wheels asks.
set(onuma_target glibc217)
set(zig_target x86_64-linux-gnu.2.17)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
