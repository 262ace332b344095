# SPDX-License-Identifier: Apache-2.0
# Build for Windows on Linux, with MinGW-w64.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc)
# Of the two that some systems have, the one whose library has std::thread.
find_program(ONUMA_MINGW_CXX NAMES x86_64-w64-mingw32-g++-posix x86_64-w64-mingw32-g++)
set(CMAKE_CXX_COMPILER ${ONUMA_MINGW_CXX})
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
# What scripts/cross-libraries.sh built, and what the compiler came with.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/../build/deps/windows /usr/x86_64-w64-mingw32)
# The formats of C17 (%zu), not those of Microsoft's old run-time library, in what is built with this file alone too.
set(CMAKE_C_FLAGS_INIT -D__USE_MINGW_ANSI_STDIO=1)
set(ZLIB_USE_STATIC_LIBS ON)
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../scripts/wine.sh)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
