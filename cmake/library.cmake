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
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_link_options(opennuma PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/opennuma.map
                                       -Wl,--no-undefined,-z,relro,-z,now
                                       # Threads carry its exit hook, so it must outlive a dlclose.
                                       -Wl,-z,nodelete)
  set_target_properties(opennuma PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/opennuma.map)
endif()
