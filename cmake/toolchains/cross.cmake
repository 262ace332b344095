# SPDX-License-Identifier: Apache-2.0
# What the toolchain files beside it end with: programs are this machine's, libraries and headers the target's. Each says
# what its `onuma_target` is called, under which name scripts/cross-libraries.sh puts what the command and the tests link.
list(APPEND CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/../../build/deps/${onuma_target})
set(ZLIB_USE_STATIC_LIBS ON)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
