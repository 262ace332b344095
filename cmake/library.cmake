# SPDX-License-Identifier: Apache-2.0
# The library in its two forms, made of the same objects.
add_library(opennuma SHARED $<TARGET_OBJECTS:onuma_objects>)
add_library(opennuma_static STATIC $<TARGET_OBJECTS:onuma_objects>)
foreach(target opennuma opennuma_static)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:onuma_warnings> Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME opennuma)
endforeach()
target_compile_definitions(opennuma_static INTERFACE ONUMA_STATIC)

# Until 1.0 every minor version may change the interface, so the minor is part of the soname.
set_target_properties(opennuma PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
if(WIN32)
  # One list says what leaves the library on every system. The objects carry no export marks of their own, or programs
  # that link them statically would export them too.
  set(exports ${PROJECT_BINARY_DIR}/opennuma.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/opennuma.symbols)
  file(READ ${PROJECT_SOURCE_DIR}/cmake/opennuma.symbols symbols)
  file(CONFIGURE OUTPUT ${exports} CONTENT "LIBRARY opennuma.dll\nEXPORTS\n@symbols@" @ONLY)
  target_sources(opennuma PRIVATE ${exports})
  set_target_properties(opennuma PROPERTIES PREFIX "")
endif()
if(MINGW)
  target_link_options(opennuma PRIVATE -static-libgcc) # users of the DLL need none of MinGW's
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_link_options(opennuma PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/opennuma.map
                                       -Wl,--no-undefined,-z,relro,-z,now
                                       # Threads carry its exit hook, so it must outlive a dlclose.
                                       -Wl,-z,nodelete)
  set_target_properties(opennuma PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/opennuma.map)
endif()
