# SPDX-License-Identifier: Apache-2.0
# onuma_embed(TARGET NAME FILE): make FILE part of TARGET as `const unsigned char NAME[]` and `const size_t NAME_size`,
# anew whenever it changes. Run as a script (-DINPUT -DOUTPUT -DNAME) it writes the C source. Needs no tool but CMake.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE ${OUTPUT} "#include <stddef.h>\nextern const unsigned char ${NAME}[];\nextern const size_t ${NAME}_size;\n"
    "const unsigned char ${NAME}[] = {\n${bytes}\n};\nconst size_t ${NAME}_size = sizeof ${NAME};\n")
  return()
endif()

set(ONUMA_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(onuma_embed target name file)
  get_filename_component(input ${file} ABSOLUTE)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  add_custom_command(OUTPUT ${output} DEPENDS ${input} ${ONUMA_EMBED_SCRIPT} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DNAME=${name} -P ${ONUMA_EMBED_SCRIPT})
  target_sources(${target} PRIVATE ${output})
endfunction()
