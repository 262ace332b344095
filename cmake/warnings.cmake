# SPDX-License-Identifier: Apache-2.0
# Warnings, sanitizers and coverage, as one interface that every target of ours links.
add_library(onuma_warnings INTERFACE)
target_compile_options(onuma_warnings INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wundef -Wstrict-prototypes -Wmissing-prototypes -Wvla)
if(ONUMA_WERROR)
  target_compile_options(onuma_warnings INTERFACE -Werror)
endif()
if(ONUMA_SANITIZE)
  target_compile_options(onuma_warnings INTERFACE -fsanitize=${ONUMA_SANITIZE} -fno-omit-frame-pointer
                                                  -fno-sanitize-recover=all)
  target_link_options(onuma_warnings INTERFACE -fsanitize=${ONUMA_SANITIZE})
endif()
if(ONUMA_FUZZ)
  target_compile_options(onuma_warnings INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(ONUMA_COVERAGE)
  target_compile_options(onuma_warnings INTERFACE --coverage)
  target_link_options(onuma_warnings INTERFACE --coverage)
endif()
if(MINGW)
  # The formats of C17 (%zu), not those of Microsoft's old run-time library.
  target_compile_definitions(onuma_warnings INTERFACE __USE_MINGW_ANSI_STDIO=1)
endif()
